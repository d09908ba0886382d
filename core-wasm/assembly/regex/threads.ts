/**
 * The threads of a simulation, in lists by order of preference.
 *
 * Scratch, for a program of n instructions (n rounded up to an even number), and s slots:
 *   registers  the fields below
 *   fresh      u32[20], slots of a thread that begins
 *   stack      {u32 value, u32 slot}[n + 1]: instructions to follow, and slots to restore on the way back
 *   two lists  u32 count; u16 sparse[n]; u16 dense[n]; u32 slots[n][s]
 * A list is a sparse set of instructions in order of preference; the slots of a thread are found by its instruction.
 */

import { isWordByte } from "./escape";
import {
  BEGIN_LINE,
  BEGIN_TEXT,
  END_LINE,
  END_TEXT,
  IMAGE_INSTRUCTIONS,
  INSTRUCTION_BYTES,
  LOW,
  NEXT,
  OP,
  OP_ASSERT,
  OP_SAVE,
  OP_SPLIT,
  OTHER,
  WORD_EDGE,
} from "./image";
import { MAX_SLOTS } from "./limits";

export const PROGRAM: usize = 0;
export const CAPACITY: usize = 4; // n
export const FIRST_SLOT: usize = 8; // slots from here
export const SLOTS: usize = 12; // so many, are tracked
export const SUBJECT: usize = 16;
export const LENGTH: usize = 20;
export const FRESH: usize = 24;
const STACK: usize = FRESH + 4 * MAX_SLOTS;

const STACK_ENTRY: u32 = 8;
const SLOT: usize = 4; // u32 of a stack entry: what to restore, FOLLOW for an instruction
const FOLLOW: u32 = 0xffffffff;

export const COUNT: usize = 0;
const SPARSE: usize = 4;

/** Instructions of an image, rounded up to an even number. */
function programCapacity(image: usize): u32 {
  return (load<u16>(image, IMAGE_INSTRUCTIONS) + 1) & ~1;
}

function listSize(capacity: u32, slots: u32): u32 {
  return <u32>SPARSE + capacity * (4 + 4 * slots);
}

/** Bytes of scratch that `simulate` needs for an image when it tracks `slots` slots. */
export function simulationSize(image: usize, slots: u32): u32 {
  const capacity = programCapacity(image);
  return <u32>STACK + (capacity + 1) * STACK_ENTRY + 2 * listSize(capacity, slots);
}

/** One of the two lists. */
export function listAt(run: usize, index: u32): usize {
  const capacity = load<u32>(run, CAPACITY);
  return run + STACK + (capacity + 1) * STACK_ENTRY + index * listSize(capacity, load<u32>(run, SLOTS));
}

/** Address of the instructions of a list, in order of preference. */
export function listThreads(run: usize, list: usize): usize {
  return list + SPARSE + 2 * load<u32>(run, CAPACITY);
}

/** Address of the slots of the thread that stands at an instruction. */
export function threadSlots(run: usize, list: usize, instruction: u32): usize {
  return list + SPARSE + 4 * load<u32>(run, CAPACITY) + 4 * instruction * load<u32>(run, SLOTS);
}

/** Whether an assertion holds between the byte before `position` and the byte at it. */
function holds(run: usize, kind: u32, position: u32): bool {
  const at = <usize>load<u32>(run, SUBJECT) + position;
  const atEnd = position === load<u32>(run, LENGTH);
  if (kind <= END_TEXT) return kind === BEGIN_TEXT ? !position : atEnd;
  const before: i32 = position ? load<u8>(at - 1) : 10;
  const after: i32 = atEnd ? 10 : load<u8>(at);
  if (kind <= END_LINE) return (kind === BEGIN_LINE ? before : after) === 10;
  return (isWordByte(before) !== isWordByte(after)) === (kind === WORD_EDGE);
}

/**
 * Adds to a list all that can be reached from an instruction without taking a byte, in order of preference. `slots` are
 * those of the thread; they are changed on the way and restored at the end.
 */
export function follow(run: usize, list: usize, instruction: u32, position: u32, slots: usize): void {
  const dense = listThreads(run, list);
  const slotCount = load<u32>(run, SLOTS);
  const base = run + STACK;
  let top = base;
  store<u32>(top, instruction);
  store<u32>(top, FOLLOW, SLOT);
  do {
    let index = load<u32>(top);
    const slot = load<u32>(top, SLOT);
    top -= STACK_ENTRY;
    if (slot !== FOLLOW) {
      store<u32>(slots + 4 * slot, index);
      continue;
    }
    for (;;) {
      const count = load<u32>(list, COUNT);
      const sparse = list + 2 * index;
      const place: u32 = load<u16>(sparse, SPARSE);
      if (place < count && load<u16>(dense + 2 * place) === index) break;
      store<u16>(sparse, count, SPARSE);
      store<u16>(dense + 2 * count, index);
      store<u32>(list, count + 1, COUNT);
      const at = <usize>load<u32>(run, PROGRAM) + index * INSTRUCTION_BYTES;
      const op: u32 = load<u8>(at, OP);
      if (op === OP_SPLIT) {
        top += STACK_ENTRY;
        store<u32>(top, load<u16>(at, OTHER));
        store<u32>(top, FOLLOW, SLOT);
      } else if (op === OP_SAVE) {
        const tracked = <u32>load<u8>(at, LOW) - load<u32>(run, FIRST_SLOT);
        if (tracked < slotCount) {
          top += STACK_ENTRY;
          store<u32>(top, load<u32>(slots + 4 * tracked));
          store<u32>(top, tracked, SLOT);
          store<u32>(slots + 4 * tracked, position);
        }
      } else if (op !== OP_ASSERT) {
        const own = threadSlots(run, list, index);
        for (let i: u32 = 0; i < slotCount; i++) store<u32>(own + 4 * i, load<u32>(slots + 4 * i));
        break;
      } else if (!holds(run, load<u8>(at, LOW), position)) {
        break;
      }
      index = load<u16>(at, NEXT);
    }
  } while (top >= base);
}
