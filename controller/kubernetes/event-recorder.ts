import { createHash } from "node:crypto";
import type { Logger } from "../observability/logger.js";
import { plain } from "../resources/problem.js";
import type { ApiClient } from "./api-client.js";
import { statusOf } from "./api-error.js";
import { isRecord } from "./api-object.js";
import type { Clock } from "./clock.js";
import { microTime } from "./lease.js";
import { type PaceLimits, WritePace } from "./write-pace.js";

/** The object that an Event is about. */
export interface Regarding {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  uid: string;
}

export interface EventRecorderOptions {
  client: ApiClient;
  clock: Clock;
  wallClock: () => number;
  random: () => number;
  logger: Logger;
  controller: string;
  identity: string;
}

/** Events that wait for their turn; more are dropped: an Event is a courtesy, and status says the same. */
const MAX_QUEUE = 1000;
/** One after another: the same Event said twice at once would be counted once. */
const PACE: PaceLimits = { start: 10, least: 1, most: 50, burst: 50, together: 1 };

interface Waiting {
  regarding: Regarding;
  type: "Normal" | "Warning";
  reason: string;
  note: string;
}

/**
 * Writes Events (events.k8s.io/v1). The name of an Event follows from what it says, so that the same thing said again, by
 * this replica or after it by another one, counts up the series of the Event that is there.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #queue = new Map<string, Waiting>();
  readonly #pace: WritePace;
  readonly #end = new AbortController();
  #working: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#pace = new WritePace(PACE, options.clock, options.random);
  }

  record(regarding: Regarding, type: "Normal" | "Warning", reason: string, note: string): void {
    if (this.#queue.size >= MAX_QUEUE || this.#end.signal.aborted) return;
    this.#queue.set(eventName(regarding, type, reason, note), { regarding, type, reason, note });
    this.#working ??= this.#work();
  }

  /** Stops; what has not been written is dropped. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { signal } = this.#end;
    for (;;) {
      await this.#pace.turn(signal);
      const [next] = this.#queue;
      if (next === undefined || signal.aborted) break;
      this.#queue.delete(next[0]);
      await this.#pace
        .make(() => this.#write(...next))
        .catch((error: unknown) => {
          if (signal.aborted) return;
          const problem = plain(error instanceof Error ? error.message : String(error));
          this.#options.logger.debug("an Event could not be written", { event: next[0], problem });
        });
    }
    this.#working = undefined;
  }

  async #write(name: string, { regarding, type, reason, note }: Waiting): Promise<void> {
    const { client, wallClock, controller, identity } = this.#options;
    const { signal } = this.#end;
    const collection = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(regarding.namespace)}/events`;
    const time = microTime(wallClock());
    const body = {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name, namespace: regarding.namespace },
      eventTime: time,
      reportingController: controller,
      reportingInstance: identity.slice(0, 128),
      action: "Sync",
      regarding,
      type,
      reason,
      note,
    };
    try {
      await client.request({ method: "POST", path: collection, body, signal });
      return;
    } catch (error) {
      if (statusOf(error) !== 409) throw error;
    }
    const path = `${collection}/${encodeURIComponent(name)}`;
    const known = await client.request({ method: "GET", path, signal });
    const series = isRecord(known) && isRecord(known.series) ? known.series : {};
    const count = typeof series.count === "number" ? series.count + 1 : 2;
    await client.request({ method: "PATCH", path, body: { series: { count, lastObservedTime: time } }, signal });
  }
}

function eventName(regarding: Regarding, type: string, reason: string, note: string): string {
  const text = [regarding.kind, regarding.uid, type, reason, note].join("\0");
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  return `${regarding.name.slice(0, 200)}.${digest}`;
}
