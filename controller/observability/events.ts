/** What becomes an Event of an object, once there is an API server to send it to. */
export interface ObjectEvent {
  type: "Normal" | "Warning";
  /** One word in CamelCase, stable. */
  reason: string;
  object: { kind: string; namespace: string; name: string };
  message: string;
}

/** Takes events. Never blocks and never throws. */
export interface EventSink {
  record(event: ObjectEvent): void;
}

/** Keeps the latest events. */
export class RecentEvents implements EventSink {
  readonly #events: ObjectEvent[] = [];
  readonly #most: number;

  constructor(most = 1000) {
    this.#most = most;
  }

  record(event: ObjectEvent): void {
    this.#events.push(event);
    if (this.#events.length > this.#most) this.#events.shift();
  }

  /** The events that are kept, the oldest first. */
  list(): readonly ObjectEvent[] {
    return this.#events;
  }
}
