import type { ObjectMeta } from "../resources/metadata.js";
import { refText } from "../resources/object-ref.js";

/**
 * Orders objects from the oldest: creationTimestamp (none counts as oldest), then the greater UID, then namespace/name,
 * then kind. Total, so that every replica finds the same winner.
 */
export function compareAge(a: ObjectMeta, b: ObjectMeta): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return (
    compareText(b.uid, a.uid) ||
    compareText(a.ref.namespace, b.ref.namespace) ||
    compareText(a.ref.name, b.ref.name) ||
    compareText(a.ref.kind, b.ref.kind)
  );
}

/** Order by UTF-16 code units: the same on every machine, unlike localeCompare. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Items sorted by the age of their object, at most one of each object. Changes cost a binary search. */
export class AgeOrdered<T extends { meta: ObjectMeta }> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** The item of the oldest object. */
  get oldest(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    const index = this.#indexOf(item.meta);
    const found = this.#items[index];
    const same = found !== undefined && compareAge(found.meta, item.meta) === 0;
    this.#items.splice(index, same ? 1 : 0, item);
  }

  /** The same items in a list of its own. */
  copy(): AgeOrdered<T> {
    const copy = new AgeOrdered<T>();
    copy.#items.push(...this.#items);
    return copy;
  }

  /** Takes out the item of the object with this very age and name. */
  remove(meta: ObjectMeta): void {
    const index = this.#indexOf(meta);
    const found = this.#items[index];
    if (found !== undefined && refText(found.meta.ref) === refText(meta.ref)) this.#items.splice(index, 1);
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#items[Symbol.iterator]();
  }

  /** Position of the first item that is not older than `meta`. */
  #indexOf(meta: ObjectMeta): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareAge(this.#items[middle].meta, meta) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
