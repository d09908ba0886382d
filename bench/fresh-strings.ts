/**
 * Strings as a proxy gets them: new for every request.
 *
 * A string that was looked up before carries its hash, and V8 may have interned it; a string made by concatenation is a
 * tree that is flattened when it is first read. Either would make a benchmark measure something else than a request. Here
 * each pass decodes every string anew from bytes as Latin-1, which makes a flat one-byte string that nobody has
 * seen, outside the time that is measured. (Node's HTTP parser makes its strings in the same way.)
 */
export class FreshStrings {
  readonly #bytes: Buffer;
  readonly #ends: Uint32Array;
  /** The strings of the current pass. The array is reused, its strings are not. */
  readonly strings: string[];

  constructor(texts: readonly string[]) {
    this.#bytes = Buffer.from(texts.join(""), "latin1");
    this.#ends = new Uint32Array(texts.length);
    let end = 0;
    texts.forEach((text, i) => {
      end += text.length;
      this.#ends[i] = end;
    });
    this.strings = new Array<string>(texts.length).fill("");
  }

  /** Makes all strings anew. */
  renew(): void {
    let start = 0;
    for (let i = 0; i < this.strings.length; i++) {
      const end = this.#ends[i];
      this.strings[i] = this.#bytes.toString("latin1", start, end);
      start = end;
    }
  }
}
