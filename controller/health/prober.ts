import type { Probe } from "./attempt.js";
import type { HealthBoard, PeerHealth } from "./board.js";
import type { Outcome, Target } from "./target.js";

/** Probes that are due within so many milliseconds start together: fewer turns of the event loop. */
const TURN = 5;
/** How often the oldest probe is looked at while others wait for its place. */
const LOOK = 50;
/** The longest time that a timer takes. */
const LONGEST = 2 ** 31 - 1;

export interface ProberOptions {
  /** Probes under way at most, which bounds sockets and file descriptors. */
  limit: number;
  /** Milliseconds of a clock that only goes forward. */
  now: () => number;
  onTransitions: (changed: PeerHealth[]) => void;
}

/** Numbers of a prober, since it began or right now. */
export interface ProberCounts {
  ended: number;
  failed: number;
  underWay: number;
  waiting: number;
}

/**
 * Carries out what a board has due. Each probe runs by itself: one that hangs holds up no other. Where `limit` probes are
 * under way the next ones wait; one that has been under way for longer than its interval then makes room, as a failure.
 */
export class Prober {
  readonly #board: HealthBoard;
  readonly #probe: Probe;
  readonly #options: ProberOptions;
  /** Probes under way, the oldest first. */
  readonly #underWay = new Map<Target, { begun: number; cancel: () => void }>();
  /** Due, and without a place. */
  readonly #waiting = new Set<Target>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: NodeJS.Immediate | undefined;
  #ended = 0;
  #failed = 0;
  #closed = false;

  constructor(board: HealthBoard, probe: Probe, options: ProberOptions) {
    this.#board = board;
    this.#probe = probe;
    this.#options = options;
  }

  get counts(): ProberCounts {
    return {
      ended: this.#ended,
      failed: this.#failed,
      underWay: this.#underWay.size,
      waiting: this.#waiting.size,
    };
  }

  /** To be called when the board has changed: something may be due earlier, or be in another state. */
  wake(): void {
    this.#arm();
    this.#flushSoon();
  }

  /** Ends the probe of a target that nobody needs any more. */
  drop(target: Target): void {
    this.#waiting.delete(target);
    this.#finish(target, undefined);
  }

  /** Ends everything. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearImmediate(this.#flushing);
    for (const { cancel } of this.#underWay.values()) cancel();
    this.#underWay.clear();
    this.#waiting.clear();
  }

  #arm(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    const untilDue = (this.#board.nextDue ?? Infinity) - this.#options.now();
    const wait = Math.max(Math.min(untilDue, this.#waiting.size > 0 ? LOOK : LONGEST), TURN);
    if (untilDue < Infinity || this.#waiting.size > 0) this.#timer = setTimeout(() => this.#turn(), wait);
  }

  #turn(): void {
    const now = this.#options.now();
    for (let target = this.#board.take(now); target !== undefined; target = this.#board.take(now)) {
      this.#waiting.add(target);
    }
    this.#startWaiting();
    this.#arm();
  }

  #startWaiting(): void {
    for (const target of this.#waiting) {
      if (this.#underWay.size >= this.#options.limit && !this.#makeRoom()) return;
      this.#waiting.delete(target);
      this.#start(target);
    }
  }

  /** Ends the oldest probe if it has had its interval. */
  #makeRoom(): boolean {
    const [oldest] = this.#underWay;
    if (oldest === undefined) return false;
    const [target, { begun }] = oldest;
    if (this.#options.now() - begun < target.check.interval) return false;
    this.#finish(target, { passed: false, reason: "no answer within the interval" });
    return true;
  }

  #start(target: Target): void {
    const entry = { begun: this.#options.now(), cancel: () => {} };
    this.#underWay.set(target, entry);
    entry.cancel = this.#probe(target, (outcome) => {
      // One that was ended before its outcome is not asked any more.
      if (this.#underWay.get(target) === entry) this.#finish(target, outcome);
    });
  }

  #finish(target: Target, outcome: Outcome | undefined): void {
    const entry = this.#underWay.get(target);
    this.#underWay.delete(target);
    entry?.cancel();
    if (outcome !== undefined) {
      this.#ended++;
      if (!outcome.passed) this.#failed++;
    }
    const { nextDue } = this.#board;
    this.#board.finish(target, outcome, this.#options.now());
    // The turn that is set stands, unless this one comes earlier.
    if (nextDue === undefined || (this.#board.nextDue ?? nextDue) < nextDue) this.#arm();
    this.#flushSoon();
  }

  /** What ends in one turn of the event loop goes to the core as one batch. */
  #flushSoon(): void {
    if (this.#closed) return;
    this.#flushing ??= setImmediate(() => {
      this.#flushing = undefined;
      const changed = this.#board.flush(this.#options.now());
      if (changed.length > 0) this.#options.onTransitions(changed);
      if (this.#waiting.size > 0) this.#startWaiting();
    });
  }
}
