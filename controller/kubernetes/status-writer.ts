import { isDeepStrictEqual } from "node:util";
import type { ObjectState } from "../model/object-state.js";
import type { ObjectChange } from "../model/routing-model.js";
import type { Logger } from "../observability/logger.js";
import { type Kind, type ObjectRef, refText } from "../resources/object-ref.js";
import { plain } from "../resources/problem.js";
import type { ApiClient } from "./api-client.js";
import { statusOf } from "./api-error.js";
import type { ApiObject } from "./api-object.js";
import type { Clock } from "./clock.js";
import type { EventRecorder, Regarding } from "./event-recorder.js";
import { NAMESPACED_TYPES, resourcePath } from "./resource-type.js";
import { customStatus, difference, ingressStatus, messageOf, type PublishedAddress } from "./status-content.js";
import { type PaceLimits, WritePace } from "./write-pace.js";

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

/** At most as many as client-go's own controllers are commonly given; a write is a small transaction of etcd. */
const PACE: PaceLimits = { start: 50, least: 5, most: 250, burst: 50, together: 8 };
/** Objects that are looked at before changes and requests get their turn. */
const LOOKS_PER_TURN = 16;

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
  /** Objects whose status is being written. */
  readonly #writing = new Map<string, Promise<void>>();
  readonly #pace: WritePace;
  readonly #end = new AbortController();
  #addresses: readonly PublishedAddress[] = [];
  #working: Promise<void> | undefined;

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#pace = new WritePace(PACE, options.clock, options.random);
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
    if (isDeepStrictEqual(addresses, this.#addresses)) return;
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
    await Promise.all([this.#working, ...this.#writing.values()]);
  }

  #touch(key: string): void {
    if (!this.#entries.has(key) || this.#end.signal.aborted) return;
    this.#dirty.add(key);
    // One that is being written is looked at again when that has ended.
    if (this.#options.leads() && !this.#writing.has(key)) this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    const { signal } = this.#end;
    let looks = 0;
    // What comes meanwhile is met further on in the same loop.
    for (const key of this.#dirty) {
      // What comes in one turn of the event loop is looked at once, and no long row of objects holds up anything else.
      if (looks++ % LOOKS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      if (this.#writing.has(key)) continue;
      let found = this.#look(key);
      if (found?.patch !== undefined) {
        await this.#pace.turn(signal);
        // It may be another one by then.
        found = this.#look(key);
      }
      if (signal.aborted || !this.#options.leads()) break;
      this.#dirty.delete(key);
      if (found === undefined) continue;
      this.#tell(found.entry, found.state, found.patch);
      if (found.patch !== undefined) this.#keep(key, found.entry, found.patch);
    }
    this.#working = undefined;
  }

  /** An object with what its status lacks. Undefined for one that is not taken over yet, or is somebody else's. */
  #look(key: string): { entry: Entry; state: ObjectState; patch: Record<string, unknown> | undefined } | undefined {
    const entry = this.#entries.get(key);
    const state = entry && this.#options.stateOf(entry.ref);
    if (state === undefined || entry === undefined || entry.generation === 0 || state.reason === "Ignored") return;
    const wanted = this.#wanted(entry, state);
    return { entry, state, patch: wanted && difference(entry.status, wanted) };
  }

  /** Writes, beside other writes. */
  #keep(key: string, entry: Entry, patch: Record<string, unknown>): void {
    const write = this.#pace
      .make(() => this.#write(entry, patch))
      .catch((error: unknown) => this.#failed(key, error))
      .finally(() => {
        this.#writing.delete(key);
        if (this.#dirty.delete(key)) this.#touch(key);
      });
    this.#writing.set(key, write);
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

  #failed(key: string, error: unknown): void {
    // Gone, or made anew: what comes of it will be observed.
    if (this.#end.signal.aborted || statusOf(error) === 404 || statusOf(error) === 409) return;
    const problem = plain(error instanceof Error ? error.message : String(error));
    const isRefused = statusOf(error) === 400 || statusOf(error) === 422;
    if (isRefused || this.#pace.failures <= 1) {
      this.#options.logger.warn("cannot write status", { object: key, problem });
    }
    // What is refused for good would be refused again; it is tried with the next change.
    if (!isRefused) this.#dirty.add(key);
  }
}

function regardingOf({ ref, uid }: Entry): Regarding {
  const { kind, namespace, name } = ref;
  return { apiVersion: typeOf(kind).apiVersion, kind, namespace, name, uid };
}

function typeOf(kind: Kind) {
  return NAMESPACED_TYPES.find((type) => type.kind === kind)!;
}
