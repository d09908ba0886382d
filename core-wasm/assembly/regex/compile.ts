/** Pattern text to image. */
import { determinize, TOO_LARGE } from "./determinize";
import { DFA_MAP, DFA_TRANSITIONS } from "./dfa-work";
import {
  CLASS_MAP,
  CLASS_MAP_BYTES,
  FLAG_ANCHORED,
  FLAG_BACKWARDS,
  FLAG_DFA,
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
  SET_BYTES,
  setsOffset,
  TRANSITIONS,
} from "./image";
import { COMPILE_ANCHORED, COMPILE_IGNORE_CASE, MAX_PATTERN, PATTERN_TOO_LONG, REGEX_REFUSED } from "./limits";
import { parsePattern } from "./parse";
import { writeProgram } from "./program";
import { TIED_TO_BEGIN, TIED_TO_END, TRAITS } from "./tree";
import {
  CLASS_COUNT,
  FLAGS,
  FOLD,
  GROUP_COUNT,
  INSTRUCTION_AREA,
  INSTRUCTION_COUNT,
  NEEDS_CONTEXT,
  OPEN_AREA,
  OPEN_BYTES,
  PATTERN,
  PATTERN_END,
  REASON,
  REFUSED_AT,
  refuse,
  SET_AREA,
  SET_COUNT,
  SIZE,
  STATE_COUNT,
} from "./work";

/** Copies what stands in the work area into an image. Returns its size. */
function writeImage(work: usize, start: u32, firstState: u32, flags: u32, out: usize): i32 {
  const complete = (flags & FLAG_DFA) !== 0;
  const states = complete ? load<u32>(work, STATE_COUNT) : 0;
  const classes = complete ? load<u32>(work, CLASS_COUNT) : 0;
  const cells = states * (classes + 1);
  const sets = load<u32>(work, SET_COUNT) * SET_BYTES;
  const instructions = load<u32>(work, INSTRUCTION_COUNT) * INSTRUCTION_BYTES;
  const body = setsOffset(flags, cells);
  const size = <u32>body + sets + instructions;
  store<u32>(out, size, IMAGE_SIZE);
  store<u16>(out, load<u32>(work, GROUP_COUNT), IMAGE_GROUPS);
  store<u16>(out, load<u32>(work, INSTRUCTION_COUNT), IMAGE_INSTRUCTIONS);
  store<u16>(out, load<u32>(work, SET_COUNT), IMAGE_SETS);
  store<u16>(out, flags, IMAGE_FLAGS);
  store<u16>(out, states, IMAGE_STATES);
  store<u16>(out, classes, IMAGE_CLASSES);
  store<u16>(out, start, IMAGE_START);
  store<u16>(out, complete ? firstState : 0, IMAGE_FIRST_STATE);
  if (complete) {
    memory.copy(out + CLASS_MAP, work + DFA_MAP, CLASS_MAP_BYTES);
    if (cells & 1) store<u16>(out + body - 2, 0);
    memory.copy(out + TRANSITIONS, work + DFA_TRANSITIONS, 2 * cells);
  }
  memory.copy(out + body, work + SET_AREA, sets);
  memory.copy(out + body + sets, work + INSTRUCTION_AREA, instructions);
  return size;
}

/** Builds program and DFA of the tree, and writes the image. */
function build(work: usize, root: usize, anchored: bool, out: usize): i32 {
  const ties: u32 = load<u8>(root, TRAITS) & (TIED_TO_BEGIN | TIED_TO_END);
  const context = load<u32>(work, NEEDS_CONTEXT) !== 0;
  let flags = anchored ? FLAG_ANCHORED : 0;
  let firstState = TOO_LARGE;
  // A pattern whose matches all end where the text ends is decided fastest from there.
  if (!context && !anchored && ties === TIED_TO_END) {
    firstState = determinize(work, writeProgram(work, root, 1), true);
    if (firstState !== TOO_LARGE) flags |= FLAG_BACKWARDS;
  }
  const start = writeProgram(work, root, 0);
  if (!context && firstState === TOO_LARGE) firstState = determinize(work, start, anchored);
  if (firstState !== TOO_LARGE) flags |= FLAG_DFA;
  return writeImage(work, start, firstState, flags, out);
}

/**
 * Compiles a pattern, UTF-8 bytes in RE2's syntax, to an image. `flags` is made of COMPILE_IGNORE_CASE and
 * COMPILE_ANCHORED. `work` needs REGEX_WORK_SIZE bytes, `out` REGEX_MAX_SIZE.
 *
 * Returns the size of the image, or REGEX_REFUSED if the pattern is not taken; `out` then holds the byte offset of the
 * culprit and the reason, each a u32.
 */
export function regexCompile(pattern: usize, length: u32, flags: u32, out: usize, work: usize): i32 {
  memory.fill(work, 0, OPEN_AREA + OPEN_BYTES);
  store<u32>(work, pattern, PATTERN);
  store<u32>(work, pattern + length, PATTERN_END);
  store<u32>(work, flags & COMPILE_IGNORE_CASE ? FOLD : 0, FLAGS);
  store<u32>(work, 1, SIZE);
  const root =
    length > MAX_PATTERN ? refuse(work, pattern + MAX_PATTERN, PATTERN_TOO_LONG) : parsePattern(work, pattern);
  if (!root) {
    store<u32>(out, load<u32>(work, REFUSED_AT));
    store<u32>(out, load<u32>(work, REASON), 4);
    return REGEX_REFUSED;
  }
  return build(work, root, (flags & COMPILE_ANCHORED) !== 0, out);
}
