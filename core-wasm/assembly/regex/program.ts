/**
 * Parse tree to program, for a machine that follows all threads at once (Thompson; Pike's captures).
 *
 * It is written from the end: each function takes the instruction that comes next and returns the one where its own
 * part begins, so that no jump is ever needed. The first choice of a SPLIT is the preferred one. The depth of the
 * recursion is bounded by the nesting of the pattern, its length by the size that the parser has checked.
 */
import { NEXT, OP_ASSERT, OP_MATCH, OP_RANGE, OP_SAVE, OP_SET, OP_SPLIT, OTHER } from "./image";
import {
  ASSERT,
  FIRST,
  FOLLOWING,
  INDEX,
  KIND,
  LAST,
  LAZY,
  NO_CAPTURE,
  NODE_HIGH,
  NODE_LOW,
  NODE_MAX,
  NODE_MIN,
  NULLABLE,
  PREVIOUS,
  RANGE,
  SET,
  TRAITS,
  UNBOUNDED,
} from "./tree";
import { BACKWARDS, INSTRUCTION_COUNT, instructionAt } from "./work";

function write(work: usize, op: u32, low: u32, high: u32, next: u32, other: u32): u32 {
  const index = load<u32>(work, INSTRUCTION_COUNT);
  store<u32>(work, index + 1, INSTRUCTION_COUNT);
  const at = instructionAt(work, index);
  store<u32>(at, op | (low << 8) | (high << 16));
  store<u16>(at, next, NEXT);
  store<u16>(at, other, OTHER);
  return index;
}

/** A choice between going into an item and going past it. */
function writeChoice(work: usize, into: u32, past: u32, lazy: bool): u32 {
  return lazy ? write(work, OP_SPLIT, 0, 0, past, into) : write(work, OP_SPLIT, 0, 0, into, past);
}

function writeItems(work: usize, alternative: usize, next: u32): u32 {
  const backwards = load<u32>(work, BACKWARDS);
  let item: usize = backwards ? load<u32>(alternative, FIRST) : load<u32>(alternative, LAST);
  while (item) {
    next = writeRepeated(work, item, next);
    item = backwards ? load<u32>(item, FOLLOWING) : load<u32>(item, PREVIOUS);
  }
  return next;
}

function writeGroup(work: usize, group: usize, next: u32): u32 {
  const capture = load<u32>(group, INDEX);
  if (capture !== NO_CAPTURE) next = write(work, OP_SAVE, 2 * capture + 1, 0, next, 0);
  let alternative: usize = load<u32>(group, LAST);
  let entry = writeItems(work, alternative, next);
  for (;;) {
    alternative = load<u32>(alternative, PREVIOUS);
    if (!alternative) break;
    entry = write(work, OP_SPLIT, 0, 0, writeItems(work, alternative, next), entry);
  }
  return capture !== NO_CAPTURE ? write(work, OP_SAVE, 2 * capture, 0, entry, 0) : entry;
}

function writeOnce(work: usize, item: usize, next: u32): u32 {
  switch (<u32>load<u8>(item, KIND)) {
    case RANGE:
      return write(work, OP_RANGE, load<u8>(item, NODE_LOW), load<u8>(item, NODE_HIGH), next, 0);
    case SET:
      return write(work, OP_SET, 0, 0, next, load<u32>(item, INDEX));
    case ASSERT:
      // Where the text ends is where a program that reads it backwards begins. Only these two occur in one.
      return write(work, OP_ASSERT, load<u8>(item, NODE_LOW) ^ load<u32>(work, BACKWARDS), 0, next, 0);
  }
  return writeGroup(work, item, next);
}

function writeRepeated(work: usize, item: usize, next: u32): u32 {
  let least: u32 = load<u16>(item, NODE_MIN);
  const most: u32 = load<u16>(item, NODE_MAX);
  const traits: u32 = load<u8>(item, TRAITS);
  const lazy = (traits & LAZY) !== 0;
  let entry = next;
  if (most === UNBOUNDED) {
    const loop = writeChoice(work, 0, 0, lazy);
    const body = writeOnce(work, item, loop);
    const at = instructionAt(work, loop);
    store<u16>(at, lazy ? next : body, NEXT);
    store<u16>(at, lazy ? body : next, OTHER);
    // x* of an x that can match nothing is (x+)?: else its empty match would be preferred in the wrong order.
    if (!least) return traits & NULLABLE ? writeChoice(work, body, next, lazy) : loop;
    entry = body;
    least--;
  } else {
    for (let i = least; i < most; i++) entry = writeChoice(work, writeOnce(work, item, entry), next, lazy);
  }
  for (; least; least--) entry = writeOnce(work, item, entry);
  return entry;
}

/**
 * Writes the program of the tree into the work area, in the place of the one that stood there. With `backwards` 1, it
 * reads the text from the end; what it saves has no meaning then. Returns its first instruction.
 */
export function writeProgram(work: usize, root: usize, backwards: u32): u32 {
  store<u32>(work, backwards, BACKWARDS);
  store<u32>(work, 0, INSTRUCTION_COUNT);
  return writeGroup(work, root, write(work, OP_MATCH, 0, 0, 0, 0));
}
