/** Comparisons and hashes of byte strings. */

/** True if `length` bytes at `a` and `b` are equal. */
export function sameBytes(a: usize, b: usize, length: u32): bool {
  let i: u32 = 0;
  for (; i + 8 <= length; i += 8) {
    if (load<u64>(a + i) != load<u64>(b + i)) return false;
  }
  for (; i < length; i++) {
    if (load<u8>(a + i) != load<u8>(b + i)) return false;
  }
  return true;
}

/** As sameBytes, for texts that are both followed by zeros up to a multiple of 8 and at least to the next word. */
export function sameWords(a: usize, b: usize, length: u32): bool {
  for (let i: u32 = 0; i < length; i += 8) {
    if (load<u64>(a + i) != load<u64>(b + i)) return false;
  }
  return true;
}

/** ASCII lower case of one byte. */
export function lower(c: u32): u32 {
  return c - 65 < 26 ? c | 32 : c;
}

/** True if `length` bytes are equal, ASCII letter case aside. The last ones come first: values of a series differ there. */
export function sameFolded(a: usize, b: usize, length: u32): bool {
  while (length) {
    length--;
    let x: u32 = load<u8>(a + length);
    let y: u32 = load<u8>(b + length);
    if (x != y && lower(x) != lower(y)) return false;
  }
  return true;
}

/**
 * A 32-bit hash of a byte string: eight bytes a step, multiply and fold. For hash tables only; it is no part of any
 * image and may differ between versions. `hashStart`, `hashStep` and `hashEnd` give the same for whoever has the words.
 */
export function hashBytes(pointer: usize, length: u32): u32 {
  let h = hashStart(length);
  let i: u32 = 0;
  for (; i + 8 <= length; i += 8) h = hashStep(h, load<u64>(pointer + i));
  if (i < length) {
    let w: u64 = 0;
    for (let s: u64 = 0; i < length; i++, s += 8) w |= (<u64>load<u8>(pointer + i)) << s;
    h = hashStep(h, w);
  }
  return hashEnd(h);
}

export const HASH_PRIME: u64 = 0xff51afd7ed558ccd;

export function hashStart(length: u32): u64 {
  return 0x9e3779b97f4a7c15 ^ <u64>length;
}

export function hashStep(h: u64, word: u64): u64 {
  h = (h ^ word) * HASH_PRIME;
  return h ^ (h >> 32);
}

export function hashEnd(h: u64): u32 {
  return <u32>((h * 0xc4ceb9fe1a85ec53) >> 32);
}

/** The finalizer of MurmurHash3: every bit of the result depends on every bit of `x`; 0 gives 0. */
export function mix32(x: u32): u32 {
  x = (x ^ (x >> 16)) * 0x85ebca6b;
  x = (x ^ (x >> 13)) * 0xc2b2ae35;
  return x ^ (x >> 16);
}
