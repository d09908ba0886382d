/** Words of an image that hold its checksum: shards and peer sets have it at the same place (ABI.md). */
const CHECKSUM_LOW = 2;
const CHECKSUM_HIGH = 3;
/** After so many changes of the table what is kept is forgotten, so that images that are gone don't stay for ever. */
const CHANGES = 1024;

/**
 * What was read from images, by their address. An address may be given to another image later: an entry counts only while
 * the image there has the checksum that it had. So a change of one host or upstream makes nothing else be read again.
 */
export class ImageCache<T> {
  readonly #entries = new Map<number, { low: number; high: number; value: T }>();
  #changes = 0;

  /** What `read` made of the image at `image`. `words` is the memory of the core as it is now. */
  get(words: Int32Array, image: number, read: (image: number) => T): T {
    const at = image >> 2;
    const low = words[at + CHECKSUM_LOW];
    const high = words[at + CHECKSUM_HIGH];
    const known = this.#entries.get(image);
    if (known && known.low === low && known.high === high) return known.value;
    const value = read(image);
    this.#entries.set(image, { low, high, value });
    return value;
  }

  /** To be called for every change of the table. */
  changed(): void {
    this.#changes = (this.#changes + 1) % CHANGES;
    if (this.#changes === 0) this.#entries.clear();
  }
}
