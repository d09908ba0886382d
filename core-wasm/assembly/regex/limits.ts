/** Limits of the regex engine, the codes that it answers with, and why a pattern is refused. */

/** Answer of `regexCompile` to a pattern that is not taken. */
export const REGEX_REFUSED: i32 = -1;

/** Flags of `regexCompile`, as routes have them. Anchored: a match must begin at offset 0; it need not reach the end. */
export const COMPILE_IGNORE_CASE: u32 = 2;
export const COMPILE_ANCHORED: u32 = 4;

export const MAX_PATTERN: u32 = 4096;
export const MAX_NESTING: u32 = 250;
export const MAX_REPEAT: u32 = 1000;
export const MAX_INSTRUCTIONS: u32 = 4096;

/**
 * The DFA is kept only if it stays inside these three. They depend on the pattern alone, never on the room that a
 * caller gives: the same pattern always makes the same image. The steps bound the time of the construction.
 */
export const MAX_STATES: u32 = 512;
export const MAX_TABLE_BYTES: u32 = 65536;
export const MAX_STEPS: u32 = 1 << 22;

/** A set that is no plain range takes four bytes of pattern (`[ac]`), save `.`, \D \s \S \w \W and 26 folded letters. */
export const MAX_SETS: u32 = MAX_PATTERN / 4 + 32;

/** Groups 0 to 9 are tracked, two slots each. */
export const MAX_SLOTS: u32 = 20;

/** Why a pattern is refused. The messages stand in core-wasm/binding/regex-reasons.ts, in this order. */
export const PATTERN_TOO_LONG: u32 = 1;
export const NOT_UTF8: u32 = 2;
export const PAREN_UNCLOSED: u32 = 3;
export const PAREN_UNOPENED: u32 = 4;
export const CLASS_UNCLOSED: u32 = 5;
export const CLASS_RANGE: u32 = 6;
export const CLASS_NAME: u32 = 7;
export const CLASS_NON_ASCII: u32 = 8;
export const ESCAPE_UNKNOWN: u32 = 9;
export const ESCAPE_AT_END: u32 = 10;
export const ESCAPE_HEX: u32 = 11;
export const CODE_POINT_TOO_LARGE: u32 = 12;
export const BACKREFERENCE: u32 = 13;
export const UNICODE_CLASS: u32 = 14;
export const ESCAPE_UNSUPPORTED: u32 = 15;
export const REPEAT_NOTHING: u32 = 16;
export const REPEAT_TWICE: u32 = 17;
export const POSSESSIVE: u32 = 18;
export const REPEAT_ORDER: u32 = 19;
export const REPEAT_TOO_LARGE: u32 = 20;
export const LOOKAROUND: u32 = 21;
export const ATOMIC: u32 = 22;
export const CONDITIONAL: u32 = 23;
export const RECURSION: u32 = 24;
export const GROUP_SYNTAX: u32 = 25;
export const GROUP_NAME: u32 = 26;
export const GROUP_NAME_TWICE: u32 = 27;
export const NESTING_TOO_DEEP: u32 = 28;
export const PROGRAM_TOO_LARGE: u32 = 29;
