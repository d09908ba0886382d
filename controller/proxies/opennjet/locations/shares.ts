/** Splits as conditions: 24 of the random bits of `$request_id`, which are the same throughout a request. */
import type { Action, Split } from "../../../../core-wasm/binding/source.js";
import { ALWAYS, type Expression, matches } from "./expression.js";

const VARIABLE = "request_id";
const DIGITS = 6;
const ALL = 16 ** DIGITS;

export interface Share {
  /** Its place in the split. */
  index: number;
  holds: Expression;
  action: Action;
}

/** The entries that are ever chosen. Their shares are exact to 1 in 16 millions. */
export function sharesOf({ entries }: Split): Share[] {
  const total = entries.reduce((sum, { weight }) => sum + weight, 0);
  const chosen = entries
    .map(({ weight, action }, index) => ({ weight, action, index }))
    .filter(({ weight }) => weight > 0);
  let before = 0;
  return chosen.map(({ weight, action, index }) => {
    const from = Math.round((before / total) * ALL);
    before += weight;
    const to = Math.round((before / total) * ALL);
    const holds = chosen.length === 1 ? ALWAYS : matches(VARIABLE, `^${rangePattern(from, to, DIGITS)}`);
    return { index, holds, action };
  });
}

/** A pattern for the hexadecimal numbers of so many digits from `from` to below `to`; of their first digits where these say it. */
function rangePattern(from: number, to: number, digits: number): string {
  if (from === 0 && to === 16 ** digits) return "";
  const unit = 16 ** (digits - 1);
  const parts: string[] = [];
  const first = Math.floor(from / unit);
  const last = Math.ceil(to / unit);
  let full: number[] = [];
  const close = () => {
    if (full.length > 0) parts.push(digitsPattern(full));
    full = [];
  };
  for (let digit = first; digit < last; digit++) {
    const low = Math.max(from - digit * unit, 0);
    const high = Math.min(to - digit * unit, unit);
    if (low === 0 && high === unit) {
      full.push(digit);
      continue;
    }
    close();
    parts.push(`${digit.toString(16)}${rangePattern(low, high, digits - 1)}`);
  }
  close();
  return parts.length === 1 ? parts[0] : `(?:${parts.join("|")})`;
}

function digitsPattern(digits: readonly number[]): string {
  const text = digits.map((digit) => digit.toString(16)).join("");
  return text.length === 1 ? text : `[${text}]`;
}
