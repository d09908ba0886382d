import type { Field } from "./field.js";
import { quote } from "./problem.js";
import { hasShape, type Shape } from "./shape.js";

/** Milliseconds of each unit, from the largest: NGINX wants them in this order. A month has 30 days, a year 365. */
const TIME_UNITS: [string, number][] = [
  ["y", 31_536_000_000],
  ["M", 2_592_000_000],
  ["w", 604_800_000],
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
];

/** The longest time that a Node timer can run. */
const MAX_DURATION = 2_147_483_647;

/** The texts that `parseDuration` takes, as a piece of a regular expression. */
export const DURATION_PATTERN = `(?:\\d{1,15}|${TIME_UNITS.map(([name]) => `(?:\\d{1,15}${name} ?)?`).join("")})`;
const DURATION: Shape = { patterns: [new RegExp(`^${DURATION_PATTERN}$`)] };
const POSITIVE_DURATION: Shape = { patterns: [new RegExp(`^${DURATION_PATTERN}$`), /[1-9]/] };

/**
 * A time as NGINX writes it (ngx_parse_time): `500ms`, `5s`, `1m30s`, `1h 30m`; a plain number is seconds.
 * Returns milliseconds, or undefined if the text is no such time.
 */
export function parseDuration(text: string): number | undefined {
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  let total = 0;
  let nextUnit = 0;
  let rest = text;
  while (rest !== "") {
    const part = /^(\d{1,15})(ms|[yMwdhms]) ?/.exec(rest);
    if (part === null) return undefined;
    const unit = TIME_UNITS.findIndex(([name], index) => index >= nextUnit && name === part[2]);
    if (unit < 0) return undefined;
    total += Number(part[1]) * TIME_UNITS[unit][1];
    nextUnit = unit + 1;
    rest = rest.slice(part[0].length);
  }
  return text === "" ? undefined : total;
}

const SIZE_UNITS: Record<string, number> = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/** As many digits with each unit as stay below 2^53 bytes. */
const SIZE: Shape = { patterns: [/^(\d{1,15}|\d{1,12}[kK]|\d{1,9}[mM]|\d{1,6}[gG])$/] };

/** A size as NGINX writes it (ngx_parse_offset): bytes, or with k, m, g in either case. Returns bytes. */
export function parseSize(text: string): number | undefined {
  if (!hasShape(text, SIZE)) return undefined;
  const unit = text.replace(/^\d+/, "");
  return Number.parseInt(text, 10) * SIZE_UNITS[unit.toLowerCase()];
}

/** A duration of at least `min` milliseconds, 0 or 1. Reports DURATION_INVALID. */
export function readDuration(field: Field, min: 0 | 1 = 0): number | undefined {
  const text = field.shaped(min === 0 ? DURATION : POSITIVE_DURATION).line();
  if (text === undefined) return undefined;
  const duration = parseDuration(text);
  if (duration === undefined) {
    field.error("DURATION_INVALID", `${quote(text)} is no time such as 500ms, 5s or 1m30s`);
    return undefined;
  }
  if (duration < min || duration > MAX_DURATION) {
    field.error("DURATION_INVALID", `${quote(text)} must be from ${min}ms to 24 days`);
    return undefined;
  }
  return duration;
}

/** A size in bytes. Reports SIZE_INVALID. */
export function readSize(field: Field): number | undefined {
  const text = field.shaped(SIZE).line();
  if (text === undefined) return undefined;
  const size = parseSize(text);
  if (size === undefined) {
    field.error("SIZE_INVALID", `${quote(text)} is no size such as 0, 8k or 1m`);
    return undefined;
  }
  return size;
}
