import { ApiError } from "./api-error.js";
import { Backoff } from "./backoff.js";
import type { Clock } from "./clock.js";

export interface PaceLimits {
  /** Writes a second: at the beginning, after every sign of trouble, and where the API server has ease. */
  start: number;
  least: number;
  most: number;
  /** Writes that may be made at once after a quiet time. */
  burst: number;
  /** Writes under way. */
  together: number;
}

/** An answer that takes so long says that the API server has more to do than it can: its queues (API priority and fairness) are full. */
const SLOW_MS = 250;
/** A quick answer raises the rate by so many writes a second. */
const RAISE = 1;
/** Slow answers lower it, once in so long: those that are under way together tell of one and the same moment. */
const LOWER_FACTOR = 0.5;
const LOWER_EVERY_MS = 1000;

/**
 * How fast something may be written that is not urgent: faster while the API server answers quickly, half as fast when it is slow
 * or refuses, and not at all for as long as it asks for. Additive increase and multiplicative decrease, as TCP does it: several
 * writers find their shares, and whatever else the server does comes first.
 */
export class WritePace {
  readonly #limits: PaceLimits;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  #perSecond: number;
  #tokens: number;
  #filledAt: number;
  #pausedUntil: number;
  #loweredAt = Number.NEGATIVE_INFINITY;
  #under = 0;
  #placeFree: () => void = () => undefined;

  constructor(limits: PaceLimits, clock: Clock, random: () => number) {
    this.#limits = limits;
    this.#clock = clock;
    this.#backoff = new Backoff(random);
    this.#perSecond = limits.start;
    this.#tokens = limits.burst;
    this.#filledAt = clock.now();
    this.#pausedUntil = this.#filledAt;
  }

  /** Writes a second that are allowed now. */
  get perSecond(): number {
    return this.#perSecond;
  }

  /** Failures since the last success. */
  get failures(): number {
    return this.#backoff.failures;
  }

  /** Resolves when a write may begin, or when `signal` is aborted. One may wait at a time. */
  async turn(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wait = this.#wait();
      if (this.#under >= this.#limits.together) await this.#free(signal);
      else if (wait > 0) await this.#clock.sleep(wait, signal);
      else return;
    }
  }

  /** Makes the write whose turn it is, and learns from how it goes. Rejects as `write` does. */
  async make<T>(write: () => Promise<T>): Promise<T> {
    this.#tokens -= 1;
    this.#under += 1;
    const begun = this.#clock.now();
    try {
      const result = await write();
      this.#backoff.reset();
      if (this.#clock.now() - begun > SLOW_MS) this.#lower();
      else this.#perSecond = Math.min(this.#limits.most, this.#perSecond + RAISE);
      return result;
    } catch (error) {
      if (isTrouble(error)) {
        this.#lower();
        const pause = this.#backoff.next(error instanceof ApiError ? error.retryAfter : 0);
        this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.now() + pause);
      }
      throw error;
    } finally {
      this.#under -= 1;
      this.#placeFree();
    }
  }

  /** Milliseconds until the next write may begin. */
  #wait(): number {
    const now = this.#clock.now();
    const earned = ((now - this.#filledAt) / 1000) * this.#perSecond;
    this.#tokens = Math.min(this.#limits.burst, this.#tokens + earned);
    this.#filledAt = now;
    const forToken = this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) / this.#perSecond) * 1000);
    return Math.max(this.#pausedUntil - now, forToken);
  }

  #lower(): void {
    const now = this.#clock.now();
    if (now - this.#loweredAt < LOWER_EVERY_MS) return;
    this.#loweredAt = now;
    this.#perSecond = Math.max(this.#limits.least, this.#perSecond * LOWER_FACTOR);
    this.#tokens = Math.min(this.#tokens, 1);
  }

  #free(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener("abort", end);
        this.#placeFree = () => undefined;
        resolve();
      };
      this.#placeFree = end;
      signal.addEventListener("abort", end);
    });
  }
}

/** Answers that are about this one write: it is refused for good, or its object is gone or another one. */
const OWN_FAULTS: readonly number[] = [400, 404, 409, 422];

/** Whether other writes would fare no better: the server refuses for now, fails, can't be reached, or gives us no rights. */
function isTrouble(error: unknown): boolean {
  return !(error instanceof ApiError) || !OWN_FAULTS.includes(error.status);
}
