/** Whether a text matches. */
import {
  ACCEPT,
  CLASS_MAP,
  DEAD,
  FIRST_ROW,
  FLAG_DFA,
  IMAGE_CLASSES,
  IMAGE_FIRST_STATE,
  IMAGE_FLAGS,
  TRANSITIONS,
} from "./image";
import { simulate } from "./simulate";

const CELLS: usize = TRANSITIONS - 2 * FIRST_ROW; // a transition counts from here

/**
 * Whether the `length` bytes at `subject` hold a match. The image must be valid. Linear in the length. `scratch` is
 * used only by an image without a DFA; `regexTestScratchSize` says how much of it.
 */
export function regexTest(image: usize, subject: usize, length: u32, scratch: usize): bool {
  if (!(load<u16>(image, IMAGE_FLAGS) & FLAG_DFA)) return simulate(image, subject, length, scratch, 0, 0, 0);
  const end = subject + length;
  let state: u32 = load<u16>(image, IMAGE_FIRST_STATE);
  while (state > DEAD) {
    if (subject === end) {
      state = load<u16>(image + ((state + load<u16>(image, IMAGE_CLASSES)) << 1), CELLS);
      break;
    }
    state = load<u16>(image + ((state + load<u8>(image + load<u8>(subject), CLASS_MAP)) << 1), CELLS);
    subject++;
  }
  return state === ACCEPT;
}
