/** Conditions of conditional locations: comparisons of variables, joined by `&&` and `||`. There is no "not": it moves inwards. */
import { UnsupportedError } from "../../plan-step.js";
import { searchTexts } from "./pattern-text.js";
import type { PatternNode } from "./pattern-tree.js";

/**
 * A comparison with the text `value`, or with a pattern. `value` is written as it is: a bare word for all readers of OpenNJet
 * (see pattern-text.ts).
 */
export interface Comparison {
  kind: "comparison";
  /** Without the dollar sign. */
  variable: string;
  pattern: boolean;
  negated: boolean;
  value: string;
}

export type Expression = Comparison | { kind: "all" | "any"; of: readonly Expression[] };

/** Always true, and never. */
export const ALWAYS: Expression = { kind: "all", of: [] };
export const NEVER: Expression = { kind: "any", of: [] };

/** The lexer of OpenNJet copies each comparison to a buffer of 4,096 bytes without looking. */
const MOST_COMPARISON_BYTES = 4000;
/** What one location may take: OpenNJet sends it through a queue of messages, and every request reads on until one holds. */
const MOST_BYTES = 65_536;

export function matches(variable: string, pattern: string): Comparison {
  return { kind: "comparison", variable, pattern: true, negated: false, value: pattern };
}

/** Throws UnsupportedError for a pattern that PCRE can't be given. */
export function matchesPattern(variable: string, tree: PatternNode): Expression {
  return any(...searchTexts(tree).map((text) => matches(variable, text)));
}

/** `value`: a bare word without meaning to any reader; letters, digits, `.`, `-`, `_`, `/`. */
export function equalTo(variable: string, value: string): Comparison {
  return { kind: "comparison", variable, pattern: false, negated: false, value };
}

export function all(...of: readonly Expression[]): Expression {
  return joined("all", of);
}

export function any(...of: readonly Expression[]): Expression {
  return joined("any", of);
}

/** Joins; what does not count is left out, and what is of the same kind becomes one. */
function joined(kind: "all" | "any", of: readonly Expression[]): Expression {
  const other = kind === "all" ? "any" : "all";
  const parts: Expression[] = [];
  for (const one of of) {
    // An empty "any" is false, an empty "all" true: one of the other kind decides.
    if (one.kind === other && one.of.length === 0) return one;
    for (const part of one.kind === kind ? one.of : [one]) {
      if (!parts.some((known) => isSame(known, part))) parts.push(part);
    }
  }
  return parts.length === 1 ? parts[0] : { kind, of: parts };
}

function isSame(a: Expression, b: Expression): boolean {
  if (a === b) return true;
  if (a.kind !== "comparison" || b.kind !== "comparison") return false;
  return a.variable === b.variable && a.pattern === b.pattern && a.negated === b.negated && a.value === b.value;
}

export function not(expression: Expression): Expression {
  if (expression.kind === "comparison") return { ...expression, negated: !expression.negated };
  const parts = expression.of.map(not);
  return expression.kind === "all" ? any(...parts) : all(...parts);
}

export function isNever(expression: Expression): boolean {
  return expression.kind === "any" && expression.of.length === 0;
}

/** The name of a conditional location. Throws UnsupportedError where it is too long. */
export function conditionText(expression: Expression): string {
  const text = `(${write(expression)})`;
  if (text.length > MOST_BYTES) throw new UnsupportedError(`the condition takes more than ${MOST_BYTES} bytes`);
  return text;
}

function write(expression: Expression): string {
  if (expression.kind === "comparison") return comparisonText(expression);
  if (expression.of.length === 0) throw new Error("a condition that compares nothing");
  if (expression.kind === "any") return expression.of.map(write).join(" || ");
  return expression.of.map((part) => (part.kind === "any" ? `(${write(part)})` : write(part))).join(" && ");
}

function comparisonText({ variable, pattern, negated, value }: Comparison): string {
  const sign = pattern ? (negated ? "!~" : "~") : negated ? "!=" : "=";
  const text = `$${variable} ${sign} ${value}`;
  if (text.length > MOST_COMPARISON_BYTES) {
    throw new UnsupportedError(`a comparison takes more than ${MOST_COMPARISON_BYTES} bytes`);
  }
  return text;
}
