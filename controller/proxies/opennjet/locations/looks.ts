import type { Expected } from "./held-locations.js";
import { locationKey } from "./location-set.js";

/** As many as a worker is asked about at a look: it answers them in a few milliseconds. */
const SLICE = 64;

/**
 * What each worker is asked about at a look: what was wrong before, and by turns a slice of all, so that by and by it is asked about
 * everything, however often the whole changes. And how often what is wrong is repaired.
 */
export class Looks {
  /** By process: the key of what it was asked about last. */
  readonly #last = new Map<string, string>();
  #suspects: ReadonlySet<string> = new Set();
  /** Looks in a row at which something was wrong. */
  #missed = 0;

  /** `most`: processes whose turn is kept. Those that were not asked for the longest time are forgotten. */
  constructor(private readonly most: number) {}

  /** What a worker, any worker, said otherwise than expected. */
  suspect(wrong: readonly Expected[]): void {
    this.#suspects = new Set(wrong.map(({ location }) => locationKey(location)));
  }

  /** For a look at all of these: what a process is asked about. */
  of(expected: readonly Expected[]): (process: string) => Expected[] {
    const all = [...expected].sort((a, b) => (locationKey(a.location) < locationKey(b.location) ? -1 : 1));
    const suspects = all.filter(({ location }) => this.#suspects.has(locationKey(location)));
    return (process) => [...new Set([...suspects, ...this.#next(process, all)])];
  }

  /**
   * After a look: whether it is time for a repair. A worker that hangs is not to be sent everything at each look: at the first, second,
   * fourth, eighth at which something is wrong.
   */
  isDue(isRight: boolean): boolean {
    this.#missed = isRight ? 0 : this.#missed + 1;
    return !isRight && (this.#missed & (this.#missed - 1)) === 0;
  }

  #next(process: string, all: readonly Expected[]): Expected[] {
    const last = this.#last.get(process) ?? "";
    const from = all.findIndex(({ location }) => locationKey(location) > last);
    const slice = [...all.slice(Math.max(from, 0)), ...all.slice(0, Math.max(from, 0))].slice(0, SLICE);
    const end = slice.at(-1);
    // Kept in the order in which they were asked.
    this.#last.delete(process);
    if (end !== undefined) this.#last.set(process, locationKey(end.location));
    for (const old of this.#last.keys()) {
      if (this.#last.size <= this.most) break;
      this.#last.delete(old);
    }
    return slice;
  }
}
