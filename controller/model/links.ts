/** Which items depend on which: a map from a source to the items linked to it, with a count for repeated links. */
export class Links {
  readonly #bySource = new Map<string, Map<string, number>>();

  link(source: string, item: string): void {
    const items = this.#bySource.get(source) ?? new Map<string, number>();
    this.#bySource.set(source, items);
    items.set(item, (items.get(item) ?? 0) + 1);
  }

  /** Takes back one link; the item stays linked as often as it was linked besides. */
  unlink(source: string, item: string): void {
    const items = this.#bySource.get(source);
    const count = items?.get(item);
    if (items === undefined || count === undefined) return;
    if (count > 1) items.set(item, count - 1);
    else items.delete(item);
    if (items.size === 0) this.#bySource.delete(source);
  }

  /** The items linked to `source`, each once. */
  of(source: string): Iterable<string> {
    return this.#bySource.get(source)?.keys() ?? [];
  }

  sources(): Iterable<string> {
    return this.#bySource.keys();
  }
}
