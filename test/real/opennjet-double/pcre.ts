/** Patterns of PCRE over bytes, and without options but `(?i)` at their start, as JavaScript can have them. */

/** What a pattern finds; texts are bytes, a character for each. */
export interface PcrePattern {
  test(text: string): boolean;
  /** The match and its groups; null where there is none. */
  exec(text: string): (string | undefined)[] | null;
}

/** Throws SyntaxError for what can't be said in JavaScript. */
export function pcrePattern(pattern: string, ignoreCase = false): PcrePattern {
  const inside = pattern.startsWith(IGNORE_CASE);
  const { text, groups } = new Translation(pattern.slice(inside ? IGNORE_CASE.length : 0)).whole();
  const compiled = new RegExp(text, ignoreCase || inside ? "i" : "");
  return {
    test: (value) => compiled.test(value),
    exec(value) {
      const found = compiled.exec(value);
      return found && [...found].filter((_, i) => i === 0 || groups[i - 1] === "pattern");
    },
  };
}

const IGNORE_CASE = "(?i)";
const OPENINGS = ["(?:", "(?=", "(?!", "(?<=", "(?<!"];

class Translation {
  readonly #pattern: string;
  #at = 0;
  /** Whose each group of the translation is. */
  readonly #groups: ("pattern" | "translation")[] = [];
  #atomic = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  whole() {
    const text = this.#alternatives();
    if (this.#at < this.#pattern.length) throw this.#unknown();
    return { text, groups: this.#groups };
  }

  #unknown(): SyntaxError {
    return new SyntaxError(`a pattern that can't be tried here, at ${this.#pattern.slice(this.#at, this.#at + 10)}`);
  }

  #take(text: string): boolean {
    if (!this.#pattern.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  /** What the expression finds here, which begins with `^`. */
  #read(expression: RegExp): string | undefined {
    const found = expression.exec(this.#pattern.slice(this.#at))?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #alternatives(): string {
    const options: string[] = [];
    do {
      let option = "";
      while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern[this.#at])) option += this.#quantified();
      options.push(option);
    } while (this.#take("|"));
    return options.join("|");
  }

  #quantified(): string {
    const outer = this.#groups.length;
    const atom = this.#atom();
    const quantifier = this.#read(/^(?:[*+?]|\{\d+(?:,\d*)?\})/);
    if (quantifier === undefined) return atom;
    if (this.#take("?")) return `${atom}${quantifier}?`;
    if (!this.#take("+")) return `${atom}${quantifier}`;
    this.#groups.splice(outer, 0, "translation");
    return this.#once(`${atom}${quantifier}`);
  }

  /** What a lookahead has read stays as it is: like an atomic group. */
  #once(text: string): string {
    const name = `once${++this.#atomic}`;
    return `(?:(?=(?<${name}>${text}))\\k<${name}>)`;
  }

  #atom(): string {
    const escaped = this.#read(/^\\(?:x[0-9A-F]{2}|[bBdDsSwWAz.\-/^$|()[\]*+?])/);
    if (escaped !== undefined) return { "\\A": "^", "\\z": "(?![\\s\\S])" }[escaped] ?? escaped;
    const plain = this.#read(/^(?:\[\^?(?:\\[\s\S]|[^\\\]])+\]|[^\\()[\]*+?{}|])/);
    if (plain !== undefined) return plain;
    // It saves time, and changes nothing.
    if (this.#take("(*SKIP)")) return "";
    if (this.#take("(?>")) {
      this.#groups.push("translation");
      return this.#once(this.#closed());
    }
    const opening = OPENINGS.find((text) => this.#take(text));
    if (opening !== undefined) return `${opening}${this.#closed()})`;
    if (this.#pattern.startsWith("(?", this.#at) || !this.#take("(")) throw this.#unknown();
    this.#groups.push("pattern");
    return `(${this.#closed()})`;
  }

  #closed(): string {
    const text = this.#alternatives();
    if (!this.#take(")")) throw this.#unknown();
    return text;
  }
}
