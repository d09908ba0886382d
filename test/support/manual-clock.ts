import type { Clock } from "../../controller/proxies/opennjet/clock.js";

/** A clock that stands still until it is told to go on. */
export class ManualClock implements Clock {
  #now = 0;
  readonly #waiting = new Map<() => void, number>();

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, task: () => void): () => void {
    const once = () => task();
    this.#waiting.set(once, this.#now + milliseconds);
    return () => this.#waiting.delete(once);
  }

  /** Whether anything waits for a moment in the next `milliseconds`. */
  waits(milliseconds: number): boolean {
    return [...this.#waiting.values()].some((at) => at <= this.#now + milliseconds);
  }

  /** Goes on, with all that is due on the way done in its order. What that begins goes on by itself. */
  advance(milliseconds: number): void {
    const end = this.#now + milliseconds;
    for (;;) {
      const [next] = [...this.#waiting].filter(([, at]) => at <= end).sort(([, a], [, b]) => a - b);
      if (next === undefined) break;
      const [task, at] = next;
      this.#waiting.delete(task);
      this.#now = at;
      task();
    }
    this.#now = end;
  }
}
