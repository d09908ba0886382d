import { coreError } from "./core.js";
import type { CoreExports } from "./core-exports.js";
import { CoreError } from "./errors.js";

/** States of the machine, by their numbers in the core. */
export const HEALTH_STATES = ["unchecked", "up", "down", "draining", "slow-start"] as const;

/** What is known of a peer. `slow-start` is up, with a weight that still rises. */
export type HealthState = (typeof HEALTH_STATES)[number];

/** The rule of a peer. */
export interface HealthRule {
  /** Failures in a row that take the peer out, 1 to 32,767. */
  fails: number;
  /** Passes in a row that bring it back, and that it needs to count as up at first. 1 to 32,767. */
  passes: number;
  /** Milliseconds that a peer which comes back is in `slow-start`; 0, as by default: none. */
  slowStart?: number;
  /** The peer takes no new clients. Its checks only tell whether it is down. */
  drains?: boolean;
}

/** A peer that is in another state now. */
export interface HealthTransition {
  slot: number;
  state: HealthState;
}

const MOST = 0x7fff;
const DRAINS = 8;
const KEEP = 16;
const FIRST_SLOTS = 16;
const FIRST_BATCH = 256;
const E_STATE = -11;

/** The exports of core.wasm for health checks; ABI.md describes each. */
export type HealthExports = Pick<
  CoreExports,
  "memory" | "alloc" | "free" | "health_new" | "health_set" | "health_state" | "health_report"
>;

/**
 * The rise/fall machine of active health checks, in the core's memory: one slot for each peer. `now` is in milliseconds
 * of any clock that goes forward evenly; it may wrap at 2^32. A tracker holds memory of the core until `free`.
 */
export class HealthTracker {
  readonly #core: HealthExports;
  #tracker: number;
  #slots = FIRST_SLOTS;
  /** Room for a batch of results, where the transitions are written too. */
  #batch = 0;
  #batchSize = 0;
  #free: number[] = [];
  #used = 0;
  #size = 0;

  /** Throws CoreError CORE_MEMORY. */
  constructor(core: { readonly exports: HealthExports }) {
    this.#core = core.exports;
    this.#tracker = this.#core.health_new(FIRST_SLOTS, 0);
    if (!this.#tracker) throw coreError(-9, "making a health tracker");
  }

  /** Number of slots in use. */
  get size(): number {
    return this.#size;
  }

  /**
   * A slot for a peer, beginning with `state`: `unchecked`, or what was known of it before. Throws CoreError
   * CORE_SOURCE_INVALID for a rule out of range, CORE_MEMORY.
   */
  add(rule: HealthRule, now: number, state: HealthState = "unchecked"): number {
    const tracker = this.#live();
    const slot = this.#free.pop() ?? this.#used++;
    try {
      if (slot >= this.#slots) this.#grow(tracker);
      this.#set(slot, rule, HEALTH_STATES.indexOf(state), now);
    } catch (error) {
      this.#free.push(slot);
      throw error;
    }
    this.#size++;
    return slot;
  }

  /** Changes the rule of a peer, which keeps its state unless `state` is given. Throws as `add`. */
  change(slot: number, rule: HealthRule, now: number, state?: HealthState): void {
    this.state(slot);
    this.#set(slot, rule, state === undefined ? KEEP : HEALTH_STATES.indexOf(state), now);
  }

  /** Gives a slot back; the next `add` may get it. */
  remove(slot: number): void {
    this.state(slot);
    this.#core.health_set(this.#tracker, slot, 0, 0, 0, 0);
    this.#free.push(slot);
    this.#size--;
  }

  /** Throws CoreError CORE_STATE for a slot that is free. */
  state(slot: number): HealthState {
    return HEALTH_STATES[this.#word(slot) & 255];
  }

  /** Passes in a row; below zero, failures in a row. Throws as `state`. */
  streak(slot: number): number {
    return (this.#word(slot) >> 8) - 0x8000;
  }

  /**
   * Takes results in, in order: words of slot * 2 + 1 for a pass and slot * 2 for a failure. Those of slots that are free
   * are passed over. Returns the peers that changed; one that changed twice comes twice.
   */
  report(results: ArrayLike<number>, now: number): HealthTransition[] {
    const count = results.length;
    const tracker = this.#live();
    if (count > this.#batchSize) this.#growBatch(count);
    const words = new Uint32Array(this.#core.memory.buffer, this.#batch, count);
    words.set(results);
    const changed = this.#core.health_report(tracker, this.#batch, count, now, this.#batch);
    if (changed < 0) throw coreError(changed, "reporting results of health checks");
    return Array.from(words.subarray(0, changed), (word) => ({ slot: word >>> 3, state: HEALTH_STATES[word & 7] }));
  }

  /** Gives the memory back. Every later call throws. */
  free(): void {
    if (this.#tracker) this.#core.free(this.#tracker);
    if (this.#batch) this.#core.free(this.#batch);
    this.#tracker = 0;
    this.#batch = 0;
  }

  #live(): number {
    if (!this.#tracker) throw new CoreError("CORE_STATE", "the health tracker was freed");
    return this.#tracker;
  }

  #word(slot: number): number {
    const word = this.#core.health_state(this.#live(), slot);
    if (word < 0) throw coreError(E_STATE, `no peer has the slot ${slot}`);
    return word;
  }

  #set(slot: number, rule: HealthRule, state: number, now: number): void {
    const { fails, passes, slowStart = 0, drains = false } = rule;
    const allowed = (value: number) => Number.isInteger(value) && value > 0 && value <= MOST;
    if (!allowed(fails) || !allowed(passes) || !(slowStart >= 0 && slowStart < 2 ** 32)) {
      throw new CoreError("CORE_SOURCE_INVALID", `fails ${fails}, passes ${passes}, slow start ${slowStart}`);
    }
    const word = state | (drains ? DRAINS : 0);
    const status = this.#core.health_set(this.#live(), slot, passes | (fails << 16), slowStart, word, now);
    if (status < 0) throw coreError(status, "setting the health of a peer");
  }

  #grow(tracker: number): void {
    const grown = this.#core.health_new(this.#slots * 2, tracker);
    if (!grown) throw coreError(-9, "growing a health tracker");
    this.#tracker = grown;
    this.#slots *= 2;
  }

  #growBatch(count: number): void {
    const size = Math.max(FIRST_BATCH, count);
    const block = this.#core.alloc(size * 4);
    if (!block) throw coreError(-9, "growing a batch of results");
    if (this.#batch) this.#core.free(this.#batch);
    this.#batch = block;
    this.#batchSize = size;
  }
}
