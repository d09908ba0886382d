import type { EventSink, ObjectEvent } from "../observability/events.js";
import type { Kind, ObjectRef } from "../resources/object-ref.js";
import type { Clock } from "./clock.js";
import type { EventRecorder, Regarding } from "./event-recorder.js";

/** Of one object so many Events may come at once, and in the long run one in so long; as client-go's spam filter. */
const BURST = 25;
const REFILL_MS = 300_000;
/** Objects whose Events are counted; of more than that the one that was told of least recently is forgotten. */
const MAX_OBJECTS = 4096;

export interface ObjectEventsOptions {
  events: Pick<EventRecorder, "record">;
  clock: Clock;
  /** Only the leader writes. */
  leads: () => boolean;
  /** The object as the API server knows it; undefined if it is gone. */
  regarding: (ref: ObjectRef) => Regarding | undefined;
}

/**
 * Makes Events of the API server from what happens to what objects are served with, such as a peer that goes down. Every
 * replica sees the same; one tells. A storm over one object, such as a thousand peers that flap, becomes a few Events of it:
 * the log and the metrics have the rest.
 */
export class ObjectEvents implements EventSink {
  readonly #options: ObjectEventsOptions;
  /** By UID, the one that was told of least recently first. */
  readonly #budgets = new Map<string, { left: number; at: number }>();

  constructor(options: ObjectEventsOptions) {
    this.#options = options;
  }

  record({ type, reason, object, message }: ObjectEvent): void {
    const { events, leads, regarding } = this.#options;
    if (!leads()) return;
    const { namespace, name } = object;
    const about = regarding({ kind: object.kind as Kind, namespace, name });
    if (about === undefined || !this.#spend(about.uid)) return;
    events.record(about, type, reason, message);
  }

  #spend(uid: string): boolean {
    const now = this.#options.clock.now();
    const { left, at } = this.#budgets.get(uid) ?? { left: BURST, at: now };
    const budget = Math.min(BURST, left + (now - at) / REFILL_MS);
    const spent = budget >= 1;
    this.#budgets.delete(uid);
    this.#budgets.set(uid, { left: spent ? budget - 1 : budget, at: now });
    const [oldest] = this.#budgets.keys();
    if (this.#budgets.size > MAX_OBJECTS && oldest !== undefined) this.#budgets.delete(oldest);
    return spent;
  }
}
