/**
 * Values in configuration text. Whatever comes from an object stands in double quotes, with what has a meaning there escaped;
 * what can't stand there is refused.
 */
import type { Template, TemplatePart } from "../../../../core-wasm/binding/source.js";
import { UnsupportedError } from "../../plan-step.js";
import { shown } from "./shown.js";
import { variableOf } from "./values.js";

/** NGINX reads words of less than 4,096 bytes. */
const MOST_WORD_BYTES = 4000;
const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** The variable of the static configuration that has a dollar sign: text with variables can't have one otherwise. */
const DOLLAR = "njet_kic_dollar";
/** The bytes with ESCAPE_LOCATION and those with ESCAPE_HEADER in assembly/request/byte-classes.ts of the core. */
const NOT_IN_LOCATION = /[^!#-;=?-[\]_a-z~]/g;
const NOT_IN_HEADER = /[\x00-\x08\x0a-\x1f\x7f]/g;
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

/** As quotedTemplate, for the Location of a redirect: what can't stand in one is an escape, as the core writes it. */
export function quotedLocation(template: Template): string {
  return quotedLine(template, NOT_IN_LOCATION);
}

/** As quotedTemplate, for the value of a header: control characters are escapes, as the core writes them. */
export function quotedHeaderValue(template: Template): string {
  return quotedLine(template, NOT_IN_HEADER);
}

function quotedLine(template: Template, bars: RegExp): string {
  // The decoded path may have a line break, which NGINX would write as it is. No other value has one.
  if (template.some((part) => typeof part !== "string" && part.kind === "variable" && part.name === "uri")) {
    throw new UnsupportedError("the decoded path in a header needs the carrier core");
  }
  return quotedTemplate(template.map((part) => (typeof part === "string" ? percentEncoded(part, bars) : part)));
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
  if (!HEADER_NAME.test(name)) throw new UnsupportedError(`${shown(name)} can't be named as a header`);
  return word(name);
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

/** `bars`: a pattern for one byte, as a character. */
function percentEncoded(text: string, bars: RegExp): string {
  const bytes = Buffer.from(text, "utf8").toString("latin1");
  const hex = (byte: string) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  return Buffer.from(bytes.replaceAll(bars, hex), "latin1").toString("utf8");
}

function escaped(text: string): string {
  const bad = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/.exec(text)?.[0];
  if (bad !== undefined)
    throw new UnsupportedError(`the control character ${shown(bad)} can't stand in configuration text`);
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
      `the ${part.kind} ${shown(part.name)} can't be read: its name stands in no variable of NGINX`,
    );
  }
  return `\${${name}}`;
}
