import type { Clock } from "./clock.js";

/** Lets at most `burst` things happen at once and `perSecond` in the long run. */
export class RateLimiter {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #clock: Clock;
  #tokens: number;
  #filledAt: number;

  constructor(perSecond: number, burst: number, clock: Clock) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#clock = clock;
    this.#tokens = burst;
    this.#filledAt = clock.now();
  }

  /** Resolves when it is one's turn, or when `signal` is aborted. */
  async take(signal: AbortSignal): Promise<void> {
    const now = this.#clock.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond) - 1;
    this.#filledAt = now;
    if (this.#tokens < 0) await this.#clock.sleep((-this.#tokens / this.#perSecond) * 1000, signal);
  }
}
