/**
 * Values in configuration text. Whatever comes from an object stands in double quotes, with what has a meaning there escaped;
 * what can't stand there is refused.
 */
import type { Template, TemplatePart } from "../../../../core-wasm/binding/source.js";
import { UnsupportedError } from "../../plan-step.js";
import { variableOf } from "./values.js";

/** NGINX reads words of less than 4,096 bytes. */
const MOST_WORD_BYTES = 4000;
const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** The variable of the static configuration that has a dollar sign: text with variables can't have one otherwise. */
const DOLLAR = "njet_kic_dollar";
/** Tokens (RFC 9110 5.6.2), but for the dollar sign. */
const HEADER_NAME = /^[A-Za-z0-9!#%&'*+.^_`|~-]+$/;

/** A text without variables. */
export function quotedText(text: string): string {
  return word(escaped(text));
}

/** A text that NGINX fills in: its literals and variables. Groups of a pattern only where `groups`. */
export function quotedTemplate(template: Template, groups = false): string {
  return word(template.map((part) => partText(part, groups)).join(""));
}

/** A word that was put together from parts that are escaped. */
export function word(escapedText: string): string {
  if (Buffer.byteLength(escapedText, "utf8") > MOST_WORD_BYTES) {
    throw new UnsupportedError(`a text takes more than ${MOST_WORD_BYTES} bytes in configuration text`);
  }
  return `"${escapedText}"`;
}

/** Literal text for where variables are filled in. */
export function literalText(text: string): string {
  return escaped(text).replaceAll("$", `\${${DOLLAR}}`);
}

export function quotedHeaderName(name: string): string {
  if (!HEADER_NAME.test(name)) throw new UnsupportedError(`${JSON.stringify(name)} can't be named as a header`);
  return `"${name}"`;
}

/** Milliseconds as a time of NGINX. */
export function timeText(milliseconds: number): string {
  return `${wholeNumber(milliseconds)}ms`;
}

export function wholeNumber(number: number): string {
  if (!Number.isSafeInteger(number) || number < 0)
    throw new UnsupportedError(`${number} is no number for configuration text`);
  return String(number);
}

function escaped(text: string): string {
  const bad = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/.exec(text)?.[0];
  if (bad !== undefined)
    throw new UnsupportedError(`the control character ${JSON.stringify(bad)} can't stand in configuration text`);
  return text.replaceAll(/["\\\n\r\t]/g, (c) => ESCAPES[c]);
}

function partText(part: TemplatePart, groups: boolean): string {
  if (typeof part === "string") return literalText(part);
  if (part.kind === "group") {
    if (!groups || !/^[1-9]$/.test(String(part.index))) throw new UnsupportedError("a group has no meaning there");
    // Braces would make a variable of it.
    return `$${part.index}`;
  }
  const name = variableOf(part);
  if (name === undefined || !/^[A-Za-z0-9_]+$/.test(name)) {
    throw new UnsupportedError(
      `the ${part.kind} ${JSON.stringify(part.name)} can't be read: its name stands in no variable of NGINX`,
    );
  }
  return `\${${name}}`;
}
