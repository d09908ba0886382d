/** Values of requests as variables of NGINX, and conditions on them as comparisons. */
import type { Condition, ConditionTest, ValueSource } from "../../../../core-wasm/binding/source.js";
import { UnsupportedError } from "../../plan-step.js";
import { type Expression, matches, matchesPattern, not } from "./expression.js";
import { foldedPattern } from "./pattern-text.js";
import { parsePattern } from "./pattern-tree.js";
import { shown } from "./shown.js";

/** Names that can stand in a variable. */
const VARIABLE_NAME = /^[A-Za-z0-9_]+$/;
/** Header names that NGINX does not drop as invalid. */
const HEADER_NAME = /^[A-Za-z0-9-]+$/;

/** The variable of NGINX that has the value; undefined where its name can't stand in one. */
export function variableOf(source: ValueSource): string | undefined {
  switch (source.kind) {
    case "variable":
      return source.name;
    case "header":
      return HEADER_NAME.test(source.name) ? `http_${source.name.toLowerCase().replaceAll("-", "_")}` : undefined;
    case "cookie":
      return VARIABLE_NAME.test(source.name) ? `cookie_${source.name}` : undefined;
    case "argument":
      return VARIABLE_NAME.test(source.name) ? `arg_${source.name}` : undefined;
  }
}

/** A condition of a route. Throws UnsupportedError for what no comparison can say. */
export function conditionExpression({ source, test, negated }: Condition): Expression {
  const variable = variableOf(source);
  const holds = variable === undefined ? listed(source, test) : compared(variable, test);
  return negated ? not(holds) : holds;
}

function compared(variable: string, test: ConditionTest): Expression {
  switch (test.kind) {
    case "equals":
      return matches(variable, `^${foldedPattern(test.value)}\\z`);
    case "empty":
      return not(matches(variable, "^[\\x00-\\xFF]"));
    case "regex":
      return matchesPattern(variable, parsePattern(test.pattern, test.ignoreCase));
  }
}

/** A cookie or argument whose name no variable can have is looked for in the header or the query, as NGINX does it. */
function listed(source: ValueSource, test: ConditionTest): Expression {
  const name = source.name;
  const what = `the ${source.kind} ${shown(name)}`;
  if (source.kind !== "cookie" && source.kind !== "argument") {
    throw new UnsupportedError(`${what} can't be looked at: NGINX drops headers of such names`);
  }
  if (test.kind === "regex") {
    throw new UnsupportedError(`a pattern on ${what} can't be said: its name stands in no variable of NGINX`);
  }
  const value = test.kind === "empty" ? "" : test.value;
  const [variable, first, end] =
    source.kind === "cookie" ? ["http_cookie", firstCookie(name), "\\x3B"] : ["args", firstArgument(name), "\\x26"];
  // An empty value is as good as an absent one: then no other value may be there.
  if (value === "") return not(matches(variable, `${first}[^${end}]`));
  return matches(variable, `${first}${foldedPattern(value)}(?:${end}|\\z)`);
}

/**
 * Up to the value of the first cookie of this name, as `cookieValue` of the core finds it: the name stands at the start, or
 * behind a semicolon or comma and blanks. A name without `=` takes one byte more with it. No blank is left for the next part
 * of the pattern, so that the text can be read in one way only.
 */
function firstCookie(name: string): string {
  const start = foldedPattern(name);
  const rest = "[^\\x3B,]*[\\x3B,]\\x20*(?!\\x20)";
  const others = `(?:${start}\\x20*(?![\\x20=])[\\x00-\\xFF]${rest}|(?!${start})${rest})*+`;
  return `^${others}${start}\\x20*=\\x20*(?!\\x20)`;
}

/** Up to the value of the first argument of this name, as `argumentValue` of the core finds it. For each turn of a loop that is not possessive PCRE would take stack. */
function firstArgument(name: string): string {
  const start = `${foldedPattern(name)}=`;
  return `^(?:(?!${start})[^\\x26]*\\x26)*+${start}`;
}
