/** A text that grows: u32 capacity | u32 length | address of the bytes. One that could not grow has lost its end. */
import { alloc, free } from "../../../assembly/memory/heap";

const G_CAPACITY: usize = 0;
const G_LENGTH: usize = 4;
const G_BYTES: usize = 8;
const SIZE: u32 = 12;
const FIRST: u32 = 512;

/** An empty one; 0 if memory is short. */
export function growing(): usize {
  let text = alloc(SIZE);
  if (!text) return 0;
  memory.fill(text, 0, SIZE);
  return text;
}

export function dropGrowing(text: usize): void {
  if (!text) return;
  free(load<u32>(text, G_BYTES));
  free(text);
}

export function clearGrowing(text: usize): void {
  store<u32>(text, 0, G_LENGTH);
}

export function grownBytes(text: usize): usize {
  return load<u32>(text, G_BYTES);
}

export function grownLength(text: usize): u32 {
  return load<u32>(text, G_LENGTH);
}

/** Room for `length` more bytes, which count from now on; 0 if memory is short. */
export function extend(text: usize, length: u32): usize {
  let at = load<u32>(text, G_LENGTH);
  let wanted = <u64>at + <u64>length;
  if (wanted > 1 << 29) return 0;
  if (wanted > <u64>load<u32>(text, G_CAPACITY)) {
    let capacity = max(FIRST, (<u32>wanted) << 1);
    let moved = alloc(capacity);
    if (!moved) return 0;
    memory.copy(moved, load<u32>(text, G_BYTES), at);
    free(load<u32>(text, G_BYTES));
    store<u32>(text, <u32>moved, G_BYTES);
    store<u32>(text, capacity, G_CAPACITY);
  }
  store<u32>(text, <u32>wanted, G_LENGTH);
  return load<u32>(text, G_BYTES) + at;
}

export function putBytes(text: usize, bytes: usize, length: u32): void {
  let at = extend(text, length);
  if (at) memory.copy(at, bytes, length);
}

export function putByte(text: usize, byte: u32): void {
  let at = extend(text, 1);
  if (at) store<u8>(at, <u8>byte);
}

export function putWord(text: usize, word: u32): void {
  let at = extend(text, 4);
  if (at) store<u32>(at, word);
}

/** A number in decimal. */
export function putNumber(text: usize, number: u32): void {
  let digits: u32 = 1;
  for (let rest = number; rest > 9; rest /= 10) digits++;
  let at = extend(text, digits);
  if (!at) return;
  for (let i = digits; i; i--, number /= 10) store<u8>(at + i - 1, <u8>(48 + (number % 10)));
}

/** The lowest `digits` hexadecimal digits of a number, in lower case. */
export function putHex(text: usize, number: u32, digits: u32): void {
  let at = extend(text, digits);
  if (!at) return;
  for (let i = digits; i; i--, number >>= 4) {
    let digit = number & 15;
    store<u8>(at + i - 1, <u8>(digit < 10 ? 48 + digit : 87 + digit));
  }
}
