/** The host of a request, normalised as NGINX does (ngx_http_validate_host): lower case, no port, no final dot. */
import { MAX_HOST } from "../image/layout";
import { HASH_PRIME, hashEnd, hashStart } from "../memory/bytes";
import { X_HOST, X_HOST_LENGTH } from "../table/context";
import { byteBits, IN_HOST } from "./byte-classes";

/** True if the bytes are a port: digits only, at most five of them, or nothing. */
function isPort(at: usize, length: u32): bool {
  if (length > 5) return false;
  for (let i: u32 = 0; i < length; i++) {
    if (<u32>load<u8>(at + i) - 48 > 9) return false;
  }
  return true;
}

/** `[` IPv6 `]`, optionally with a port: copied in lower case, brackets included. Length, or -1. */
function bracketed(to: usize, from: usize, length: u32): i32 {
  let i: u32 = 1;
  store<u8>(to, 91);
  for (; i < length; i++) {
    let c: u32 = load<u8>(from + i);
    if (c == 93) break;
    let letter = (c | 32) - 97 < 6;
    if (c - 48 > 9 && !letter && c != 58 && c != 46) return -1;
    store<u8>(to + i, letter ? c | 32 : c);
  }
  if (i == length || i == 1) return -1;
  store<u8>(to + i, 93);
  let rest = length - i - 1;
  if (rest && (load<u8>(from + i + 1) != 58 || !isPort(from + i + 2, rest - 1))) return -1;
  return <i32>(i + 1);
}

/**
 * Writes the normalised form of `length` bytes at `from` to `to` (which has room for MAX_HOST + 9 bytes), followed by
 * zeros up to a multiple of 8. Returns its length, 0 for an empty host, -1 if the bytes are no host.
 */
export function normaliseHost(to: usize, from: usize, length: u32): i32 {
  if (length > MAX_HOST) return -1;
  let i: u32 = 0;
  for (; i < length; i++) {
    let c: u32 = load<u8>(from + i);
    if (!byteBits(c, IN_HOST)) {
      if (c == 58 && isPort(from + i + 1, length - i - 1)) break;
      if (c != 91 || i) return -1;
      let size = bracketed(to, from, length);
      if (size < 0) return -1;
      store<u64>(to + size, 0);
      return size;
    }
    store<u8>(to + i, c - 65 < 26 ? c | 32 : c);
    if (c == 46 && i && load<u8>(from + i - 1) == 46) return -1;
  }
  if (i && load<u8>(to + i - 1) == 46) i--;
  // A host of nothing but a dot, or of nothing but a port, is none.
  if (!i && length) return -1;
  store<u64>(to + i, 0);
  return <i32>i;
}

const HIGH: u64 = 0x8080808080808080;
const LOW: u64 = 0x0101010101010101;

/**
 * Writes the host of a request into its context in lower case and otherwise as it came, and returns its hash: all that
 * is needed to find the usual host, one that names an exact pattern to the letter. Any other must be taken by `takeHost`,
 * which also says whether it is a host at all. `length` is at most MAX_HOST.
 */
export function takePlainHost(ctx: usize, from: usize, length: u32): u32 {
  let to = ctx + X_HOST;
  let h = hashStart(length);
  for (let left = <i32>length; left > 0; left -= 8, from += 8, to += 8) {
    let w = load<u64>(from);
    // Input can be read past its end; what is beyond the host is masked out.
    if (left < 8) w &= ((<u64>1) << ((<u64>left) << 3)) - 1;
    // Upper case: between A and Z in the low seven bits, and no high bit.
    let seven = w & ~HIGH;
    w |= ((seven + (128 - 65) * LOW) & ~(seven + (127 - 90) * LOW) & ~w & HIGH) >> 2;
    store<u64>(to, w);
    // As hashStep, by hand: this loop is part of every request.
    h = (h ^ w) * HASH_PRIME;
    h ^= h >> 32;
  }
  // At least one zero follows.
  if (!(length & 7)) store<u64>(to, 0);
  store<u32>(ctx, length, X_HOST_LENGTH);
  return hashEnd(h);
}

/** Normalises the host of a request into its context; false if it is not one. */
export function takeHost(ctx: usize, from: usize, length: u32): bool {
  let size = normaliseHost(ctx + X_HOST, from, length);
  store<u32>(ctx, size < 0 ? 0 : <u32>size, X_HOST_LENGTH);
  return size >= 0;
}
