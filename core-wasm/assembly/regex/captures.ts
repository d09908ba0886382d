/** Where the groups of a match lie, and the scratch that runs need. */
import { regexTest } from "./dfa";
import { FLAG_DFA, IMAGE_FLAGS, IMAGE_INSTRUCTIONS, imageSlots } from "./image";
import { MAX_SLOTS } from "./limits";
import { simulate } from "./simulate";
import { simulationSize } from "./threads";

/** Slots of all threads together that one run may keep; a program with more is run again for the others. */
const MAX_THREAD_SLOTS: u32 = 40960;

/** Slots that one run tracks. */
function slotsPerRun(image: usize): u32 {
  return min(imageSlots(image), MAX_THREAD_SLOTS / load<u16>(image, IMAGE_INSTRUCTIONS));
}

/** Bytes of scratch that both `regexTest` and `regexCaptures` need for a valid image; at most about 400 KiB. */
export function regexScratchSize(image: usize): u32 {
  return simulationSize(image, slotsPerRun(image));
}

/**
 * As `regexTest`, and stores where the groups of the preferred match lie, as RE2 and Perl prefer it: 20 u32 at `slots`,
 * begin and end of groups 0 to 9, 0xffffffff where a group took no part. They are stored only if there is a match.
 * `scratch` needs `regexScratchSize` bytes.
 */
export function regexCaptures(image: usize, subject: usize, length: u32, scratch: usize, slots: usize): bool {
  // Most texts do not match, and a DFA sees that at a small part of the cost.
  const dfa = (load<u16>(image, IMAGE_FLAGS) & FLAG_DFA) !== 0;
  if (dfa && !regexTest(image, subject, length, scratch)) return false;
  const total = imageSlots(image);
  const step = slotsPerRun(image);
  for (let first: u32 = 0; first < total; first += step) {
    const at = slots + 4 * first;
    if (!simulate(image, subject, length, scratch, first, min(step, total - first), at)) return false;
  }
  memory.fill(slots + 4 * total, 0xff, 4 * (MAX_SLOTS - total));
  return true;
}
