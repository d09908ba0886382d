/**
 * The state of one compilation: a cursor over the source, a growing output and the first error. It lives in memory and
 * is addressed by `b`; reads after an error give zeros and writes do nothing, so callers check the status once a step.
 *
 * Builder, 128 bytes:
 *   0 i32 status   16 u32 output address    32 u32 muted (1: puts are counted out)   48 headers table
 *   4 u32 cursor   20 u32 output length     36 u32 problem position                  52 upstreams table
 *   8 u32 end      24 u32 output capacity   40 u32 problem reason                    56 resources table
 *  12 u32 text length of the last readText  44 u32 regex work area                   60 u32 regex scratch bytes
 *  64 u8[16] bitmap of value slots the route at hand looks at                        80 u32 actions seen
 *  84 u32 regex output area                              88 u32 uses of headers seen
 */

import { MAX_IMAGE, MAX_SLOTS, pad4 } from "../image/layout";
import { alloc, free } from "../memory/heap";
import { E_LIMIT, E_MEMORY, E_SOURCE } from "../status";

const B_CURSOR: usize = 4;
const B_END: usize = 8;
const B_TEXT_LENGTH: usize = 12;
const B_OUT: usize = 16;
const B_LENGTH: usize = 20;
const B_CAPACITY: usize = 24;
const B_MUTED: usize = 32;
const B_POSITION: usize = 36;
const B_REASON: usize = 40;
const B_NEED: usize = 64;
export const B_WORK: usize = 44;
export const B_HEADERS: usize = 48;
export const B_UPSTREAMS: usize = 52;
export const B_RESOURCES: usize = 56;
export const B_SCRATCH: usize = 60;
export const B_ACTIONS: usize = 80;
export const B_REGEX_OUT: usize = 84;
export const B_HEADER_USES: usize = 88;
const BUILDER_SIZE: u32 = 128;

/** A builder over `length` bytes of source; 0 if memory is short. */
export function newBuilder(source: usize, length: u32): usize {
  let b = alloc(BUILDER_SIZE);
  if (!b) return 0;
  memory.fill(b, 0, BUILDER_SIZE);
  store<u32>(b, <u32>source, B_CURSOR);
  store<u32>(b, <u32>source + length, B_END);
  return b;
}

/** Frees the builder, its tables and, unless taken, its output. */
export function freeBuilder(b: usize): void {
  for (let field = B_WORK; field <= B_RESOURCES; field += 4) free(load<u32>(b + field));
  free(load<u32>(b, B_REGEX_OUT));
  free(load<u32>(b, B_OUT));
  free(b);
}

/** Hands the output over to the caller. */
export function takeOutput(b: usize): usize {
  let out = load<u32>(b, B_OUT);
  store<u32>(b, 0, B_OUT);
  return out;
}

export function status(b: usize): i32 {
  return load<i32>(b);
}

/** Records the first error. */
export function fail(b: usize, code: i32): void {
  if (!load<i32>(b)) store<i32>(b, code);
}

export function failRegex(b: usize, code: i32, position: u32, reason: u32): void {
  if (load<i32>(b)) return;
  store<i32>(b, code);
  store<u32>(b, position, B_POSITION);
  store<u32>(b, reason, B_REASON);
}

export function problemPosition(b: usize): u32 {
  return load<u32>(b, B_POSITION);
}

export function problemReason(b: usize): u32 {
  return load<u32>(b, B_REASON);
}

export function cursor(b: usize): u32 {
  return load<u32>(b, B_CURSOR);
}

export function seek(b: usize, position: u32): void {
  store<u32>(b, position, B_CURSOR);
}

export function atEnd(b: usize): bool {
  return load<u32>(b, B_CURSOR) == load<u32>(b, B_END);
}

/** The next 32-bit word of the source. */
export function readU32(b: usize): u32 {
  let at = load<u32>(b, B_CURSOR);
  if (load<i32>(b) || load<u32>(b, B_END) - at < 4) {
    fail(b, E_SOURCE);
    return 0;
  }
  store<u32>(b, at + 4, B_CURSOR);
  return load<u32>(at);
}

/** A word that must be below `limit`. */
export function readBelow(b: usize, limit: u32): u32 {
  let value = readU32(b);
  if (value >= limit) {
    fail(b, E_SOURCE);
    return 0;
  }
  return value;
}

