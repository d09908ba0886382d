const BASE = 200;
const CAP = 10_000;

/**
 * Growing pauses with jitter: 200 ms doubled with each failure in a row, at most 10 s, of which a random half is left
 * out so that many clients do not come back together. `random` gives numbers from 0 up to 1.
 */
export class Backoff {
  readonly #random: () => number;
  #failures = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds to wait after another failure; never less than `least`. */
  next(least = 0): number {
    const full = Math.min(CAP, BASE * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    return Math.max(least, Math.round(full * (1 - this.#random() / 2)));
  }

  reset(): void {
    this.#failures = 0;
  }
}
