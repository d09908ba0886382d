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

/**
 * Runs the DFA from a state, or a decision, over a part of a text: the next one, or the one before where the image reads
 * backwards. Returns ACCEPT or DEAD if nothing more matters, else the state; with `last` the text is over then.
 */
export function regexRun(image: usize, state: u32, part: usize, length: u32, last: bool): u32 {
  let at = part;
  let end = part + length;
  let step: usize = 1;
  if (load<u16>(image, IMAGE_FLAGS) & FLAG_BACKWARDS) {
    at = end - 1;
    end = part - 1;
    step = -1;
  }
  for (; state > DEAD && at !== end; at += step) {
    // The state is added last: nothing else waits for it.
    state = load<u16>(image + ((<usize>load<u8>(image + load<u8>(at), CLASS_MAP)) << 1) + state, ROWS);
  }
  if (last && state > DEAD) state = load<u16>(image + state + (load<u16>(image, IMAGE_CLASSES) << 1), ROWS);
  return state;
}

/**
 * Whether the `length` bytes at `subject` hold a match. The image must be valid. Linear in the length. `scratch` is
 * used only by an image without a DFA and needs `regexScratchSize` bytes.
 */
export function regexTest(image: usize, subject: usize, length: u32, scratch: usize): bool {
  if (!(load<u16>(image, IMAGE_FLAGS) & FLAG_DFA)) return simulate(image, subject, length, scratch, 0, 0, 0);
  return regexRun(image, load<u16>(image, IMAGE_FIRST_STATE), subject, length, true) === ACCEPT;
}

/** Whether a number can be taken for a state of a valid image with a DFA: all that it leads to lies inside the transitions. */
export function isState(image: usize, state: u32): bool {
  if (!(load<u16>(image, IMAGE_FLAGS) & FLAG_DFA)) return false;
  if (state <= DEAD) return true;
  const row = (<u32>load<u16>(image, IMAGE_CLASSES) + 1) * 2;
  return !(state & 1) && state <= 0xffff && state + row <= FIRST_ROW + row * load<u16>(image, IMAGE_STATES);
}
