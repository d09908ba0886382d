const LONE_SURROGATE = /\p{Surrogate}/gu;
const REPLACEMENT = "\ufffd";

/** Distinct texts in the order of their first use, each with an index. */
export class TextList {
  readonly texts: string[] = [];
  readonly #indices = new Map<string, number>();
  /** Lists of hosts mostly name one text again and again. */
  #last: string | undefined;
  #lastIndex = 0;

  reset(): void {
    if (this.texts.length === 0) return;
    this.texts.length = 0;
    this.#indices.clear();
    this.#last = undefined;
  }

  /** The index of a text, which is added if it is new. */
  add(text: string): number {
    if (text === this.#last) return this.#lastIndex;
    const index = this.#indices.get(text) ?? this.#append(text);
    this.#last = text;
    this.#lastIndex = index;
    return index;
  }

  /** The index of a text, -1 if it is not in the list. */
  indexOf(text: string): number {
    return this.#indices.get(text) ?? -1;
  }

  #append(text: string): number {
    // As UTF-8 all lone surrogates are one character: texts that differ in them only are the same in an image.
    const formed = text.replace(LONE_SURROGATE, REPLACEMENT);
    let index = this.#indices.get(formed);
    if (index === undefined) {
      index = this.texts.push(formed) - 1;
      this.#indices.set(formed, index);
    }
    if (formed !== text) this.#indices.set(text, index);
    return index;
  }
}
