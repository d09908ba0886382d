/**
 * Conditional locations as OpenNJet reads and tries them: `($host = a.example.com && ($uri ~ ^/api || $arg_v ~* ^b))`.
 *
 * Three readers follow each other there, and each changes the text: the tokenizer of configuration files (blanks), the lexer of
 * conditional locations (`\n`, `\t` and `\"` become characters), and the tokenizer again, for each comparison by itself. What is
 * beyond that (quotes, tests for files) is refused here: nobody who is tested with this writes it.
 */

import { type PcrePattern, pcrePattern } from "./pcre.js";

/** The value of a variable (named without its dollar sign) for a request, each byte a character; empty where it is absent. */
export type VariableReader = (name: string) => string;

export type Comparison = "=" | "!=" | "~" | "~*" | "!~" | "!~*";

export type ConditionTree =
  | { kind: "comparison"; variable: string; comparison: Comparison; value: string; pattern?: PcrePattern }
  /** The variable is neither empty nor `0`. */
  | { kind: "truth"; variable: string }
  | { kind: "and" | "or"; left: ConditionTree; right: ConditionTree };

/** A text that OpenNJet would not take; it names the first token of the location then. */
export class ConditionError extends Error {}

/** The buffer that the lexer writes a comparison to, without looking at its size. */
const MOST_BYTES = 4096;
const COMPARISONS: readonly string[] = ["=", "!=", "~", "~*", "!~", "!~*"];

type Token = { kind: "(" | ")" | "and" | "or" } | { kind: "comparison"; text: string };

/** Reads the name of a conditional location. Throws ConditionError. */
export function parseCondition(name: string): ConditionTree {
  if (!name.startsWith("(")) throw new ConditionError("no conditional location");
  const tokens = tokensOf(name.trim().replaceAll(/\s+/g, " "));
  let at = 0;
  const next = () => tokens[at];

  function either(): ConditionTree {
    let left = both();
    while (next()?.kind === "or") {
      at++;
      left = { kind: "or", left, right: both() };
    }
    return left;
  }
  function both(): ConditionTree {
    let left = one();
    while (next()?.kind === "and") {
      at++;
      left = { kind: "and", left, right: one() };
    }
    return left;
  }
  function one(): ConditionTree {
    const token = tokens[at++];
    if (token?.kind === "comparison") return comparisonOf(token.text);
    if (token?.kind !== "(") throw new ConditionError("a comparison is missing");
    const inner = either();
    if (tokens[at++]?.kind !== ")") throw new ConditionError("a parenthesis is not closed");
    return inner;
  }

  const tree = either();
  if (at !== tokens.length) throw new ConditionError("text after the condition");
  return tree;
}

/** What the lexer makes of the text. */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const c = text[at];
    const two = text.slice(at, at + 2);
    if (c === " ") at++;
    else if (c === "(" || c === ")") {
      tokens.push({ kind: c });
      at++;
    } else if (two === "&&" || two === "||") {
      tokens.push({ kind: two === "&&" ? "and" : "or" });
      at += 2;
    } else {
      const name = /^\$[a-zA-Z][_0-9a-zA-Z]*/.exec(text.slice(at))?.[0];
      if (name === undefined) throw new ConditionError(`unexpected ${JSON.stringify(c)}`);
      const read = readComparison(text, at + name.length);
      const whole = name + read.text;
      if (Buffer.byteLength(whole, "latin1") >= MOST_BYTES) throw new ConditionError("the lexer's buffer overflows");
      tokens.push({ kind: "comparison", text: whole });
      at = read.end;
    }
  }
  return tokens;
}

/** What follows the variable, up to `&&`, `||` or the parenthesis that closes what is around it. */
function readComparison(text: string, start: number): { text: string; end: number } {
  let at = start;
  let depth = 0;
  let read = "";
  for (; at < text.length; at++) {
    const c = text[at];
    const two = text.slice(at, at + 2);
    if (two === "&&" || two === "||") {
      if (depth > 0) throw new ConditionError("&& or || inside the parentheses of a value");
      return { text: read, end: at };
    }
    if (c === "(") depth++;
    if (c === ")" && depth-- === 0) return { text: read, end: at };
    if (two === "\\n" || two === "\\t" || two === '\\"') {
      read += two === "\\n" ? "\n" : two === "\\t" ? "\t" : '"';
      at++;
    } else read += c;
  }
  throw new ConditionError("a parenthesis is not closed");
}

/** What `if (...) {` makes of a comparison. */
function comparisonOf(text: string): ConditionTree {
  if (/["'#;{}]/.test(text)) throw new ConditionError("a character that needs quotes");
  const words = text.split(/\s+/).filter((word) => word !== "");
  const variable = words[0].slice(1);
  if (words.length === 1) return { kind: "truth", variable };
  const [, comparison, written] = words;
  if (words.length !== 3 || !COMPARISONS.includes(comparison)) throw new ConditionError("no comparison");
  const value = written.replaceAll(/\\(["'\\trn])/g, (_, c: string) => ({ t: "\t", r: "\r", n: "\n" })[c] ?? c);
  const compared = { kind: "comparison", variable, comparison: comparison as Comparison, value } as const;
  if (!comparison.includes("~")) {
    if (value.includes("$")) throw new ConditionError("a variable in a value");
    return compared;
  }
  return { ...compared, pattern: patternOf(value, comparison.endsWith("*")) };
}

function patternOf(value: string, ignoreCase: boolean): PcrePattern {
  try {
    return pcrePattern(value, ignoreCase);
  } catch (error) {
    throw new ConditionError(error instanceof Error ? error.message : "a pattern that does not compile");
  }
}

/** Whether a condition holds for a request. */
export function conditionHolds(tree: ConditionTree, read: VariableReader): boolean {
  switch (tree.kind) {
    case "and":
      return conditionHolds(tree.left, read) && conditionHolds(tree.right, read);
    case "or":
      return conditionHolds(tree.left, read) || conditionHolds(tree.right, read);
    case "truth":
      return !["", "0"].includes(read(tree.variable));
    case "comparison": {
      const value = read(tree.variable);
      const holds = tree.pattern === undefined ? value === tree.value : tree.pattern.test(value);
      return tree.comparison.startsWith("!") ? !holds : holds;
    }
  }
}
