/**
 * Layout of the work area of a compilation. Nothing in it outlives the call.
 *
 *   state         the fields below
 *   open groups   Open[250 + 1], outermost first; entry 0 is the whole pattern
 *   names         {u16 offset in the pattern, u16 length} of each named group
 *   sets          u8[32] each, without repetition
 *   instructions  as in the image
 *   nodes         the parse tree
 *   DFA           see dfa-work.ts
 */
import { INSTRUCTION_BYTES, SET_BYTES } from "./image";
import { MAX_INSTRUCTIONS, MAX_NESTING, MAX_PATTERN, MAX_SETS } from "./limits";

export const PATTERN: usize = 0; // address of the first byte of the pattern
export const PATTERN_END: usize = 4; // address after its last byte
export const FLAGS: usize = 8; // flags in force, below
export const NODE_COUNT: usize = 12;
export const SET_COUNT: usize = 16;
export const GROUP_COUNT: usize = 20;
export const NAME_COUNT: usize = 24;
export const SIZE: usize = 28; // instructions that the tree so far expands to, the final MATCH included
export const DEPTH: usize = 32; // index of the innermost open group
export const NEEDS_CONTEXT: usize = 36; // 1 if an assertion looks at the bytes around: no DFA
export const REASON: usize = 40; // why the pattern is refused, 0 so far
export const REFUSED_AT: usize = 44; // byte offset in the pattern
export const VALUE: usize = 48; // byte that the last escape stands for
export const MINIMUM: usize = 52; // of the last quantifier
export const MAXIMUM: usize = 56;
export const INSTRUCTION_COUNT: usize = 60;
export const STEPS: usize = 64; // taken by the DFA construction
export const CLASS_COUNT: usize = 68;
export const STATE_COUNT: usize = 72;
export const VISITED_COUNT: usize = 76;
export const ITEM: usize = 80; // node of the last character that was read
export const BACKWARDS: usize = 84; // 1 while a program that reads the text from its end is written
export const SCRATCH_SET: usize = 88; // u8[32]: the set of the class that is being read
export const NAMED_SET: usize = SCRATCH_SET + SET_BYTES; // u8[32]: a named class inside it
const STATE_BYTES: usize = NAMED_SET + SET_BYTES;

export const FOLD: u32 = 1; // (?i)
export const DOT_ALL: u32 = 2; // (?s)
export const MULTI_LINE: u32 = 4; // (?m)
export const UNGREEDY: u32 = 8; // (?U)

export const OPEN_AREA: usize = STATE_BYTES;
export const OPEN_NODE: usize = 0; // u32
export const OPEN_AT: usize = 4; // u32, address of its parenthesis
export const OPEN_FLAGS: usize = 8; // u32, flags to restore
export const OPEN_SIZE: usize = 12; // u32, SIZE before it
export const OPEN_BYTES: u32 = 16;

export const NAME_AREA: usize = OPEN_AREA + OPEN_BYTES * (MAX_NESTING + 1);
const NAMES: usize = MAX_PATTERN / 4; // a name takes more than four bytes: (?<n>)
const NAME_BYTES: usize = 4;

export const SET_AREA: usize = NAME_AREA + NAMES * NAME_BYTES;
export const INSTRUCTION_AREA: usize = SET_AREA + SET_BYTES * MAX_SETS;
export const TREE_AREA: usize = INSTRUCTION_AREA + INSTRUCTION_BYTES * MAX_INSTRUCTIONS;

/** Notes why the pattern is refused and where; returns 0, which every parsing function returns then. */
export function refuse(work: usize, at: usize, reason: u32): usize {
  store<u32>(work, reason, REASON);
  store<u32>(work, at - load<u32>(work, PATTERN), REFUSED_AT);
  return 0;
}

/** The byte at `at`, or -1 behind the end of the pattern. */
export function peek(work: usize, at: usize): i32 {
  return at < <usize>load<u32>(work, PATTERN_END) ? load<u8>(at) : -1;
}

/** Address of an instruction of the program that is being built. */
export function instructionAt(work: usize, index: u32): usize {
  return work + INSTRUCTION_AREA + index * INSTRUCTION_BYTES;
}
