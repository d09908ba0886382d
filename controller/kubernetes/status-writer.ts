import type { ObjectState } from "../model/object-state.js";
import type { ObjectChange } from "../model/routing-model.js";
import type { Logger } from "../observability/logger.js";
import { type Kind, type ObjectRef, refText } from "../resources/object-ref.js";
import { plain } from "../resources/problem.js";
import type { ApiClient } from "./api-client.js";
import { statusOf } from "./api-error.js";
import type { ApiObject } from "./api-object.js";
import { Backoff } from "./backoff.js";
import type { Clock } from "./clock.js";
import type { EventRecorder, Regarding } from "./event-recorder.js";
import { RateLimiter } from "./rate-limiter.js";
import { NAMESPACED_TYPES, resourcePath } from "./resource-type.js";
import { customStatus, difference, ingressStatus, messageOf, type PublishedAddress } from "./status-content.js";

export interface StatusWriterOptions {
  client: ApiClient;
  clock: Clock;
  wallClock: () => number;
  random: () => number;
  logger: Logger;
  events: EventRecorder;
  /** Only the leader writes. */
  leads: () => boolean;
  stateOf: (ref: ObjectRef) => ObjectState | undefined;
  referencedBy: (ref: ObjectRef) => string | undefined;
}

const PER_SECOND = 50;
const BURST = 100;

interface Entry {
  ref: ObjectRef;
  uid: string;
  /** The status that the API server has. */
  status: unknown;
  /** Generation that the model has and the proxy was given; 0 while it is on its way. */
  generation: number;
  /** Generation that is on its way. */
  delivered: number;
  /** What was told last by an Event. */
  told?: string;
}

/**
 * Keeps the status of objects in step with the model: writes only what differs, only while leading, never faster than a
 * limit, and never blanks: what a gone replica has published stays until a leader knows better.
 */
