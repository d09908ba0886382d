import type { Target } from "./target.js";

/** Targets by the time at which they are due: a binary heap that knows the place of each, so that any can be taken out. */
export class Schedule {
  readonly #heap: Target[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** When the next one is due; undefined if there is none. */
  get nextDue(): number | undefined {
    return this.#heap[0]?.due;
  }

  /** Puts a target in by its `due`. It must not be there yet. */
  add(target: Target): void {
    this.#heap.push(target);
    this.#up(target, this.#heap.length - 1);
  }

  /** Takes a target out, if it is there. */
  remove(target: Target): void {
    const { place } = target;
    if (place < 0) return;
    target.place = -1;
    const last = this.#heap.pop() as Target;
    if (last === target) return;
    this.#up(last, place);
    this.#down(last, last.place);
  }

  /** Takes the next one out if it is due at `now`. */
  take(now: number): Target | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.due > now) return undefined;
    this.remove(first);
    return first;
  }

  #up(target: Target, from: number): void {
    let place = from;
    while (place > 0) {
      const above = this.#heap[(place - 1) >> 1];
      if (above.due <= target.due) break;
      this.#put(above, place);
      place = (place - 1) >> 1;
    }
    this.#put(target, place);
  }

  #down(target: Target, from: number): void {
    let place = from;
    for (;;) {
      let child = place * 2 + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && this.#heap[child + 1].due < this.#heap[child].due) child++;
      if (this.#heap[child].due >= target.due) break;
      this.#put(this.#heap[child], place);
      place = child;
    }
    this.#put(target, place);
  }

  #put(target: Target, place: number): void {
    this.#heap[place] = target;
    target.place = place;
  }
}
