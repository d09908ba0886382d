/** Random numbers with a fixed seed: every run has the same work to do. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 1;
  }

  /** A number from [0, below). */
  next(below: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % below;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.next(list.length)];
  }
}
