/** Patterns in the syntax of the core (RE2 over bytes, core-wasm/assembly/regex) as trees, case folded into the sets. */
import { UnsupportedError } from "../../plan-step.js";
import { type ByteSet, byteSet, complement, folded, unite } from "./byte-set.js";
import { shown } from "./shown.js";

export type Assertion = "begin" | "end" | "begin-line" | "end-line" | "word-edge" | "no-word-edge";

export type PatternNode =
  | { kind: "bytes"; set: ByteSet }
  | { kind: "sequence"; items: PatternNode[] }
  | { kind: "choice"; options: PatternNode[] }
  /** `most` may be Infinity. */
  | { kind: "repeat"; item: PatternNode; least: number; most: number; lazy: boolean }
  | { kind: "assertion"; what: Assertion }
  /** A capturing group; they are counted from the left, named ones too. */
  | { kind: "group"; item: PatternNode }
  /** What is read in its first way only. Not in the core's syntax. */
  | { kind: "atomic"; item: PatternNode }
  /** Only where the pattern does not match next. Not in the core's syntax. */
  | { kind: "unless-ahead"; item: PatternNode }
  /** No match, nor one that begins between where this one began and here. Not in the core's syntax. */
  | { kind: "no-match-before" };

export type PatternRepeat = Extract<PatternNode, { kind: "repeat" }>;

interface Flags {
  fold: boolean;
  dotAll: boolean;
  multiLine: boolean;
  ungreedy: boolean;
}

const FLAG_NAMES: Readonly<Record<string, keyof Flags>> = { i: "fold", s: "dotAll", m: "multiLine", U: "ungreedy" };
const ESCAPED: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11, _: 0x5f };
const PERL_CLASSES: Readonly<Record<string, readonly number[]>> = {
  d: [0x30, 0x39],
  s: [9, 10, 12, 13, 0x20, 0x20],
  w: [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a],
};
const NAMED_CLASSES: Readonly<Record<string, readonly number[]>> = {
  alnum: [0x30, 0x39, 0x41, 0x5a, 0x61, 0x7a],
  alpha: [0x41, 0x5a, 0x61, 0x7a],
  ascii: [0, 0x7f],
  blank: [9, 9, 0x20, 0x20],
  cntrl: [0, 0x1f, 0x7f, 0x7f],
  digit: [0x30, 0x39],
  graph: [0x21, 0x7e],
  lower: [0x61, 0x7a],
  print: [0x20, 0x7e],
  punct: [0x21, 0x2f, 0x3a, 0x40, 0x5b, 0x60, 0x7b, 0x7e],
  space: [9, 13, 0x20, 0x20],
  upper: [0x41, 0x5a],
  word: [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a],
  xdigit: [0x30, 0x39, 0x41, 0x46, 0x61, 0x66],
};
const QUANTIFIER = /^(?:([*+?])|\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\})(\?)?/;

/**
 * Reads a pattern. Throws UnsupportedError for what is none of the core's; the core has compiled patterns of objects before,
 * so that only a difference between the two readers gets there.
 */
export function parsePattern(pattern: string, ignoreCase: boolean): PatternNode {
  return new PatternParser(pattern, ignoreCase).parse();
}

class PatternParser {
  /** UTF-8, a character for each byte. */
  readonly #text: string;
  #at = 0;
  #flags: Flags;

  constructor(pattern: string, fold: boolean) {
    this.#text = Buffer.from(pattern, "utf8").toString("latin1");
    this.#flags = { fold, dotAll: false, multiLine: false, ungreedy: false };
  }