/** The next text (u32 length, bytes padded to 4): its address; its length is `textLength`. */
export function readText(b: usize): usize {
  let length = readU32(b);
  let at = load<u32>(b, B_CURSOR);
  store<u32>(b, 0, B_TEXT_LENGTH);
  if (load<i32>(b)) return 0;
  if (length > MAX_IMAGE || load<u32>(b, B_END) - at < pad4(length)) {
    fail(b, E_SOURCE);
    return 0;
  }
  store<u32>(b, at + pad4(length), B_CURSOR);
  store<u32>(b, length, B_TEXT_LENGTH);
  return at;
}

/** Reads a text and stores its address and length in two words at `pointer`. */
export function readTextTo(b: usize, pointer: usize): void {
  store<u32>(pointer, <u32>readText(b));
  store<u32>(pointer, load<u32>(b, B_TEXT_LENGTH), 4);
}

export function textLength(b: usize): u32 {
  return load<u32>(b, B_TEXT_LENGTH);
}

/** While muted the source is walked and checked, and nothing is written. */
export function mute(b: usize, on: bool): void {
  store<u32>(b, on ? 1 : 0, B_MUTED);
}

export function muted(b: usize): bool {
  return load<u32>(b, B_MUTED) != 0;
}

/** Where the next byte will be written, as an offset in the image. */
export function here(b: usize): u32 {
  return load<u32>(b, B_LENGTH);
}

/** Address of an offset of the output; valid until the next write. */
export function at(b: usize, offset: usize): usize {
  return <usize>load<u32>(b, B_OUT) + offset;
}

/** Appends `size` zero bytes and returns their offset. While muted, or after an error, nothing happens. */
export function reserve(b: usize, size: u32): u32 {
  let length = load<u32>(b, B_LENGTH);
  if (load<u32>(b, B_MUTED) || load<i32>(b)) return length;
  let out: usize = load<u32>(b, B_OUT);
  let capacity = load<u32>(b, B_CAPACITY);
  if (size > MAX_IMAGE || length + size > MAX_IMAGE) {
    fail(b, E_LIMIT);
    return length;
  }
  if (length + size > capacity) {
    let wanted = max(1024, max(capacity << 1, length + size));
    let moved = alloc(wanted);
    if (!moved) {
      fail(b, E_MEMORY);
      return length;
    }
    memory.copy(moved, out, length);
    free(out);
    out = moved;
    store<u32>(b, <u32>moved, B_OUT);
    store<u32>(b, wanted, B_CAPACITY);
  }
  memory.fill(out + length, 0, size);
  store<u32>(b, length + size, B_LENGTH);
  return length;
}

/** True if a reserved place may be filled in. */
export function writing(b: usize): bool {
  return !load<u32>(b, B_MUTED) && !load<i32>(b);
}

/** Fills in a word of the output. */
export function patch(b: usize, offset: usize, value: u32): void {
  if (writing(b)) store<u32>(at(b, offset), value);
}

/** Fills in a word of the output with where the next byte will be written. */
export function mark(b: usize, offset: usize): void {
  patch(b, offset, here(b));
}

export function patchByte(b: usize, offset: usize, value: u32): void {
  if (writing(b)) store<u8>(at(b, offset), value);
}

/** Fills in offset and length, two words, of what has been written since `start`. */
export function patchSpan(b: usize, offset: usize, start: u32): void {
  patch(b, offset, start);
  patch(b, offset + 4, here(b) - start);
}

export function put(b: usize, value: u32): void {
  patch(b, reserve(b, 4), value);
}

/** Appends bytes, padded to 4 with zeros; returns their offset. */
export function putBytes(b: usize, from: usize, length: u32): u32 {
  let offset = reserve(b, pad4(length));
  if (writing(b)) memory.copy(at(b, offset), from, length);
  return offset;
}

/** Forgets which value slots the route at hand looks at. */
export function clearNeed(b: usize): void {
  store<u64>(b, 0, B_NEED);
  store<u64>(b, 0, B_NEED + 8);
}

export function noteNeed(b: usize, slot: u32): void {
  if (slot >= MAX_SLOTS) return;
  let word = b + B_NEED + (slot >> 3);
  store<u8>(word, <u32>load<u8>(word) | (1 << (slot & 7)));
}

/** Writes the need list of the route at hand; 0 if it looks at none. */
export function putNeed(b: usize): u32 {
  let count = <u32>(popcnt(load<u64>(b, B_NEED)) + popcnt(load<u64>(b, B_NEED + 8)));
  if (!count) return 0;
  let offset = here(b);
  put(b, count);
  for (let slot: u32 = 0; slot < MAX_SLOTS; slot++) {
    if (load<u8>(b + B_NEED + (slot >> 3)) & (1 << (slot & 7))) put(b, slot);
  }
  return offset;
}
