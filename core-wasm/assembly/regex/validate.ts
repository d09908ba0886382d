/** Checks that an image, whoever made it, can be run: nothing outside is read, nothing traps, every run ends. */
import {
  CLASS_MAP,
  CLASS_MAP_BYTES,
  DEAD,
  FIRST_ROW,
  FLAG_ANCHORED,
  FLAG_BACKWARDS,
  FLAG_DFA,
  HEADER_BYTES,
  HIGH,
  IMAGE_CLASSES,
  IMAGE_FIRST_STATE,
  IMAGE_FLAGS,
  IMAGE_GROUPS,
  IMAGE_INSTRUCTIONS,
  IMAGE_SETS,
  IMAGE_SIZE,
  IMAGE_START,
  IMAGE_STATES,
  INSTRUCTION_BYTES,
  LOW,
  NEXT,
  NO_WORD_EDGE,
  OP,
  OP_ASSERT,
  OP_MATCH,
  OP_RANGE,
  OP_SAVE,
  OP_SET,
  OP_SPLIT,
  OTHER,
  SET_BYTES,
  setsOffset,
  TRANSITIONS,
} from "./image";
import { MAX_INSTRUCTIONS, MAX_PATTERN, MAX_SETS, MAX_SLOTS, MAX_STATES, MAX_TABLE_BYTES } from "./limits";

/** Whether a transition leads to ACCEPT, DEAD or the beginning of a row. `row` and `table` are sizes in bytes. */
function isTransition(value: u32, row: u32, table: u32): bool {
  return value <= DEAD || (value - FIRST_ROW < table && (value - FIRST_ROW) % row === 0);
}

/** Checks class map and transitions. `cells` is known to lie inside the image. */
function validateDfa(image: usize, stride: u32, cells: u32): bool {
  for (let byte: usize = 0; byte < CLASS_MAP_BYTES; byte++) {
    if (<u32>load<u8>(image + byte, CLASS_MAP) + 1 >= stride) return false;
  }
  const end = image + TRANSITIONS + 2 * cells;
  let column: u32 = 0;
  for (let cell = image + TRANSITIONS; cell < end; cell += 2) {
    const value: u32 = load<u16>(cell);
    if (!isTransition(value, stride * 2, cells * 2)) return false;
    if (++column === stride) {
      if (value > DEAD) return false;
      column = 0;
    }
  }
  if (cells & 1 && load<u16>(end)) return false;
  return isTransition(load<u16>(image, IMAGE_FIRST_STATE), stride * 2, cells * 2);
}

/** Checks one instruction of a program of `count` with `sets` sets. */
function validateInstruction(at: usize, count: u32, sets: u32): bool {
  const op: u32 = load<u8>(at, OP);
  const low: u32 = load<u8>(at, LOW);
  const high: u32 = load<u8>(at, HIGH);
  const other: u32 = load<u16>(at, OTHER);
  const next: u32 = load<u16>(at, NEXT);
  // A field that the operation does not name has room for nothing but zero.
  let lows: u32 = 1;
  let others: u32 = 1;
  if (op === OP_SAVE) lows = MAX_SLOTS;
  if (op === OP_ASSERT) lows = NO_WORD_EDGE + 1;
  if (op === OP_SET) others = sets;
  if (op === OP_SPLIT) others = count;
  if (load<u8>(at, HIGH + 1) || next >= (op === OP_MATCH ? 1 : count) || op > OP_ASSERT || other >= others)
    return false;
  return op === OP_RANGE ? low <= high : low < lows && !high;
}

/** Whether the `length` bytes at `image` are an image that can be run safely. Reads nothing outside of them. */
export function regexValidate(image: usize, length: u32): bool {
  if (length < <u32>HEADER_BYTES || load<u32>(image, IMAGE_SIZE) !== length) return false;
  const flags: u32 = load<u16>(image, IMAGE_FLAGS);
  const count: u32 = load<u16>(image, IMAGE_INSTRUCTIONS);
  const sets: u32 = load<u16>(image, IMAGE_SETS);
  const states: u32 = load<u16>(image, IMAGE_STATES);
  const classes: u32 = load<u16>(image, IMAGE_CLASSES);
  const cells = states * (classes + 1);
  if (flags & ~(FLAG_ANCHORED | FLAG_DFA | FLAG_BACKWARDS)) return false;
  if (!count || count > MAX_INSTRUCTIONS || load<u16>(image, IMAGE_START) >= count) return false;
  if (sets > MAX_SETS || load<u16>(image, IMAGE_GROUPS) > MAX_PATTERN) return false;
  if (states > MAX_STATES || classes > 256 || cells * 2 > MAX_TABLE_BYTES) return false;
  if (!(flags & FLAG_DFA)) {
    if (states | classes | load<u16>(image, IMAGE_FIRST_STATE) | (flags & FLAG_BACKWARDS)) return false;
  }
  const program = setsOffset(flags, cells) + sets * SET_BYTES;
  if (program + count * INSTRUCTION_BYTES !== length) return false;
  if (flags & FLAG_DFA && !validateDfa(image, classes + 1, cells)) return false;
  for (let i: u32 = 0; i < count; i++) {
    if (!validateInstruction(image + program + i * INSTRUCTION_BYTES, count, sets)) return false;
  }
  return true;
}
