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
  TRANSITIONS,
} from "./image";
import { simulate } from "./simulate";

// From here a transition counts: the rows begin FIRST_ROW bytes later.
const ROWS: usize = TRANSITIONS - FIRST_ROW;

/** Runs the DFA over a text, or a part of it. Returns the transition to the state it is in then. */
function run(image: usize, text: usize, length: u32): u32 {
  let at = text;
  let end = text + length;
  let step: usize = 1;
  if (load<u16>(image, IMAGE_FLAGS) & FLAG_BACKWARDS) {
    at = end - 1;
    end = text - 1;
    step = -1;
  }
  let state: u32 = load<u16>(image, IMAGE_FIRST_STATE);
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
  if (!(load<u16>(image, IMAGE_FLAGS) & FLAG_DFA)) return simulate(image, subject, length, scratch, 0, 0, 0);
  let state = run(image, subject, length);
  if (state > DEAD) state = load<u16>(image + state + (load<u16>(image, IMAGE_CLASSES) << 1), ROWS);
  return state === ACCEPT;
}

/** 1 or 0 if a part of a text, its begin or, where `regexReadsBackwards`, its end, is enough to know; else 2. */
export function regexDecide(image: usize, part: usize, length: u32): i32 {
  if (!(load<u16>(image, IMAGE_FLAGS) & FLAG_DFA)) return 2;
  const state = run(image, part, length);
  return state > DEAD ? 2 : state === ACCEPT ? 1 : 0;
}

/** Whether the image reads a text from its end. */
export function regexReadsBackwards(image: usize): bool {
  return (load<u16>(image, IMAGE_FLAGS) & FLAG_BACKWARDS) !== 0;
}
