/**
 * Random patterns that mean the same to RE2 and to JavaScript, spelled for each, and texts that they are likely to match.
 *
 * Where the dialects differ, the JavaScript spelling says what RE2 means: `.` is any byte but \n, `$` is the end of the
 * text (of a line, which only \n ends, under (?m)), \s is [\t\n\f\r ], named classes are written out, flags inside a pattern are resolved.
 */
import type { Random } from "./random.js";

export interface Dialects {
  /** RE2's spelling, for the engine and for re2js. */
  re2: string;
  /** JavaScript's spelling and flags. */
  javascript: string;
  ignoreCase: boolean;
  /**
   * False where the two prefer other matches: JavaScript refuses an iteration of a loop that matches nothing and forgets
   * the groups of earlier iterations, RE2 does neither. Then only whether there is a match is compared with JavaScript;
   * captures are compared with re2js, which is the truth here.
   */
  sameCaptures: boolean;
  /** A repeated item has a repetition inside: JavaScript may take exponential time and gets short texts only. */
  nested: boolean;
}

interface Piece {
  re2: string;
  javascript: string;
  nullable: boolean;
  groups: boolean;
  repeats: boolean;
}

const LETTERS = "abcdxyABX";
const PLAIN = `${LETTERS}019_/.- `;
const META = new Set("\\^$.|?*+()[]{}/-");

const PERL: Record<string, string> = {
  d: "[0-9]",
  D: "[^0-9]",
  w: "[A-Za-z0-9_]",
  W: "[^A-Za-z0-9_]",
  s: "[\\t\\n\\f\\r ]",
  S: "[^\\t\\n\\f\\r ]",
};

const NAMED: Record<string, string> = {
  alpha: "A-Za-z",
  digit: "0-9",
  alnum: "0-9A-Za-z",
  upper: "A-Z",
  lower: "a-z",
  space: "\\t-\\r ",
  blank: "\\t ",
  punct: "!-\\/:-@\\[-`{-~",
  xdigit: "0-9A-Fa-f",
  word: "0-9A-Za-z_",
  cntrl: "\\x00-\\x1f\\x7f",
  graph: "!-~",
  print: " -~",
  ascii: "\\x00-\\x7f",
};

