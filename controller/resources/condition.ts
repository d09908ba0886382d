import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { Condition, ConditionTest, ValueSource } from "../../core-wasm/binding/source.js";
import type { Field } from "./field.js";
import { TOKEN } from "./names.js";
import { readRegex } from "./path-rule.js";
import { quote } from "./problem.js";
import { hasShape, type Shape } from "./shape.js";
import { CONDITION_VARIABLES, findVariable, listVariables, variablePattern } from "./variables.js";

const FIELDS = ["header", "cookie", "argument", "variable"] as const;
/** Conditions of one match: more than any request has to be told apart by. */
export const MAX_CONDITIONS = 16;

const NAMES: Record<(typeof FIELDS)[number], Shape> = {
  header: TOKEN,
  cookie: { patterns: [/^[_A-Za-z0-9-]+$/] },
  argument: { patterns: [/^[_A-Za-z0-9]+$/] },
  variable: { patterns: [new RegExp(`^\\$(${variablePattern(CONDITION_VARIABLES)})$`)] },
};

/**
 * A condition: exactly one of header, cookie, argument, variable, and a value with the meaning of an NGINX map key:
 * text without regard to case, `~re`, `~*re`, `!` before any of them, and the empty text for absent or empty.
 */
export function readCondition(field: Field, checker: PatternChecker): Condition | undefined {
  if (!field.isRequiredMap()) return undefined;
  field.warnUnknown([...FIELDS, "value"]);
  const kind = field.exactlyOne(FIELDS);
  const source = kind === undefined ? undefined : readSource(kind, field.get(kind));
  const value = field.get("value");
  const text = value.required() ? value.text() : undefined;
  if (text === undefined) return undefined;
  const negated = text.startsWith("!");
  const test = readTest(negated ? text.slice(1) : text, value, checker);
  return source === undefined || test === undefined ? undefined : { source, test, negated };
}

function readSource(kind: (typeof FIELDS)[number], field: Field): ValueSource | undefined {
  const shape = NAMES[kind];
  const name = field.shaped(shape).requiredLine();
  if (name === undefined) return undefined;
  switch (kind) {
    case "header":
      if (hasShape(name, shape)) return { kind, name: name.toLowerCase() };
      field.error("HEADER_INVALID", `${quote(name)} is no header name`);
      return undefined;
    case "cookie":
      if (hasShape(name, shape)) return { kind, name };
      field.error("CONDITION_INVALID", `a cookie name is made of letters, digits, _ and -, not ${quote(name)}`);
      return undefined;
    case "argument":
      if (hasShape(name, shape)) return { kind, name };
      field.error("CONDITION_INVALID", `an argument name is made of letters, digits and _, not ${quote(name)}`);
      return undefined;
    case "variable":
      return readVariable(name, field);
  }
}

function readVariable(name: string, field: Field): ValueSource | undefined {
  if (!name.startsWith("$")) {
    field.error("CONDITION_INVALID", `a variable starts with $, such as $request_method, not ${quote(name)}`);
    return undefined;
  }
  const source = findVariable(name.slice(1), CONDITION_VARIABLES);
  if (source === undefined) {
    const allowed = listVariables(CONDITION_VARIABLES);
    field.error("VARIABLE_UNKNOWN", `the variable ${quote(name)} is not allowed here; allowed are ${allowed}`);
  }
  return source;
}

function readTest(text: string, field: Field, checker: PatternChecker): ConditionTest | undefined {
  if (text === "") return { kind: "empty" };
  if (!text.startsWith("~")) return { kind: "equals", value: text };
  const ignoreCase = text.startsWith("~*");
  const pattern = text.slice(ignoreCase ? 2 : 1);
  const groups = readRegex(pattern, ignoreCase, field, checker);
  return groups === undefined ? undefined : { kind: "regex", pattern, ignoreCase };
}
