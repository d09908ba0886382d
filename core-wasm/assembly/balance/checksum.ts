/**
 * The checksum of images: 64 bits, four lanes of eight bytes, multiply and fold.
 *
 * Each step is a bijection of the lane for a given word and of the word for a given lane, and so is the joining of the
 * lanes: damage within one word is always seen, any other with a chance of 1 - 2^-64. About five times as fast as the
 * fastest table-driven CRC, which matters where a peer comes or goes and everything else is only copied. It is not a
 * defence against somebody who writes images: that is what validation is for.
 */
const PRIME_1: u64 = 0x9e3779b97f4a7c15;
const PRIME_2: u64 = 0xff51afd7ed558ccd;

function fold(lane: u64, word: u64): u64 {
  lane = (lane ^ word) * PRIME_2;
  return lane ^ (lane >> 32);
}

/** The checksum of `length` bytes at `pointer`. */
export function checksum64(pointer: usize, length: u32): u64 {
  let a: u64 = PRIME_1;
  let b: u64 = PRIME_1 * 2;
  let c: u64 = PRIME_1 * 3;
  let d: u64 = PRIME_1 * 4;
  let end = pointer + length;
  while (pointer + 32 <= end) {
    a = fold(a, load<u64>(pointer));
    b = fold(b, load<u64>(pointer, 8));
    c = fold(c, load<u64>(pointer, 16));
    d = fold(d, load<u64>(pointer, 24));
    pointer += 32;
  }
  while (pointer + 8 <= end) {
    a = fold(a, load<u64>(pointer));
    pointer += 8;
  }
  while (pointer < end) a = fold(a, load<u8>(pointer++));
  // The length tells texts apart that differ in trailing zero bytes only.
  return fold(fold(fold(fold(a, b), c), d), length);
}
