/**
 * CRC-32 (IEEE 802.3, reflected, as zlib's `crc32`): the hash of ring points and of hash keys.
 *
 * CRC is linear, so the effect of a 32-bit word on the state is the XOR of the effects of its eight nibbles. Eight
 * tables of 16 words (512 bytes) replace the 4 KiB of byte-wise slicing; the loads of one step do not depend on each
 * other, and the chain from step to step is as long as with the larger tables.
 */

/** u32[8][16]: row k, column v is the state after the word `v << 4k` has passed through the register. */
const NIBBLES: usize = memory.data<u32>([
  0x00000000, 0xb8bc6765, 0xaa09c88b, 0x12b5afee, 0x8f629757, 0x37def032, 0x256b5fdc, 0x9dd738b9, 0xc5b428ef,
  0x7d084f8a, 0x6fbde064, 0xd7018701, 0x4ad6bfb8, 0xf26ad8dd, 0xe0df7733, 0x58631056, 0x00000000, 0x5019579f,
  0xa032af3e, 0xf02bf8a1, 0x9b14583d, 0xcb0d0fa2, 0x3b26f703, 0x6b3fa09c, 0xed59b63b, 0xbd40e1a4, 0x4d6b1905,
  0x1d724e9a, 0x764dee06, 0x2654b999, 0xd67f4138, 0x866616a7, 0x00000000, 0x01c26a37, 0x0384d46e, 0x0246be59,
  0x0709a8dc, 0x06cbc2eb, 0x048d7cb2, 0x054f1685, 0x0e1351b8, 0x0fd13b8f, 0x0d9785d6, 0x0c55efe1, 0x091af964,
  0x08d89353, 0x0a9e2d0a, 0x0b5c473d, 0x00000000, 0x1c26a370, 0x384d46e0, 0x246be590, 0x709a8dc0, 0x6cbc2eb0,
  0x48d7cb20, 0x54f16850, 0xe1351b80, 0xfd13b8f0, 0xd9785d60, 0xc55efe10, 0x91af9640, 0x8d893530, 0xa9e2d0a0,
  0xb5c473d0, 0x00000000, 0x191b3141, 0x32366282, 0x2b2d53c3, 0x646cc504, 0x7d77f445, 0x565aa786, 0x4f4196c7,
  0xc8d98a08, 0xd1c2bb49, 0xfaefe88a, 0xe3f4d9cb, 0xacb54f0c, 0xb5ae7e4d, 0x9e832d8e, 0x87981ccf, 0x00000000,
  0x4ac21251, 0x958424a2, 0xdf4636f3, 0xf0794f05, 0xbabb5d54, 0x65fd6ba7, 0x2f3f79f6, 0x3b83984b, 0x71418a1a,
  0xae07bce9, 0xe4c5aeb8, 0xcbfad74e, 0x8138c51f, 0x5e7ef3ec, 0x14bce1bd, 0x00000000, 0x77073096, 0xee0e612c,
  0x990951ba, 0x076dc419, 0x706af48f, 0xe963a535, 0x9e6495a3, 0x0edb8832, 0x79dcb8a4, 0xe0d5e91e, 0x97d2d988,
  0x09b64c2b, 0x7eb17cbd, 0xe7b82d07, 0x90bf1d91, 0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190,
  0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4,
  0xa00ae278, 0xbdbdf21c,
]);

const ROW: usize = 64;

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
  let end = pointer + length;
  while (pointer + 4 <= end) {
    crc = crc32Word(crc, load<u32>(pointer));
    pointer += 4;
  }
  while (pointer < end) crc = crc32Byte(crc, load<u8>(pointer++));
  return crc;
}
