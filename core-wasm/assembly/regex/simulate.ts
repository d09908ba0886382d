/**
 * Runs a program on a text with all its threads at once, in order of preference (Pike's machine): linear in the length
 * of the text times that of the program, for every pattern and every text.
 */
import {
  BEGIN_TEXT,
  FLAG_ANCHORED,
  FLAG_DFA,
  IMAGE_FLAGS,
  IMAGE_INSTRUCTIONS,
  IMAGE_SETS,
  IMAGE_START,
  INSTRUCTION_BYTES,
  imageSets,
  imageSlots,
  LOW,
  NEXT,
  OP,
  OP_ASSERT,
  OP_MATCH,
  OP_RANGE,
  OP_SET,
  SET_BYTES,
} from "./image";
import { MAX_SLOTS } from "./limits";
import { takes } from "./sets";
import {
  CAPACITY,
  COUNT,
  FIRST_SLOT,
  FRESH,
  follow,
  LENGTH,
  listAt,
  listThreads,
  PROGRAM,
  SLOTS,
  SUBJECT,
  simulationSize,
  threadSlots,
} from "./threads";

export const UNSET: u32 = 0xffffffff;

/** Slots of all threads together that one run may keep; a program with more is run again for the others. */
const MAX_THREAD_SLOTS: u32 = 40960;

/** Slots that one run tracks. */
function slotsPerRun(image: usize): u32 {
  return min(imageSlots(image), MAX_THREAD_SLOTS / load<u16>(image, IMAGE_INSTRUCTIONS));
}

/** Bytes of scratch that `regexTest` needs for a valid image; 0 if it has a DFA. */
export function regexTestScratchSize(image: usize): u32 {
  return load<u16>(image, IMAGE_FLAGS) & FLAG_DFA ? 0 : simulationSize(image, 0);
}

/** Bytes of scratch that both `regexTest` and `regexCaptures` need for a valid image; at most about 400 KiB. */
export function regexScratchSize(image: usize): u32 {
  return simulationSize(image, slotsPerRun(image));
}

/**
 * Looks for the preferred match and stores `count` of its slots, from number `first` on, at `slots`. With no slots it
 * ends at the first match of any kind.
 */
export function simulate(
  image: usize,
  subject: usize,
  length: u32,
  run: usize,
  first: u32,
  count: u32,
  slots: usize,
): bool {
  const sets = imageSets(image);
  const program = sets + load<u16>(image, IMAGE_SETS) * SET_BYTES;
  store<u32>(run, program, PROGRAM);
  store<u32>(run, (load<u16>(image, IMAGE_INSTRUCTIONS) + 1) & ~1, CAPACITY);
  store<u32>(run, first, FIRST_SLOT);
  store<u32>(run, count, SLOTS);
  store<u32>(run, subject, SUBJECT);
  store<u32>(run, length, LENGTH);
  let threads = listAt(run, 0);
  let others = listAt(run, 1);
  store<u32>(threads, 0, COUNT);
  const start: u32 = load<u16>(image, IMAGE_START);
  const entry = program + start * INSTRUCTION_BYTES;
  const anchored =
    (load<u16>(image, IMAGE_FLAGS) & FLAG_ANCHORED) !== 0 ||
    (load<u8>(entry, OP) === OP_ASSERT && load<u8>(entry, LOW) === BEGIN_TEXT);
  let matched = false;
  for (let position: u32 = 0; position <= length; position++) {
    if (!matched && !(anchored && position)) {
      memory.fill(run + FRESH, 0xff, 4 * count);
      if (count && !first) store<u32>(run + FRESH, position);
      follow(run, threads, start, position, run + FRESH);
    } else if (!load<u32>(threads, COUNT)) {
      return matched;
    }
    store<u32>(others, 0, COUNT);
    const dense = listThreads(run, threads);
    const end = dense + 2 * load<u32>(threads, COUNT);
    for (let thread = dense; thread < end; thread += 2) {
      const index: u32 = load<u16>(thread);
      const at = program + index * INSTRUCTION_BYTES;
      const op: u32 = load<u8>(at, OP);
      const own = threadSlots(run, threads, index);
      if (op === OP_MATCH) {
        if (!count) return true;
        matched = true;
        memory.copy(slots, own, 4 * count);
        if (!first) store<u32>(slots, position, 4);
        break; // threads of lower preference end here
      }
      if ((op === OP_RANGE || op === OP_SET) && position < length && takes(at, sets, load<u8>(subject + position))) {
        follow(run, others, load<u16>(at, NEXT), position + 1, own);
      }
    }
    const swap = threads;
    threads = others;
    others = swap;
  }
  return matched;
}

/**
 * As `regexTest`, and stores where the groups of the preferred match lie, as RE2 and Perl prefer it: 20 u32 at `slots`,
 * begin and end of groups 0 to 9, UNSET where a group took no part. They are stored only if there is a match.
 * `scratch` needs `regexScratchSize` bytes.
 */
export function regexCaptures(image: usize, subject: usize, length: u32, scratch: usize, slots: usize): bool {
  const total = imageSlots(image);
  const step = slotsPerRun(image);
  for (let first: u32 = 0; first < total; first += step) {
    const at = slots + 4 * first;
    if (!simulate(image, subject, length, scratch, first, min(step, total - first), at)) return false;
  }
  memory.fill(slots + 4 * total, 0xff, 4 * (MAX_SLOTS - total));
  return true;
}
