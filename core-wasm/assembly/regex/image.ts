/**
 * Layout of a compiled pattern. Little-endian, position independent, 4-byte aligned; the same pattern and flags give
 * the same bytes.
 *
 *   header        20 bytes, below
 *   class map     u8[256], byte -> byte class            only with a DFA
 *   transitions   u16[states][classes + 1], zero-padded  only with a DFA
 *   sets          u8[32] each, bit b of the set = byte b
 *   instructions  8 bytes each
 *
 * A transition is ACCEPT, DEAD, or FIRST_ROW plus the offset of the next state's row in bytes; the two have no row. The
 * last column of a row says what the end of the text makes of the state: ACCEPT or DEAD. A DFA may read the text
 * backwards, from its end to its begin: what it calls the end is the begin then.
 */
import { MAX_INSTRUCTIONS, MAX_SETS, MAX_SLOTS, MAX_TABLE_BYTES } from "./limits";

export const IMAGE_SIZE: usize = 0; // u32, bytes of the whole image
export const IMAGE_GROUPS: usize = 4; // u16, capturing groups, those above 9 too
export const IMAGE_INSTRUCTIONS: usize = 6; // u16
export const IMAGE_SETS: usize = 8; // u16
export const IMAGE_FLAGS: usize = 10; // u16, below
export const IMAGE_STATES: usize = 12; // u16, 0 without a DFA
export const IMAGE_CLASSES: usize = 14; // u16, 0 without a DFA
export const IMAGE_START: usize = 16; // u16, first instruction
export const IMAGE_FIRST_STATE: usize = 18; // u16, a transition
export const HEADER_BYTES: usize = 20;

export const CLASS_MAP: usize = HEADER_BYTES;
export const CLASS_MAP_BYTES: usize = 256;
export const TRANSITIONS: usize = CLASS_MAP + CLASS_MAP_BYTES;

export const FLAG_ANCHORED: u32 = 1;
export const FLAG_DFA: u32 = 2;
export const FLAG_BACKWARDS: u32 = 4;

export const ACCEPT: u32 = 0;
export const DEAD: u32 = 1;
export const FIRST_ROW: u32 = 2;

export const SET_BYTES: u32 = 32;

// An instruction. Fields that its operation does not name are zero.
export const OP: usize = 0; // u8
export const LOW: usize = 1; // u8: lowest byte of RANGE; slot of SAVE; kind of ASSERT
export const HIGH: usize = 2; // u8: highest byte of RANGE
export const NEXT: usize = 4; // u16: the next instruction; of SPLIT, the one that is preferred
export const OTHER: usize = 6; // u16: of SPLIT, the second choice; of SET, the set
export const INSTRUCTION_BYTES: u32 = 8;

export const OP_MATCH: u32 = 0;
export const OP_RANGE: u32 = 1;
export const OP_SET: u32 = 2;
export const OP_SPLIT: u32 = 3;
export const OP_SAVE: u32 = 4;
export const OP_ASSERT: u32 = 5;

export const BEGIN_TEXT: u32 = 0;
export const END_TEXT: u32 = 1;
export const BEGIN_LINE: u32 = 2;
export const END_LINE: u32 = 3;
export const WORD_EDGE: u32 = 4;
export const NO_WORD_EDGE: u32 = 5;

/** Bytes from the start of an image to its sets; `cells` is the number of transitions, 0 without a DFA. */
export function setsOffset(flags: u32, cells: u32): usize {
  return flags & FLAG_DFA ? TRANSITIONS + ((cells * 2 + 3) & ~3) : HEADER_BYTES;
}

/** No image is larger than this. */
export const REGEX_MAX_SIZE: u32 =
  <u32>TRANSITIONS + MAX_TABLE_BYTES + MAX_SETS * SET_BYTES + MAX_INSTRUCTIONS * INSTRUCTION_BYTES;

/** Address of the sets of a valid image; its instructions follow them. */
export function imageSets(image: usize): usize {
  const cells: u32 = load<u16>(image, IMAGE_STATES) * (load<u16>(image, IMAGE_CLASSES) + 1);
  return image + setsOffset(load<u16>(image, IMAGE_FLAGS), cells);
}

/** Number of capturing groups of a valid image, the whole match not counted. */
export function regexGroups(image: usize): u32 {
  return load<u16>(image, IMAGE_GROUPS);
}

/** Slots of the groups that are tracked: the whole match and groups 1 to 9. */
export function imageSlots(image: usize): u32 {
  return min(regexGroups(image) * 2 + 2, MAX_SLOTS);
}
