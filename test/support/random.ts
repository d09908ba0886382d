/** Pseudo-random choices from a fixed seed (mulberry32), so that every run makes the same cases. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from [0, 2^32). */
  word(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** A whole number from [0, end). */
  below(end: number): number {
    return this.word() % end;
  }

  /** True once in `times` on average. */
  onceIn(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }

  /** `count` picks, with repetition. */
  picks<T>(list: readonly T[], count: number): T[] {
    return Array.from({ length: count }, () => this.pick(list));
  }

  shuffled<T>(list: readonly T[]): T[] {
    const result = [...list];
    for (let i = result.length - 1; i > 0; i--) {
      const other = this.below(i + 1);
      [result[i], result[other]] = [result[other], result[i]];
    }
    return result;
  }
}
