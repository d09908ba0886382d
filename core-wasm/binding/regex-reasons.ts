/** Why a pattern is refused, by the reason codes of core-wasm/assembly/regex/limits.ts. */
const REASONS: readonly string[] = [
  "",
  "the pattern is longer than 4096 bytes",
  "the pattern is not valid UTF-8",
  "this parenthesis is not closed",
  "this parenthesis closes nothing",
  "this character class is not closed",
  "the range of this character class ends before it begins",
  "there is no character class of this name",
  "a character outside ASCII can't be part of a character class: matching works on bytes",
  "there is no such escape",
  "the pattern ends with a backslash",
  "\\x takes two hexadecimal digits, or some in braces",
  "a code point above 0xFF can't be written as an escape: matching works on bytes",
  "backreferences are not supported: matching would not be linear",
  "Unicode classes (\\p) are not supported: matching works on bytes",
  "\\G, \\K, \\X and \\Z are not supported",
  "there is nothing to repeat",
  "a repetition can't be repeated without a group",
  "possessive repetition is not supported",
  "the repetition's upper bound is below its lower bound",
  "a repetition count may not exceed 1000",
  "lookahead and lookbehind are not supported: matching would not be linear",
  "atomic groups are not supported",
  "conditional groups are not supported",
  "recursion is not supported",
  "there is no such group or flag syntax",
  "a group name consists of ASCII letters, digits and _ and ends with >",
  "this group name is already in use",
  "groups are nested deeper than 250",
  "the pattern is too large: written out, its repetitions take more than 4096 instructions",
];

/** Text of a reason code. */
export function regexReason(code: number): string {
  return REASONS[code] ?? `refused (${code})`;
}
