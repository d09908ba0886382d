/**
 * CRC-32 (IEEE 802.3, reflected, as zlib's `crc32`): the hash of ring points and of hash keys.
 *
 * CRC is linear, so the effect of a 32-bit word on the state is the XOR of the effects of its eight nibbles. Eight
 * tables of 16 words (512 bytes) replace the 4 KiB of byte-wise slicing; the loads of one step do not depend on each
 * other, and the chain from step to step is as long as with the larger tables.
 *
 * The tables are computed where they are first needed, since they would be a fortieth of the whole core. What they hold
 * then never changes: they are a constant, not a state.
 */

/** u32[8][16]: row k, column v is the state after the word `v << 4k` has passed through the register. */
const NIBBLES: usize = memory.data(512);
const ROW: usize = 64;

/** Reversed polynomial of CRC-32: what the highest bit of the register, the last to leave it, leaves behind. */
const POLYNOMIAL: u32 = 0xedb88320;

/** Fills in the tables; to be called before any of them is read. */
export function prepareCrc32(): void {
  if (load<u32>(NIBBLES, 4)) return;
  // From the highest bit down: one that leaves earlier has gone through one shift more.
  let state = POLYNOMIAL;
  for (let row: usize = NIBBLES + ROW * 7; row >= NIBBLES; row -= ROW) {
    for (let bit: usize = 32; bit >= 4; bit >>= 1) {
      for (let p = row; p < row + ROW; p += bit << 1) store<u32>(p + bit, load<u32>(p) ^ state);
      state = (state >> 1) ^ (state & 1 ? POLYNOMIAL : 0);
    }
  }
}

/** The CRC register after 32 bits of zeros. Linear: of a XOR of two registers it gives the XOR of both results. */
export function crc32Shift(x: u32): u32 {
  return (
    load<u32>(NIBBLES + ((x & 15) << 2)) ^
    load<u32>(NIBBLES + ((x >> 2) & 60), ROW) ^
    load<u32>(NIBBLES + ((x >> 6) & 60), ROW * 2) ^
    load<u32>(NIBBLES + ((x >> 10) & 60), ROW * 3) ^
    load<u32>(NIBBLES + ((x >> 14) & 60), ROW * 4) ^
    load<u32>(NIBBLES + ((x >> 18) & 60), ROW * 5) ^
    load<u32>(NIBBLES + ((x >> 22) & 60), ROW * 6) ^
    load<u32>(NIBBLES + ((x >> 26) & 60), ROW * 7)
  );
}

/** The CRC of what gave `crc`, followed by the four little-endian bytes of `word`. */
export function crc32Word(crc: u32, word: u32): u32 {
  return ~crc32Shift(~crc ^ word);
}

/** The CRC of what gave `crc`, followed by one byte. */
export function crc32Byte(crc: u32, byte: u32): u32 {
  let state = ~crc;
  let x = (state ^ byte) & 255;
  // A byte in the lowest place leaves the register after one shift by eight: the same as one in the highest place
  // after a whole word.
  return ~(
    (state >> 8) ^
    load<u32>(NIBBLES + ((x & 15) << 2), ROW * 6) ^
    load<u32>(NIBBLES + ((x >> 2) & 60), ROW * 7)
  );
}

/**
 * The CRC of what gave `crc` (0 for the empty text), followed by `length` bytes at `pointer`. Chains as zlib's does:
 * `crc32(crc32(0, a), b)` is the CRC of a and b written one after another.
 */
export function crc32(crc: u32, pointer: usize, length: u32): u32 {
  prepareCrc32();
  let end = pointer + length;
  while (pointer + 4 <= end) {
    crc = crc32Word(crc, load<u32>(pointer));
    pointer += 4;
  }
  while (pointer < end) crc = crc32Byte(crc, load<u8>(pointer++));
  return crc;
}
