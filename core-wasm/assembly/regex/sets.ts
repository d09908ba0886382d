/** Sets of bytes, u8[32]: bit b of the set says whether byte b is in it. */
import { sameBytes } from "../memory/bytes";
import { HIGH, LOW, OP, OP_RANGE, OTHER, SET_BYTES } from "./image";
import { SET_AREA, SET_COUNT } from "./work";

export function setHas(set: usize, byte: u32): bool {
  return ((load<u8>(set + (byte >> 3)) >> (byte & 7)) & 1) !== 0;
}

/** Adds the bytes from `low` to `high`, both included. */
export function setAdd(set: usize, low: u32, high: u32): void {
  for (; low <= high; low++) {
    const at = set + (low >> 3);
    store<u8>(at, load<u8>(at) | ((<u32>1) << (low & 7)));
  }
}

/** Adds the other case of every ASCII letter of the set. */
export function setFold(set: usize): void {
  for (let upper: u32 = 0x41; upper <= 0x5a; upper++) {
    const lower = upper | 0x20;
    if (setHas(set, upper)) setAdd(set, lower, lower);
    else if (setHas(set, lower)) setAdd(set, upper, upper);
  }
}

export function setNegate(set: usize): void {
  for (let i: usize = 0; i < SET_BYTES; i += 8) store<u64>(set + i, ~load<u64>(set + i));
}

/** Adds all of `other`. */
export function setUnite(set: usize, other: usize): void {
  for (let i: usize = 0; i < SET_BYTES; i += 8) store<u64>(set + i, load<u64>(set + i) | load<u64>(other + i));
}

/** Index of the set among those of the pattern; it is added if it is new. */
export function internSet(work: usize, set: usize): u32 {
  const count = load<u32>(work, SET_COUNT);
  let at = work + SET_AREA;
  for (let i: u32 = 0; i < count; i++, at += SET_BYTES) {
    if (sameBytes(at, set, SET_BYTES)) return i;
  }
  memory.copy(at, set, SET_BYTES);
  store<u32>(work, count + 1, SET_COUNT);
  return count;
}

/** Whether a RANGE or SET instruction takes a byte; `sets` are those of its program. */
export function takes(instruction: usize, sets: usize, byte: u32): bool {
  if (load<u8>(instruction, OP) !== OP_RANGE) return setHas(sets + load<u16>(instruction, OTHER) * SET_BYTES, byte);
  return byte >= load<u8>(instruction, LOW) && byte <= load<u8>(instruction, HIGH);
}
