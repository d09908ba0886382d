import { ImageWriter } from "./image-writer.js";

const LONE_SURROGATE = /\p{Surrogate}/u;
const EVERY_LONE_SURROGATE = /\p{Surrogate}/gu;
const REPLACEMENT = "\ufffd";
const MOST_TEXTS = 4096;
const MOST_BYTES = 1 << 20;

/**
 * Texts in the form that lists of an image have: u32 length, UTF-8, padded to four bytes. One host mostly names what the
 * one before it has named, so they are kept from one image to the next, up to a bound.
 */
export class TextStore {
  readonly #ids = new Map<string, number>();
  /** Where the text of an id stands in `texts`: its length, then its bytes. */
  readonly starts: number[] = [];
  readonly texts = new ImageWriter();

  /** To be called between two images: ids do not outlive it. */
  renew(): void {
    if (this.starts.length <= MOST_TEXTS && this.texts.length <= MOST_BYTES) return;
    this.#ids.clear();
    this.starts.length = 0;
    this.texts.reset();
  }

  /** The id of a text: the same for the same UTF-8 bytes. */
  id(text: string): number {
    return this.#ids.get(text) ?? this.#add(text);
  }

  /** Length of a text in bytes. */
  size(id: number): number {
    return this.texts.words[this.starts[id] >> 2];
  }

  #add(text: string): number {
    // As UTF-8 all lone surrogates are one character: texts that differ in them only are the same in an image.
    if (LONE_SURROGATE.test(text)) {
      const id = this.id(text.replace(EVERY_LONE_SURROGATE, REPLACEMENT));
      this.#ids.set(text, id);
      return id;
    }
    const start = this.texts.reserve(4);
    const size = this.texts.text(text);
    this.texts.patch(start, size);
    const id = this.starts.push(start) - 1;
    this.#ids.set(text, id);
    return id;
  }
}

/** Distinct texts of a store in the order of their first use, each with an index. */
export class TextList {
  count = 0;
  /** Ids of the texts by index, and indices by id: an id is in the list if the two agree. */
  #ids = new Int32Array(64);
  #indices = new Int32Array(64);
  /** Rules of one host mostly name one text again and again. */
  #last: string | undefined;
  #lastIndex = 0;
  readonly #store: TextStore;

  constructor(store: TextStore) {
    this.#store = store;
  }

  reset(): void {
    this.count = 0;
    this.#last = undefined;
  }

  /** The index of a text, which is added if it is new. */
  add(text: string): number {
    if (text === this.#last) return this.#lastIndex;
    const id = this.#store.id(text);
    if (id >= this.#indices.length) this.#grow(id);
    let index = this.#indices[id];
    if (index >= this.count || this.#ids[index] !== id) {
      index = this.count++;
      this.#ids[index] = id;
      this.#indices[id] = index;
    }
    this.#last = text;
    this.#lastIndex = index;
    return index;
  }

  /** The index of a text, -1 if it is not in the list. */
  indexOf(text: string): number {
    const id = this.#store.id(text);
    const index = this.#indices[id];
    return index < this.count && this.#ids[index] === id ? index : -1;
  }

  /** Appends each text: u32 length, text. */
  put(out: ImageWriter): void {
    const { texts, starts } = this.#store;
    for (let i = 0; i < this.count; i++) {
      const id = this.#ids[i];
      out.copy(texts, starts[id], 4 + this.#store.size(id));
    }
  }

  /** Appends the texts without their lengths; stores offset and length of each in two words from `field` on. */
  putAt(out: ImageWriter, field: number): void {
    const { texts, starts } = this.#store;
    for (let i = 0; i < this.count; i++, field += 8) {
      const id = this.#ids[i];
      const size = this.#store.size(id);
      out.patch(field, out.length);
      out.patch(field + 4, size);
      out.copy(texts, starts[id] + 4, size);
    }
  }

  #grow(id: number): void {
    const ids = new Int32Array(id * 2);
    const indices = new Int32Array(id * 2);
    ids.set(this.#ids);
    indices.set(this.#indices);
    this.#ids = ids;
    this.#indices = indices;
  }
}
