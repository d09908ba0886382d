import { MAX_IMAGE, pad4 } from "../../assembly/image/layout.js";
import { CoreError } from "../errors.js";

/** From here on one call of the encoder, which takes its time to begin, is faster than a loop. */
const LONG_TEXT = 64;
const ASCII = 127;
const MOST_BYTES_PER_CHARACTER = 3;

const encoder = new TextEncoder();

/**
 * An image while it is being written: a growing run of little-endian words and of texts, each padded to four bytes with
 * zeros. Used again and again. Whatever lies beyond `length` is zero, so that what is reserved need not be cleared.
 *
 * Those who fill in reserved places read `words` and `bytes` anew after each call that appends: both may have moved.
 */
export class ImageWriter {
  bytes = new Uint8Array(1 << 14);
  words = new Int32Array(this.bytes.buffer);
  /** Bytes written, a multiple of 4: where the next part will stand. */
  length = 0;

  /** Begins anew. */
  reset(): void {
    this.bytes.fill(0, 0, this.length);
    this.length = 0;
  }

  /** What has been written; valid until the next call. */
  get written(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** Appends `size` zero bytes, a multiple of 4, and returns their offset. Throws CoreError CORE_LIMIT. */
  reserve(size: number): number {
    const offset = this.length;
    if (offset + size > this.bytes.length) this.#grow(offset + size);
    this.length = offset + size;
    return offset;
  }

  put(word: number): void {
    const offset = this.reserve(4);
    this.words[offset >> 2] = word;
  }

  /** Fills in a reserved word. */
  patch(offset: number, word: number): void {
    this.words[offset >> 2] = word;
  }

  /** Appends a text as UTF-8 and returns its length in bytes; it stands where `length` was before. */
  text(text: string): number {
    const size = text.length;
    const start = this.length;
    const room = start + size * MOST_BYTES_PER_CHARACTER + 4;
    if (room > this.bytes.length) this.#grow(room);
    const { bytes } = this;
    let i = 0;
    if (size < LONG_TEXT) {
      for (; i < size; i++) {
        const code = text.charCodeAt(i);
        if (code > ASCII) break;
        bytes[start + i] = code;
      }
    }
    if (i < size) i += encoder.encodeInto(i > 0 ? text.slice(i) : text, bytes.subarray(start + i)).written;
    this.length = start + pad4(i);
    return i;
  }

  /** Appends a text and stores its offset and length in the two words at `field`. */
  textAt(field: number, text: string): void {
    const start = this.length;
    const size = this.text(text);
    this.words[field >> 2] = start;
    this.words[(field >> 2) + 1] = size;
  }

  /** Appends bytes. */
  append(bytes: Uint8Array): void {
    const offset = this.reserve(pad4(bytes.length));
    this.bytes.set(bytes, offset);
  }

  /** Appends `size` bytes that stand at `offset`, a multiple of 4, of another writer. */
  copy(from: ImageWriter, offset: number, size: number): void {
    const start = this.reserve(pad4(size)) >> 2;
    const { words } = this;
    const source = from.words;
    const whole = size >> 2;
    const first = offset >> 2;
    for (let i = 0; i < whole; i++) words[start + i] = source[first + i];
    if (size & 3) words[start + whole] = source[first + whole] & ((1 << ((size & 3) << 3)) - 1);
  }

  #grow(size: number): void {
    if (size > MAX_IMAGE) throw new CoreError("CORE_LIMIT", `an image is larger than ${MAX_IMAGE} bytes`);
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, pad4(size)));
    grown.set(this.written);
    this.bytes = grown;
    this.words = new Int32Array(grown.buffer);
  }
}
