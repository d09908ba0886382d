/**
 * Program to DFA by subset construction. The search for a match anywhere is built in: unless anchored, every state also
 * holds the threads that begin at its place. A state that has matched is ACCEPT, one that cannot match any more is DEAD.
 */
import { sameBytes } from "../memory/bytes";
import { findByteClasses } from "./byte-classes";
import { AT_BEGIN, AT_END, close, resetVisited } from "./closure";
import {
  BUCKETS,
  DFA_BUCKETS,
  DFA_ENDING,
  DFA_LEAVES,
  DFA_MAP,
  DFA_REPRESENTATIVES,
  DFA_RESTART,
  DFA_STATES,
  DFA_TRANSITIONS,
} from "./dfa-work";
import { ACCEPT, DEAD, FIRST_ROW, NEXT, OP, OP_ASSERT } from "./image";
import { MAX_STATES, MAX_STEPS, MAX_TABLE_BYTES } from "./limits";
import { takes } from "./sets";
import { CLASS_COUNT, INSTRUCTION_COUNT, instructionAt, SET_AREA, STATE_COUNT, STEPS, VISITED_COUNT } from "./work";

/** Answer of `addState` and `determinize`: the DFA would be too large, or take too long to build. */
export const TOO_LARGE: u32 = 0xffffffff;

const ENDING: usize = 0; // u32 of a state
const STATE_SET: usize = 4;

/** Bytes of a set, in whole words. */
function setSize(work: usize): u32 {
  return ((load<u32>(work, INSTRUCTION_COUNT) + 31) >> 5) << 2;
}

function stateAt(work: usize, index: u32): usize {
  return work + DFA_STATES + index * (setSize(work) + <u32>STATE_SET);
}

/** Lists the instructions of a state. Returns how many there are. */
function listLeaves(work: usize, state: usize): u32 {
  let count: u32 = 0;
  const size = setSize(work);
  for (let offset: u32 = 0; offset < size; offset += 4) {
    for (let bits = load<u32>(state + offset, STATE_SET); bits; bits &= bits - 1) {
      store<u16>(work + DFA_LEAVES + 2 * count++, (offset << 3) + ctz(bits));
    }
  }
  return count;
}

/** Whether a state accepts if the text ends at its place: whether an END_TEXT that waits leads to the end. */
function acceptsAtEnd(work: usize, state: usize, place: u32): bool {
  resetVisited(work);
  const size = setSize(work);
  for (let offset: u32 = 0; offset < size; offset += 4) {
    for (let bits = load<u32>(state + offset, STATE_SET); bits; bits &= bits - 1) {
      const at = instructionAt(work, (offset << 3) + ctz(bits));
      if (load<u8>(at, OP) !== OP_ASSERT) continue;
      if (close(work, load<u16>(at, NEXT), place | AT_END, work + DFA_ENDING)) return true;
    }
  }
  return false;
}

/**
 * Makes the candidate a state, unless it is known. Returns its index, or TOO_LARGE. `place` is AT_BEGIN for the first
 * state: where that alone decides whether it accepts an empty text, no other state may be taken for it.
 */
function addState(work: usize, place: u32): u32 {
  const count = load<u32>(work, STATE_COUNT);
  const candidate = stateAt(work, count);
  const size = setSize(work);
  let hash: u32 = 0;
  for (let offset: u32 = 0; offset < size; offset += 4) {
    hash = rotl((hash ^ load<u32>(candidate + offset, STATE_SET)) * 0x9e3779b1, 15);
  }
  let bucket: usize = 0;
  for (; ; hash++) {
    bucket = work + DFA_BUCKETS + 2 * (hash & (BUCKETS - 1));
    const known: u32 = load<u16>(bucket);
    if (!known) break;
    if (sameBytes(stateAt(work, known - 1) + STATE_SET, candidate + STATE_SET, size)) return known - 1;
  }
  if (count === MAX_STATES || (count + 1) * (load<u32>(work, CLASS_COUNT) + 1) * 2 > MAX_TABLE_BYTES) return TOO_LARGE;
  const ending = acceptsAtEnd(work, candidate, place);
  store<u32>(candidate, ending ? 1 : 0, ENDING);
  if (!place || ending === acceptsAtEnd(work, candidate, 0)) store<u16>(bucket, count + 1);
  store<u32>(work, count + 1, STATE_COUNT);
  return count;
}