  parse(): PatternNode {
    const node = this.#choice();
    if (this.#at < this.#text.length) throw this.#unknown();
    return node;
  }

  #unknown(): UnsupportedError {
    const pattern = shown(Buffer.from(this.#text, "latin1").toString("utf8"));
    return new UnsupportedError(`the pattern ${pattern} can't be said as one of PCRE (at offset ${this.#at})`);
  }

  #rest(): string {
    return this.#text.slice(this.#at);
  }

  /** Takes `text` if it comes next. */
  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  /** Alternatives up to the end or the parenthesis that closes them. Flags that are set inside end with them. */
  #choice(): PatternNode {
    const outer = { ...this.#flags };
    const options: PatternNode[] = [];
    do options.push(this.#sequence());
    while (this.#take("|"));
    this.#flags = outer;
    return options.length === 1 ? options[0] : { kind: "choice", options };
  }

  #sequence(): PatternNode {
    const items: PatternNode[] = [];
    while (this.#at < this.#text.length && !/^[|)]/.test(this.#rest())) {
      if (this.#takeFlags()) continue;
      if (this.#take("\\Q")) items.push(...this.#quoted());
      else items.push(this.#quantified(this.#item()));
    }
    return items.length === 1 ? items[0] : { kind: "sequence", items };
  }

  /** `(?i)`: flags for the rest of the group. */
  #takeFlags(): boolean {
    const written = /^\(\?([imsU]*)(?:-([imsU]+))?\)/.exec(this.#rest());
    if (written === null) return false;
    this.#at += written[0].length;
    this.#setFlags(written[1], written[2]);
    return true;
  }

  #setFlags(on: string, off = ""): void {
    this.#flags = { ...this.#flags };
    for (const letter of on) this.#flags[FLAG_NAMES[letter]] = true;
    for (const letter of off) this.#flags[FLAG_NAMES[letter]] = false;
  }

  #quoted(): PatternNode[] {
    const items: PatternNode[] = [];
    while (this.#at < this.#text.length && !this.#take("\\E")) {
      const character = this.#character();
      if (!this.#take("\\E")) {
        items.push(character);
        continue;
      }
      items.push(this.#quantified(character));
      break;
    }
    return items;
  }

  #quantified(item: PatternNode): PatternNode {
    const written = QUANTIFIER.exec(this.#rest());
    if (written === null) return item;
    this.#at += written[0].length;
    const [, sign, from, comma, to, mark] = written;
    const least = sign === undefined ? Number(from) : sign === "+" ? 1 : 0;
    const open = sign === undefined ? Number(to ?? (comma ? Infinity : from)) : sign === "?" ? 1 : Infinity;
    if (QUANTIFIER.test(this.#rest())) throw this.#unknown();
    return { kind: "repeat", item, least, most: open, lazy: (mark !== undefined) !== this.#flags.ungreedy };
  }

  #item(): PatternNode {
    const { multiLine, dotAll } = this.#flags;
    if (this.#take("(")) return this.#group();
    if (this.#take("[")) return { kind: "bytes", set: this.#class() };
    if (this.#take(".")) return { kind: "bytes", set: dotAll ? byteSet(0, 255) : byteSet(0, 9, 11, 255) };
    if (this.#take("^")) return { kind: "assertion", what: multiLine ? "begin-line" : "begin" };
    if (this.#take("$")) return { kind: "assertion", what: multiLine ? "end-line" : "end" };
    if (this.#text[this.#at] === "\\") return this.#escape();
    if (QUANTIFIER.test(this.#rest())) throw this.#unknown();
    return this.#character();
  }

  /** One literal character; one of several bytes is an item as a whole. */
  #character(): PatternNode {
    const character =
      /^(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})/.exec(
        this.#rest(),
      )?.[0];
    if (character === undefined) throw this.#unknown();
    this.#at += character.length;
    const bytes = [...character].map((c) => this.#literal(c.charCodeAt(0)));
    return bytes.length === 1 ? bytes[0] : { kind: "sequence", items: bytes };
  }

  #literal(byte: number): PatternNode {
    return { kind: "bytes", set: this.#folded(byteSet(byte, byte)) };
  }

  #folded(set: ByteSet): ByteSet {
    return this.#flags.fold ? folded(set) : set;
  }

  /** What follows an opening parenthesis that opens a group. */
  #group(): PatternNode {
    const outer = this.#flags;
    const plain = /^\?([imsU]*)(?:-([imsU]+))?:/.exec(this.#rest());
    const named = /^\?P?<\w+>/.exec(this.#rest());
    if (plain === null && named === null && this.#text[this.#at] === "?") throw this.#unknown();
    this.#at += (plain ?? named)?.[0].length ?? 0;
    if (plain !== null) this.#setFlags(plain[1], plain[2]);
    const inner = this.#choice();
    if (!this.#take(")")) throw this.#unknown();
    this.#flags = outer;
    return plain === null ? { kind: "group", item: inner } : inner;
  }

  #escape(): PatternNode {
    const letter = this.#text[this.#at + 1];
    const what = ({ A: "begin", z: "end", b: "word-edge", B: "no-word-edge" } as const)[letter];
    if (what !== undefined) {
      this.#at += 2;
      return { kind: "assertion", what };
    }
    if (this.#take("\\C")) return { kind: "bytes", set: byteSet(0, 255) };
    const perl = this.#perlClass();
    if (perl !== undefined) return { kind: "bytes", set: perl };
    return this.#literal(this.#escapedByte());
  }

  /** `\d` and its family, if one comes next. */
  #perlClass(): ByteSet | undefined {
    const letter = /^\\([dswDSW])/.exec(this.#rest())?.[1];
    if (letter === undefined) return undefined;
    this.#at += 2;
    const set = byteSet(...PERL_CLASSES[letter.toLowerCase()]);
    return letter >= "a" ? set : complement(set);
  }

  /** An escape that stands for one byte. */
  #escapedByte(): number {
    const rest = this.#rest();
    const octal = /^\\(0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(rest);
    const hex = /^\\x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})/.exec(rest);
    const letter = /^\\([afnrtv_])/.exec(rest);
    const mark = /^\\([^0-9A-Za-z\x80-\xff])/.exec(rest);
    const written = octal ?? hex ?? letter ?? mark;
    let byte = Number.NaN;
    if (octal !== null) byte = Number.parseInt(octal[1], 8);
    else if (hex !== null) byte = Number.parseInt(hex[1] ?? hex[2], 16);
    else if (letter !== null) byte = ESCAPED[letter[1]];
    else if (mark !== null) byte = mark[1].charCodeAt(0);
    if (written === null || !(byte <= 255)) throw this.#unknown();
    this.#at += written[0].length;
    return byte;
  }

  /** What follows an opening bracket. */
  #class(): ByteSet {
    const negated = this.#take("^");
    const set = byteSet();
    for (let first = true; first || !this.#take("]"); first = false) {
      if (this.#at >= this.#text.length) throw this.#unknown();
      const named = this.#namedClass() ?? this.#perlClass();
      if (named !== undefined) {
        unite(set, named);
        continue;
      }
      const low = this.#classByte();
      const ranges = /^-[^\]]/.test(this.#rest());
      if (ranges) this.#at++;
      const high = ranges ? this.#classByte() : low;
      if (high < low) throw this.#unknown();
      set.fill(1, low, high + 1);
    }
    const all = this.#folded(set);
    return negated ? complement(all) : all;
  }

  #classByte(): number {
    if (this.#text[this.#at] === "\\") return this.#escapedByte();
    const byte = this.#text.charCodeAt(this.#at);
    if (!(byte < 0x80)) throw this.#unknown();
    this.#at++;
    return byte;
  }

  /** `[:alpha:]` or `[:^alpha:]`, if one comes next. Case is folded before it is negated. */
  #namedClass(): ByteSet | undefined {
    const written = /^\[:(\^?)([\s\S]*?):\]/.exec(this.#rest());
    if (written === null) return undefined;
    const ranges = Object.hasOwn(NAMED_CLASSES, written[2]) ? NAMED_CLASSES[written[2]] : undefined;
    if (ranges === undefined) throw this.#unknown();
    this.#at += written[0].length;
    const set = this.#folded(byteSet(...ranges));
    return written[1] === "^" ? complement(set) : set;
  }
}
