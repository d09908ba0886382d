import type { Template, TemplatePart } from "../../core-wasm/binding/source.js";
import type { Field } from "./field.js";
import { quote } from "./problem.js";
import { findVariable, listVariables, type VariableSet, variablePattern } from "./variables.js";

/** What a text may refer to. */
export interface TemplateRules {
  variables: VariableSet;
  /** Accept `$name` besides `${name}`; the keys of hash methods are written so. */
  bareNames: boolean;
  /** Number of groups that `$1` to `$9` may refer to; undefined where groups have no meaning. */
  groups?: number;
}

/** A variable or group of a text: `${name}`, `$name` or `$1`. */
const REFERENCE = /\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*)|([0-9]+)|(\{))/g;

/**
 * A regular expression for the texts that `parseTemplate` takes. It lets every group pass where groups have a meaning: how
 * many there are, a schema does not know.
 */
export function templatePattern(rules: TemplateRules): RegExp {
  const names = variablePattern(rules.variables);
  const word = "A-Za-z0-9_";
  const alone = `\\$+[^$A-Za-z_{${rules.groups === undefined ? "0-9" : ""}]`;
  const braced = names === undefined ? [] : [`\\$+\\{${names}\\}`];
  const parts = ["[^$]", alone, ...braced];
  if (names === undefined || !rules.bareNames) return new RegExp(`^(?:${parts.join("|")})*\\$*$`);
  const bare = `(?:\\$+${names})`;
  const endOfName = [`[^$${word}]`, alone, ...braced].join("|");
  return new RegExp(`^(?:${parts.join("|")}|${bare}+(?:${endOfName}))*${bare}*\\$*$`);
}

/**
 * Splits `text` into literals and values of the request. Undefined, with an error on `field`, if it refers to something
 * that is not allowed. A dollar sign that begins no name, digit or brace stands for itself.
 */
export function parseTemplate(text: string, rules: TemplateRules, field: Field): Template | undefined {
  const template: Template = [];
  let good = true;
  let end = 0;
  for (const reference of text.matchAll(REFERENCE)) {
    const part = resolveReference(reference, rules, field);
    if (reference.index > end) template.push(text.slice(end, reference.index));
    end = reference.index + reference[0].length;
    if (part === undefined) good = false;
    else template.push(part);
  }
  if (end < text.length) template.push(text.slice(end));
  return good ? template : undefined;
}

function resolveReference(match: RegExpMatchArray, rules: TemplateRules, field: Field): TemplatePart | undefined {
  const [written, braced, bare, group, open] = match;
  if (open !== undefined) {
    field.error("TEXT_INVALID", "${ without a closing brace");
    return undefined;
  }
  if (group !== undefined) return resolveGroup(Number(group), rules, field);
  if (bare !== undefined && !rules.bareNames) {
    field.error("TEXT_INVALID", `${quote(written)}: put the variable in braces, \${${bare}}`);
    return undefined;
  }
  const name = braced ?? bare;
  const source = findVariable(name, rules.variables);
  if (source !== undefined) return source;
  const allowed = listVariables(rules.variables);
  const remedy = allowed === "" ? "variables have no meaning here" : `allowed are ${allowed}`;
  field.error("VARIABLE_UNKNOWN", `the variable ${quote(name)} is not allowed here; ${remedy}`);
  return undefined;
}

function resolveGroup(index: number, rules: TemplateRules, field: Field): TemplatePart | undefined {
  const known = Math.min(rules.groups ?? 0, 9);
  if (index >= 1 && index <= known) return { kind: "group", index };
  const reason =
    rules.groups === undefined ? "groups have a meaning in rewritePath of a regex route only" : `there are ${known}`;
  field.error("CAPTURE_UNKNOWN", `the pattern has no group $${Math.min(index, 999)} here: ${reason}`);
  return undefined;
}