/** The transition to the candidate, or TOO_LARGE. */
function transitionTo(work: usize, matched: bool, place: u32): u32 {
  if (matched) return ACCEPT;
  const candidate = stateAt(work, load<u32>(work, STATE_COUNT)) + STATE_SET;
  const size = setSize(work);
  let any: u32 = 0;
  for (let offset: u32 = 0; offset < size; offset += 4) any |= load<u32>(candidate + offset);
  if (!any) return DEAD;
  const index = addState(work, place);
  return index === TOO_LARGE ? TOO_LARGE : FIRST_ROW + index * 2 * (load<u32>(work, CLASS_COUNT) + 1);
}

/** Fills the row of a state. False if the DFA would be too large. */
function expandState(work: usize, index: u32): bool {
  const classes = load<u32>(work, CLASS_COUNT);
  const size = setSize(work);
  const leaves = listLeaves(work, stateAt(work, index));
  let cell = work + DFA_TRANSITIONS + 2 * index * (classes + 1);
  for (let k: u32 = 0; k < classes; k++, cell += 2) {
    const byte: u32 = load<u8>(work + DFA_REPRESENTATIVES + k);
    const set = stateAt(work, load<u32>(work, STATE_COUNT)) + STATE_SET;
    memory.copy(set, work + DFA_RESTART, size);
    resetVisited(work);
    let matched = false;
    for (let i: u32 = 0; i < leaves && !matched; i++) {
      const at = instructionAt(work, load<u16>(work + DFA_LEAVES + 2 * i));
      if (load<u8>(at, OP) === OP_ASSERT || !takes(at, work + SET_AREA, byte)) continue;
      matched = close(work, load<u16>(at, NEXT), 0, set);
    }
    const steps = load<u32>(work, STEPS) + leaves + size + load<u32>(work, VISITED_COUNT);
    store<u32>(work, steps, STEPS);
    const transition = transitionTo(work, matched, 0);
    if (steps > MAX_STEPS || transition === TOO_LARGE) return false;
    store<u16>(cell, transition);
  }
  store<u16>(cell, load<u32>(stateAt(work, index), ENDING) ? ACCEPT : DEAD);
  return true;
}

/**
 * Builds the DFA of the program that begins at `start` in the work area: class map, transitions, number of states and
 * classes. Returns the transition to its first state, or TOO_LARGE.
 */
export function determinize(work: usize, start: u32, anchored: bool): u32 {
  const map = work + DFA_MAP;
  // The states are not needed yet: room for the effects.
  const classes = findByteClasses(work, map, work + DFA_STATES);
  store<u32>(work, classes, CLASS_COUNT);
  store<u32>(work, 0, STATE_COUNT);
  store<u32>(work, 0, STEPS);
  for (let byte: u32 = 256; byte; byte--) {
    store<u8>(work + DFA_REPRESENTATIVES + load<u8>(map + byte - 1), byte - 1);
  }
  const size = setSize(work);
  memory.fill(work + DFA_BUCKETS, 0, 2 * BUCKETS);
  const restart = work + DFA_RESTART;
  memory.fill(restart, 0, size);
  resetVisited(work);
  // A thread that matches without a byte at a later place does so at the first one: the first state is ACCEPT then.
  if (!anchored) close(work, start, 0, restart);
  const first = stateAt(work, 0) + STATE_SET;
  memory.fill(first, 0, size);
  resetVisited(work);
  const entry = transitionTo(work, close(work, start, AT_BEGIN, first), AT_BEGIN);
  let complete = entry !== TOO_LARGE;
  for (let index: u32 = 0; complete && index < load<u32>(work, STATE_COUNT); index++)
    complete = expandState(work, index);
  return complete ? entry : TOO_LARGE;
}
