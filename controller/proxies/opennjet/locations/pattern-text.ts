/**
 * Pattern trees as text of PCRE, without options, over bytes. What is written passes through the readers of configuration files
 * unchanged: letters, digits, a few marks, operators, and `\xHH` for everything else.
 */
import { UnsupportedError } from "../../plan-step.js";
import { type ByteSet, complement, onlyByte } from "./byte-set.js";
import { capturingForm } from "./pattern-captures.js";
import { searchForms } from "./pattern-search.js";
import type { Assertion, PatternNode, PatternRepeat } from "./pattern-tree.js";

/** How a pattern is written. */
interface Writing {
  /** Inside quotes: groups count, and counted repeats are written in braces. Otherwise as a bare word, without either. */
  quoted: boolean;
  /** Inside of a possessive loop, where only one way is right. */
  greedy?: boolean;
}

/** NGINX reads words of up to 4,096 bytes, and OpenNJet comparisons with variable and operator. */
export const MOST_PATTERN_BYTES = 3800;

const ASSERTIONS: Readonly<Record<Assertion, string>> = {
  begin: "^",
  end: "\\z",
  "begin-line": "(?:^|(?<=\\x0A))",
  "end-line": "(?:\\z|(?=\\x0A))",
  "word-edge": "\\b",
  "no-word-edge": "\\B",
};
/** Bytes that stand for themselves in every reader, inside and outside of a class. */
const PLAIN = /^[0-9A-Za-z_/,:=~@%]$/;

/**
 * A pattern as bare words of PCRE: it matches where one of them does, and nothing else counts. Throws UnsupportedError where it is
 * too long, or where PCRE might take much time or stack.
 */
export function searchTexts(tree: PatternNode): string[] {
  return searchForms(tree).map((form) => checkedText(form, { quoted: false }));
}

/** The same with its groups, inside quotes, for the texts that it matches. */
export function capturingText(tree: PatternNode): string {
  return checkedText(capturingForm(tree), { quoted: true });
}

function checkedText(form: PatternNode, writing: Writing): string {
  // An empty word would be none.
  const text = write(form, writing) || "(?:)";
  requireLength(text);
  return text;
}

/** Literal text, each byte for itself. */
export function literalPattern(text: string): string {
  return [...Buffer.from(text, "utf8")].map(byteText).join("");
}

/** Literal text, ASCII letters in either case. */
export function foldedPattern(text: string): string {
  return [...Buffer.from(text, "utf8")]
    .map((byte) => {
      const letter = String.fromCharCode(byte);
      return /[A-Za-z]/.test(letter) ? `[${letter.toUpperCase()}${letter.toLowerCase()}]` : byteText(byte);
    })
    .join("");
}

function byteText(byte: number): string {
  const character = String.fromCharCode(byte);
  if (PLAIN.test(character)) return character;
  if (character === "." || character === "-") return `\\${character}`;
  return `\\x${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

function requireLength(text: string): void {
  if (text.length > MOST_PATTERN_BYTES) {
    throw new UnsupportedError(`a pattern takes more than ${MOST_PATTERN_BYTES} bytes as one of PCRE`);
  }
}

function write(node: PatternNode, writing: Writing): string {
  switch (node.kind) {
    case "bytes":
      return setText(node.set);
    case "sequence":
      return node.items
        .map((item) => (item.kind === "choice" ? grouped(write(item, writing)) : write(item, writing)))
        .join("");
    case "choice":
      return node.options.map((option) => write(option, writing) || "(?:)").join("|");
    case "assertion":
      return ASSERTIONS[node.what];
    case "group":
      return writing.quoted ? `(${write(node.item, writing)})` : grouped(write(node.item, writing));
    case "atomic":
      return `(?>${write(node.item, writing)})`;
    case "unless-ahead":
      return `(?!${write(node.item, writing)})`;
    case "no-match-before":
      return "(*SKIP)(?!)";
    case "repeat":
      return repeatText(node, writing);
  }
}

function grouped(text: string): string {
  return `(?:${text})`;
}

function setText(set: ByteSet): string {
  const only = onlyByte(set);
  if (only !== undefined) return byteText(only);
  const inside = rangesText(set);
  // Nothing matches an empty class.
  if (inside === "") return "(?!)";
  const outside = rangesText(complement(set));
  return outside !== "" && outside.length < inside.length ? `[^${outside}]` : `[${inside}]`;
}

function rangesText(set: ByteSet): string {
  let text = "";
  for (let low = 0; low < 256; low++) {
    if (set[low] === 0) continue;
    let high = low;
    while (high < 255 && set[high + 1] === 1) high++;
    text += byteText(low);
    if (high > low) text += `${high > low + 1 ? "-" : ""}${byteText(high)}`;
    low = high;
  }
  return text;
}

function repeatText(node: PatternRepeat, writing: Writing): string {
  const { item, least, most } = node;
  const isLoop = most === Infinity && item.kind !== "bytes";
  const text = write(item, isLoop ? { ...writing, greedy: true } : writing);
  if (text === "" || most === 0) return "";
  const one = item.kind === "bytes" || item.kind === "group" ? text : grouped(text);
  const mark = isLoop ? "+" : node.lazy && !writing.greedy ? "?" : "";
  const sign = least === 0 && most === 1 ? "?" : most !== Infinity ? undefined : least === 0 ? "*" : "+";
  if (sign !== undefined && least <= 1) return `${one}${sign}${mark}`;
  if (writing.quoted) return `${one}{${least},${most === Infinity ? "" : most}}${mark}`;
  // A brace would end the word: the repeats are written out.
  if (one.length * Math.max(least, most === Infinity ? 0 : most) > MOST_PATTERN_BYTES)
    requireLength(`${" ".repeat(MOST_PATTERN_BYTES)} `);
  if (most === Infinity) return `${one.repeat(least - 1)}${one}+${mark}`;
  const optional = most - least;
  return `${one.repeat(least)}${`(?:${one}`.repeat(optional)}${")?".repeat(optional)}`;
}
