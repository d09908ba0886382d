/**
 * The parse tree. A group holds its alternatives, as a chain from the last to the first; an alternative holds its
 * items, as a chain both ways: programs are written from their end, and one may read the text backwards. Every item carries its own repetition. Items that expand to no instruction are
 * left out, so that walking the tree takes no longer than writing the program.
 *
 * At most two nodes a pattern byte: a group and its alternative, or a character of two bytes with a group around it.
 */

import { BEGIN_TEXT, END_TEXT, SET_BYTES } from "./image";
import { MAX_PATTERN } from "./limits";
import { internSet, setAdd, setHas } from "./sets";
import { FLAGS, FOLD, NODE_COUNT, SCRATCH_SET, SIZE, TREE_AREA } from "./work";

export const KIND: usize = 0; // u8, below
export const NODE_LOW: usize = 1; // u8: RANGE: lowest byte; ASSERT: kind
export const NODE_HIGH: usize = 2; // u8: RANGE: highest byte
export const TRAITS: usize = 3; // u8, below
export const PREVIOUS: usize = 4; // u32: the item or alternative before this one, 0 if it is the first
export const FOLLOWING: usize = 24; // u32: the item after this one, 0 if it is the last
export const LAST: usize = 8; // u32: GROUP: last alternative; ALTERNATIVE: last item, 0 if it is empty
export const FIRST: usize = 28; // u32: ALTERNATIVE: first item, 0 if it is empty
export const INDEX: usize = 12; // u32: SET: the set; GROUP: its number, NO_CAPTURE if it has none
export const NODE_MIN: usize = 16; // u16
export const NODE_MAX: usize = 18; // u16, UNBOUNDED
export const NODE_COST: usize = 20; // u32: instructions, without and later with the repetition
export const NODE_BYTES: u32 = 32;

export const TREE_BYTES: usize = NODE_BYTES * (2 * MAX_PATTERN + 2);

export const RANGE: u32 = 0;
export const SET: u32 = 1;
export const ASSERT: u32 = 2;
export const GROUP: u32 = 3;
export const ALTERNATIVE: u32 = 4;

export const NULLABLE: u32 = 1; // can match the empty text
export const LAZY: u32 = 2;
export const TIED_TO_BEGIN: u32 = 4; // every match of it begins where the text begins
export const TIED_TO_END: u32 = 8; // every match of it ends where the text ends

export const NO_CAPTURE: u32 = 0xffffffff;
export const UNBOUNDED: u32 = 0xffff;

function newNode(work: usize, kind: u32, cost: u32): usize {
  const index = load<u32>(work, NODE_COUNT);
  store<u32>(work, index + 1, NODE_COUNT);
  store<u32>(work, load<u32>(work, SIZE) + cost, SIZE);
  const node = work + TREE_AREA + index * NODE_BYTES;
  memory.fill(node, 0, NODE_BYTES);
  store<u8>(node, kind, KIND);
  store<u16>(node, 1, NODE_MIN);
  store<u16>(node, 1, NODE_MAX);
  store<u32>(node, cost, NODE_COST);
  return node;
}

export function newRange(work: usize, low: u32, high: u32): usize {
  const node = newNode(work, RANGE, 1);
  store<u8>(node, low, NODE_LOW);
  store<u8>(node, high, NODE_HIGH);
  return node;
}

export function newAssertion(work: usize, kind: u32): usize {
  const node = newNode(work, ASSERT, 1);
  store<u8>(node, kind, NODE_LOW);
  const tie = kind === BEGIN_TEXT ? TIED_TO_BEGIN : kind === END_TEXT ? TIED_TO_END : 0;
  store<u8>(node, NULLABLE | tie, TRAITS);
  return node;
}

/** A group with one empty alternative. `cost` is what it adds to the program by itself. */
export function newGroup(work: usize, capture: u32, cost: u32): usize {
  const group = newNode(work, GROUP, cost);
  store<u32>(group, capture, INDEX);
  addAlternative(work, group, 0);
  return group;
}

/** Begins the next alternative of a group. */
export function addAlternative(work: usize, group: usize, cost: u32): void {
  const alternative = newNode(work, ALTERNATIVE, cost);
  store<u32>(alternative, load<u32>(group, LAST), PREVIOUS);
  store<u8>(alternative, NULLABLE, TRAITS);
  store<u32>(group, alternative, LAST);
}

/** Appends an item, with its repetition, to the last alternative of a group. */
export function appendItem(group: usize, item: usize): void {
  if (!load<u32>(item, NODE_COST)) return;
  const alternative: usize = load<u32>(group, LAST);
  const before: usize = load<u32>(alternative, LAST);
  let traits: u32 = load<u8>(item, TRAITS);
  if (!load<u16>(item, NODE_MIN)) traits = NULLABLE;
  if (before) {
    const earlier: u32 = load<u8>(alternative, TRAITS);
    traits = (traits & earlier & NULLABLE) | (earlier & TIED_TO_BEGIN) | (traits & TIED_TO_END);
    store<u32>(before, item, FOLLOWING);
  } else {
    store<u32>(alternative, item, FIRST);
  }
  store<u32>(item, before, PREVIOUS);
  store<u32>(alternative, item, LAST);
  store<u8>(alternative, traits & ~LAZY, TRAITS);
}

/** Empties the set that `newSetFromScratch` reads. */
export function clearScratchSet(work: usize): usize {
  const set = work + SCRATCH_SET;
  memory.fill(set, 0, SET_BYTES);
  return set;
}

/** One byte out of the scratch set. What is a plain range, and not empty, becomes one. */
export function newSetFromScratch(work: usize): usize {
  const set = work + SCRATCH_SET;
  let low: u32 = 0;
  while (low < 256 && !setHas(set, low)) low++;
  let high = low;
  while (high < 255 && setHas(set, high + 1)) high++;
  let rest = high + 1;
  while (rest < 256 && !setHas(set, rest)) rest++;
  if (low < 256 && rest >= 256) return newRange(work, low, high);
  const node = newNode(work, SET, 1);
  store<u32>(node, internSet(work, set), INDEX);
  return node;
}

/** One literal byte, in both cases if (?i) is on. */
export function newLiteral(work: usize, byte: u32): usize {
  const lower = byte | 0x20;
  if (!(load<u32>(work, FLAGS) & FOLD) || lower - 0x61 > 25) return newRange(work, byte, byte);
  const set = clearScratchSet(work);
  setAdd(set, lower, lower);
  setAdd(set, lower ^ 0x20, lower ^ 0x20);
  return newSetFromScratch(work);
}