function hex(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** Writes patterns of one kind. */
export class PatternWriter {
  #groups = 0;
  #sameCaptures = true;
  #nested = false;

  constructor(
    readonly random: Random,
    readonly options: { context: boolean; highBytes: boolean },
  ) {}

  write(depth: number): Dialects {
    const random = this.random;
    this.#groups = 0;
    this.#sameCaptures = true;
    this.#nested = false;
    const ignoreCase = !this.options.highBytes && random.chance(20);
    const body = this.#alternation(depth);
    const begin = random.chance(15) ? "^" : "";
    const end = random.chance(25) ? "$" : "";
    return {
      re2: this.options.context ? `(?m)${begin}${body.re2}${end}` : `${begin}${body.re2}${end}`,
      javascript: this.#anchor(begin) + body.javascript + this.#anchor(end),
      ignoreCase,
      sameCaptures: this.#sameCaptures,
      nested: this.#nested,
    };
  }

  #alternation(depth: number): Piece {
    const count = this.random.chance(25) ? 2 + this.random.below(2) : 1;
    const parts = Array.from({ length: count }, () => this.#sequence(depth));
    return {
      re2: parts.map((part) => part.re2).join("|"),
      javascript: parts.map((part) => part.javascript).join("|"),
      nullable: parts.some((part) => part.nullable),
      groups: parts.some((part) => part.groups),
      repeats: parts.some((part) => part.repeats),
    };
  }

  #sequence(depth: number): Piece {
    const length = this.random.chance(4) ? 0 : 1 + this.random.below(4);
    const parts = Array.from({ length }, () => this.#repeated(depth));
    return {
      re2: parts.map((part) => part.re2).join(""),
      javascript: parts.map((part) => part.javascript).join(""),
      nullable: parts.every((part) => part.nullable),
      groups: parts.some((part) => part.groups),
      repeats: parts.some((part) => part.repeats),
    };
  }

  #repeated(depth: number): Piece {
    const random = this.random;
    const atom = this.#atom(depth);
    if (!random.chance(40)) return atom;
    const low = random.below(3);
    const counted = random.pick([`{${low}}`, `{${low},}`, `{${low},${low + random.below(3)}}`]);
    const operator = random.pick(["*", "+", "?", "*", "+", "?", counted]);
    const lazy = random.chance(25) ? "?" : "";
    if (atom.nullable || atom.groups) this.#sameCaptures = false;
    if (atom.repeats) this.#nested = true;
    return {
      re2: atom.re2 + operator + lazy,
      javascript: atom.javascript + operator + lazy,
      nullable: atom.nullable || (operator !== "+" && !/^\{[12]/.test(operator)),
      groups: atom.groups,
      repeats: true,
    };
  }

  #atom(depth: number): Piece {
    const random = this.random;
    const roll = random.below(100);
    if (depth > 0 && roll < 25) return this.#group(depth - 1);
    if (roll < 33) return this.#plain(".", "[^\\n]");
    if (roll < 45) return this.#class();
    if (roll < 50) {
      const letter = random.pick("dDwWsS");
      return this.#plain(`\\${letter}`, PERL[letter] as string);
    }
    if (roll < 54) return this.#assertion();
    if (roll < 56) {
      const quoted = random.pick(["a.b", "x*", "(a"]);
      const escaped = quoted.replace(/[.*(]/g, "\\$&");
      return this.#plain(`(?:\\Q${quoted}\\E)`, `(?:${escaped})`);
    }
    if (roll < 60 && this.options.highBytes) {
      const byte = 0x80 + random.below(0x80);
      return this.#plain(hex(byte), hex(byte));
    }
    const character = random.pick(PLAIN);
    const spelled = META.has(character) ? `\\${character}` : character;
    return this.#plain(spelled, spelled);
  }

  #anchor(re2: string): string {
    if (!this.options.context) return re2;
    return re2 === "^" ? "(?<![^\\n])" : re2 === "$" ? "(?![^\\n])" : re2;
  }

  #plain(re2: string, javascript: string): Piece {
    return { re2, javascript, nullable: false, groups: false, repeats: false };
  }

  #assertion(): Piece {
    const choices = this.options.context ? ["^", "$", "\\b", "\\B"] : ["^", "$", "\\A", "\\z"];
    const re2 = this.random.pick(choices);
    const javascript = re2 === "\\A" ? "^" : re2 === "\\z" ? "$" : this.#anchor(re2);
    // JavaScript takes no quantifier after some assertions.
    return { re2: `(?:${re2})`, javascript: `(?:${javascript})`, nullable: true, groups: false, repeats: false };
  }

  #group(depth: number): Piece {
    const random = this.random;
    const kind = random.below(10);
    if (kind < 4) {
      const body = this.#alternation(depth);
      return { ...body, re2: `(?:${body.re2})`, javascript: `(?:${body.javascript})` };
    }
    this.#groups++;
    const open = kind < 8 ? "(" : kind === 8 ? `(?P<g${this.#groups}>` : `(?<g${this.#groups}>`;
    const body = this.#alternation(depth);
    return { ...body, re2: `${open}${body.re2})`, javascript: `(${body.javascript})`, groups: true };
  }

  #class(): Piece {
    const random = this.random;
    let re2 = "";
    let javascript = "";
    for (let left = 1 + random.below(3); left > 0; left--) {
      const [forRe2, forJavascript] = this.#classPart();
      re2 += forRe2;
      javascript += forJavascript;
    }
    const open = random.chance(25) ? "[^" : "[";
    return this.#plain(`${open}${re2}]`, `${open}${javascript}]`);
  }

  #classPart(): [string, string] {
    const random = this.random;
    const roll = random.below(10);
    if (roll < 3) {
      const range = random.pick(["a-c", "x-z", "0-9", "A-C", "b-y"]);
      return [range, range];
    }
    if (roll === 3) {
      const letter = random.pick("dws");
      return [`\\${letter}`, (PERL[letter] as string).slice(1, -1)];
    }
    if (roll === 4) {
      const name = random.pick(Object.keys(NAMED));
      return [`[:${name}:]`, NAMED[name] as string];
    }
    if (roll === 5 && this.options.highBytes) {
      const low = 0x80 + random.below(0x40);
      const range = `${hex(low)}-${hex(low + random.below(0x40))}`;
      return [range, range];
    }
    const character = random.pick(PLAIN);
    const spelled = META.has(character) ? `\\${character}` : character;
    return [spelled, spelled];
  }
}

const TEXT = "aabbcdxyABX019_/.-  \n\t\v\r";

/** A byte string for patterns of these options. */
export function writeText(random: Random, highBytes: boolean): string {
  let text = "";
  const length = random.below(random.chance(10) ? 60 : 14);
  for (let i = 0; i < length; i++) {
    text += highBytes && random.chance(15) ? String.fromCharCode(0x80 + random.below(0x80)) : random.pick(TEXT);
  }
  return text;
}
