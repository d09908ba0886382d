/**
 * Walking over an image that is being checked. Every part must stand exactly where the one before ended, so that no part
 * can overlap another or be visited twice.
 *
 * Validator, 32 bytes: 0 u32 image | 4 u32 size | 8 u32 cursor | 12 u32 value slots | 16 u32 upstreams | 20 i32 status
 */
import { E_CORRUPT, OK } from "../status";
import { MAX_IMAGE, pad4 } from "./layout";

export const V_SIZE: usize = 4;
export const V_CURSOR: usize = 8;
export const V_SLOTS: usize = 12;
export const V_UPSTREAMS: usize = 16;
export const V_STATUS: usize = 20;

export function bad(v: usize): void {
  if (!load<i32>(v, V_STATUS)) store<i32>(v, E_CORRUPT, V_STATUS);
}

export function good(v: usize): bool {
  return load<i32>(v, V_STATUS) == OK;
}

/** Requires `length` bytes at `offset`, which must be where the last part ended. Returns their address, 0 on error. */
export function take(v: usize, offset: u32, length: u32): usize {
  let cursor = load<u32>(v, V_CURSOR);
  if (!good(v) || offset != cursor || length > MAX_IMAGE || pad4(length) > load<u32>(v, V_SIZE) - cursor) {
    bad(v);
    return 0;
  }
  store<u32>(v, cursor + pad4(length), V_CURSOR);
  return <usize>load<u32>(v) + offset;
}

export function cursorOf(v: usize): u32 {
  return load<u32>(v, V_CURSOR);
}

/** The next `length` bytes, wherever they stand. */
export function takeNext(v: usize, length: u32): usize {
  return take(v, cursorOf(v), length);
}

/** The bytes that the two words at `field`, offset and length, name. */
export function takeSpan(v: usize, field: usize): usize {
  return take(v, load<u32>(field), load<u32>(field, 4));
}
