/** A growing buffer of little-endian words and length-prefixed texts, each padded to four bytes. Used again and again. */
export class ByteWriter {
  #bytes = new Uint8Array(4096);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  readonly #encoder = new TextEncoder();

  /** What has been written since the last reset; valid until the next write. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  reset(): void {
    this.#length = 0;
  }

  u32(value: number): void {
    this.#room(4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  /** Where the next word goes; to be filled in later by `patch`. */
  reserve(): number {
    this.u32(0);
    return this.#length - 4;
  }

  patch(position: number, value: number): void {
    this.#view.setUint32(position, value, true);
  }

  /** u32 length in bytes, UTF-8, zeros up to a multiple of 4. */
  text(text: string): void {
    // A character is at most three bytes; eight more are the length and the padding.
    this.#room(text.length * 3 + 8);
    const start = this.#length + 4;
    const bytes = this.#bytes;
    let i = 0;
    for (; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) break;
      bytes[start + i] = code;
    }
    let length = i;
    if (i < text.length) length += this.#encoder.encodeInto(text.slice(i), bytes.subarray(start + i)).written;
    const end = start + length;
    const padded = (end + 3) & ~3;
    for (let at = end; at < padded; at++) bytes[at] = 0;
    this.#view.setUint32(this.#length, length, true);
    this.#length = padded;
  }

  #room(size: number): void {
    if (this.#length + size <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + size));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}