export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #dirty = new Set<string>();
  readonly #limiter: RateLimiter;
  readonly #backoff: Backoff;
  readonly #end = new AbortController();
  #addresses: readonly PublishedAddress[] = [];
  #working: Promise<void> | undefined;

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#limiter = new RateLimiter(PER_SECOND, BURST, options.clock);
    this.#backoff = new Backoff(options.random);
  }

  /** What the API server has of an object now. */
  observe({ kind, namespace, name, object }: ObjectChange): void {
    const ref = { kind, namespace, name };
    const key = refText(ref);
    if (object === undefined) {
      this.#entries.delete(key);
      return;
    }
    const { metadata, status } = object as ApiObject;
    const entry = this.#entries.get(key);
    const uid = metadata.uid ?? "";
    if (entry !== undefined && entry.uid === uid) entry.status = status;
    else this.#entries.set(key, { ref, uid, status, generation: 0, delivered: 0 });
    this.#touch(key);
  }

  /** The model is about to take these changes over; what becomes of them is known once they are applied. */
  delivering(changes: readonly ObjectChange[]): void {
    for (const change of changes) {
      const entry = this.#entries.get(refText(change));
      if (entry === undefined) continue;
      entry.generation = 0;
      entry.delivered = (change.object as ApiObject | undefined)?.metadata.generation ?? 0;
    }
  }

  /** Objects whose state may be another one now: the proxy has them, or has refused them. */
  applied(objects: Iterable<string>): void {
    for (const key of objects) {
      const entry = this.#entries.get(key);
      if (entry === undefined) continue;
      entry.generation = entry.delivered;
      this.#touch(key);
    }
  }

  /** Addresses to publish; none publishes none, and leaves what is there. */
  publish(addresses: readonly PublishedAddress[]): void {
    this.#addresses = addresses;
    this.touchAll();
  }

  /** Looks at every object again, as after becoming the leader. */
  touchAll(): void {
    for (const key of this.#entries.keys()) this.#touch(key);
  }

  /** The object that an Event may be about; undefined if the API server does not have it. */
  regarding(ref: ObjectRef): Regarding | undefined {
    const entry = this.#entries.get(refText(ref));
    return entry && regardingOf(entry);
  }

  /** Stops writing; resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#working;
  }

  #touch(key: string): void {
    if (!this.#entries.has(key) || this.#end.signal.aborted) return;
    this.#dirty.add(key);
    if (this.#options.leads()) this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    const { signal } = this.#end;
    // What comes in one turn of the event loop is looked at once.
    await new Promise((resolve) => setImmediate(resolve));
    for (;;) {
      const [key] = this.#dirty;
      if (key === undefined || signal.aborted || !this.#options.leads()) break;
      this.#dirty.delete(key);
      const entry = this.#entries.get(key);
      if (entry !== undefined) await this.#look(key, entry);
    }
    this.#working = undefined;
  }

  async #look(key: string, entry: Entry): Promise<void> {
    const state = this.#options.stateOf(entry.ref);
    // An object that is not taken over yet is looked at once it is; one of another class is somebody else's.
    if (state === undefined || entry.generation === 0 || state.reason === "Ignored") return;
    const wanted = this.#wanted(entry, state);
    const patch = wanted && difference(entry.status, wanted);
    this.#tell(entry, state, patch);
    if (patch === undefined) return;
    await this.#limiter.take(this.#end.signal);
    if (this.#end.signal.aborted || !this.#options.leads()) return;
    try {
      await this.#write(entry, patch);
      this.#backoff.reset();
    } catch (error) {
      await this.#failed(key, error);
    }
  }

  #wanted(entry: Entry, state: ObjectState): Record<string, unknown> | undefined {
    if (entry.ref.kind === "Ingress") {
      return this.#addresses.length === 0 || state.state === "Invalid" ? undefined : ingressStatus(this.#addresses);
    }
    const { referencedBy, wallClock } = this.#options;
    return customStatus({
      state,
      generation: entry.generation,
      addresses: this.#addresses,
      referencedBy: referencedBy(entry.ref),
      before: entry.status,
      wallClock: wallClock(),
    });
  }

  /**
   * An Event for what is new. Kinds with a reason in their status are told of when that changes. An Ingress has none: of
   * its first state in this process only problems are told, or each start would tell of everything.
   */
  #tell(entry: Entry, state: ObjectState, patch: Record<string, unknown> | undefined): void {
    const note = messageOf(state);
    const text = `${entry.generation} ${state.reason} ${note}`;
    const first = entry.told === undefined;
    if (entry.told === text) return;
    entry.told = text;
    const isNews =
      entry.ref.kind === "Ingress"
        ? !first || state.state !== "Valid"
        : patch !== undefined && ("reason" in patch || "message" in patch || "observedGeneration" in patch);
    if (!isNews) return;
    this.#options.events.record(regardingOf(entry), state.state === "Valid" ? "Normal" : "Warning", state.reason, note);
  }

  async #write(entry: Entry, patch: Record<string, unknown>): Promise<void> {
    const { kind, namespace, name } = entry.ref;
    const path = `${resourcePath(typeOf(kind), namespace, name)}/status`;
    // The uid keeps an object that was made anew from getting the status of the old one.
    const body = { metadata: { uid: entry.uid }, status: patch };
    await this.#options.client.request({ method: "PATCH", path, body, signal: this.#end.signal });
    entry.status = { ...(entry.status as Record<string, unknown> | undefined), ...patch };
  }

  async #failed(key: string, error: unknown): Promise<void> {
    const { signal } = this.#end;
    // Gone, or made anew: what comes of it will be observed.
    if (signal.aborted || statusOf(error) === 404 || statusOf(error) === 409) return;
    const problem = plain(error instanceof Error ? error.message : String(error));
    if (this.#backoff.failures === 0) this.#options.logger.warn("cannot write status", { object: key, problem });
    this.#dirty.add(key);
    await this.#options.clock.sleep(this.#backoff.next(), signal);
  }
}

function regardingOf({ ref, uid }: Entry): Regarding {
  const { kind, namespace, name } = ref;
  return { apiVersion: typeOf(kind).apiVersion, kind, namespace, name, uid };
}

function typeOf(kind: Kind) {
  return NAMESPACED_TYPES.find((type) => type.kind === kind)!;
}
