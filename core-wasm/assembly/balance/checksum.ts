/**
 * The checksum of images: 64 bits, eight bytes a step, multiply and fold. Each step is a bijection of the state for a given
 * word and of the word for a given state: damage within one word is always seen, any other with a chance of 1 - 2^-64.
 * Much faster than a CRC, which matters where a peer comes or goes and everything else is only copied. It is no defence
 * against somebody who writes images: that is what validation is for.
 */
import { HASH_PRIME } from "../memory/bytes";

/** The checksum of `length` bytes at `pointer`. The length is in the seed: trailing zeros count. */
export function checksum64(pointer: usize, length: u32): u64 {
  let sum: u64 = 0x9e3779b97f4a7c15 ^ length;
  for (let left = <i32>length; left > 0; left -= 8, pointer += 8) {
    let word: u64 = 0;
    if (left >= 8) word = load<u64>(pointer);
    else for (let i = left; i > 0; i--) word = (word << 8) | load<u8>(pointer + i - 1);
    sum = (sum ^ word) * HASH_PRIME;
    sum ^= sum >> 32;
  }
  return sum;
}
