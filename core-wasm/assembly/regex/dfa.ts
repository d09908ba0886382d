/** Whether a text matches. */
import {
  ACCEPT,
  CLASS_MAP,
  DEAD,
  FIRST_ROW,
  FLAG_BACKWARDS,
  FLAG_DFA,
  IMAGE_CLASSES,
  IMAGE_FIRST_STATE,
  IMAGE_FLAGS,
  IMAGE_STATES,
  TRANSITIONS,
} from "./image";
import { simulate } from "./simulate";

// From here a transition counts: the rows begin FIRST_ROW bytes later.
const ROWS: usize = TRANSITIONS - FIRST_ROW;

/** Runs the DFA from a state over a text, or a part of it. Returns the transition to the state it is in then. */
function run(image: usize, state: u32, text: usize, length: u32): u32 {
  let at = text;
  let end = text + length;
  let step: usize = 1;
  if (load<u16>(image, IMAGE_FLAGS) & FLAG_BACKWARDS) {
    at = end - 1;
    end = text - 1;
    step = -1;
  }
  for (; state > DEAD && at !== end; at += step) {
    // The state is added last: nothing else waits for it.
    state = load<u16>(image + ((<usize>load<u8>(image + load<u8>(at), CLASS_MAP)) << 1) + state, ROWS);
  }
  return state;
}

/**
 * Whether the `length` bytes at `subject` hold a match. The image must be valid. Linear in the length. `scratch` is
 * used only by an image without a DFA; `regexTestScratchSize` says how much of it.
 */
export function regexTest(image: usize, subject: usize, length: u32, scratch: usize): bool {
  const flags: u32 = load<u16>(image, IMAGE_FLAGS);
  if (!(flags & FLAG_DFA)) return simulate(image, subject, length, scratch, 0, 0, 0);
  return regexFinish(image, load<u16>(image, IMAGE_FIRST_STATE), subject, length);
}

/**
 * Begins a test with a part of a text: its first bytes, or its last ones where `regexReadsBackwards`. The image must have
 * a DFA. Returns ACCEPT or DEAD if the rest does not matter, else the state for `regexFinish`.
 */
export function regexBegin(image: usize, part: usize, length: u32): u32 {
  return run(image, load<u16>(image, IMAGE_FIRST_STATE), part, length);
}

/** Ends a test with the rest of the text. `state` must satisfy `isState`. */
export function regexFinish(image: usize, state: u32, rest: usize, length: u32): bool {
  state = run(image, state, rest, length);
  if (state > DEAD) state = load<u16>(image + state + (load<u16>(image, IMAGE_CLASSES) << 1), ROWS);
  return state === ACCEPT;
}

/** Whether a number can be taken for a state of a valid image: all that it leads to lies inside the transitions. */
export function isState(image: usize, state: u32): bool {
  const row = (<u32>load<u16>(image, IMAGE_CLASSES) + 1) * 2;
  return !(state & 1) && state <= 0xffff && state + row <= FIRST_ROW + row * load<u16>(image, IMAGE_STATES);
}

/** Whether the image reads a text from its end. */
export function regexReadsBackwards(image: usize): bool {
  return (load<u16>(image, IMAGE_FLAGS) & FLAG_BACKWARDS) !== 0;
}
