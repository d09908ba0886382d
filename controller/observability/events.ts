/** Something that happened to what an object is served with; where there is an API server it becomes an Event of it. */
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

/** Where there is nobody to tell: the log says the same. */
export const noEvents: EventSink = { record() {} };
