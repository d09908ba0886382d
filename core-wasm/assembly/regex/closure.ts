/** The closure of the DFA construction: where a thread gets without taking a byte. */

import { DFA_DENSE, DFA_SPARSE, DFA_STACK } from "./dfa-work";
import { BEGIN_TEXT, END_TEXT, LOW, NEXT, OP, OP_ASSERT, OP_MATCH, OP_SAVE, OP_SPLIT, OTHER } from "./image";
import { instructionAt, VISITED_COUNT } from "./work";

/** Places in the text, as bits. */
export const AT_BEGIN: u32 = 1;
export const AT_END: u32 = 2;

/** Forgets what was visited: the next closure belongs to another state. */
export function resetVisited(work: usize): void {
  store<u32>(work, 0, VISITED_COUNT);
}

/** Marks an instruction; false if it was marked before. Sparse set (Briggs and Torczon): needs no clearing. */
function visit(work: usize, instruction: u32): bool {
  const count = load<u32>(work, VISITED_COUNT);
  const sparse = work + DFA_SPARSE + 2 * instruction;
  const index: u32 = load<u16>(sparse);
  if (index < count && load<u16>(work + DFA_DENSE + 2 * index) === instruction) return false;
  store<u16>(sparse, count);
  store<u16>(work + DFA_DENSE + 2 * count, instruction);
  store<u32>(work, count + 1, VISITED_COUNT);
  return true;
}

/**
 * Adds to `set` the byte takers, and the END_TEXTs that still wait, that can be reached from `instruction` at a place in
 * the text. True if the end of the pattern can be reached.
 */
export function close(work: usize, instruction: u32, place: u32, set: usize): bool {
  const base = work + DFA_STACK;
  let top = base;
  store<u16>(top, instruction);
  do {
    const index: u32 = load<u16>(top);
    top -= 2;
    if (!visit(work, index)) continue;
    const at = instructionAt(work, index);
    switch (<u32>load<u8>(at, OP)) {
      case OP_MATCH:
        return true;
      case OP_SPLIT:
        store<u16>((top += 2), load<u16>(at, OTHER));
        store<u16>((top += 2), load<u16>(at, NEXT));
        continue;
      case OP_SAVE:
        store<u16>((top += 2), load<u16>(at, NEXT));
        continue;
      case OP_ASSERT: {
        const kind: u32 = load<u8>(at, LOW);
        if (place & (kind === BEGIN_TEXT ? AT_BEGIN : AT_END)) store<u16>((top += 2), load<u16>(at, NEXT));
        else if (kind === END_TEXT) break;
        continue;
      }
    }
    store<u8>(set + (index >> 3), load<u8>(set + (index >> 3)) | ((<u32>1) << (index & 7)));
  } while (top >= base);
  return false;
}
