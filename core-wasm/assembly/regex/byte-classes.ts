/** Byte classes: bytes that no instruction of the program tells apart share a column of the transition table. */
import { OP, OP_RANGE, OP_SET, OTHER } from "./image";
import { takes } from "./sets";
import { INSTRUCTION_COUNT, instructionAt, SET_AREA } from "./work";

// What an instruction does to a class: whether it takes any of its bytes, whether it leaves any, and the number of the
// new class for those that it takes.
const TAKES: u32 = 1;
const LEAVES: u32 = 2;
const NEW_CLASS: u32 = 2; // shift

/** Splits the classes that one instruction cuts in two. Returns the new number of classes. */
function splitClasses(instruction: usize, sets: usize, map: usize, effects: usize, count: u32): u32 {
  memory.fill(effects, 0, 2 * count);
  for (let byte: u32 = 0; byte < 256; byte++) {
    const effect = effects + ((<usize>load<u8>(map + byte)) << 1);
    store<u16>(effect, load<u16>(effect) | (takes(instruction, sets, byte) ? TAKES : LEAVES));
  }
  for (let byte: u32 = 0; byte < 256; byte++) {
    const effect = effects + ((<usize>load<u8>(map + byte)) << 1);
    let bits: u32 = load<u16>(effect);
    if ((bits & (TAKES | LEAVES)) !== (TAKES | LEAVES) || !takes(instruction, sets, byte)) continue;
    if (!(bits >> NEW_CLASS)) {
      bits |= count++ << NEW_CLASS;
      store<u16>(effect, bits);
    }
    store<u8>(map + byte, bits >> NEW_CLASS);
  }
  return count;
}

/**
 * Fills `map`, u8[256], with the class of each byte and returns the number of classes; `effects`, u16[256], is scratch.
 * Classes are numbered in the order in which the program tells them apart.
 */
export function findByteClasses(work: usize, map: usize, effects: usize): u32 {
  memory.fill(map, 0, 256);
  let count: u32 = 1;
  let last: u64 = 0;
  const instructions = load<u32>(work, INSTRUCTION_COUNT);
  for (let i: u32 = 0; i < instructions; i++) {
    const at = instructionAt(work, i);
    const op: u32 = load<u8>(at, OP);
    if (op !== OP_RANGE && op !== OP_SET) continue;
    // A counted repetition has the same instruction many times over.
    const what = <u64>load<u32>(at) | ((<u64>load<u16>(at, OTHER)) << 32);
    if (what !== last) count = splitClasses(at, work + SET_AREA, map, effects, count);
    last = what;
  }
  return count;
}
