/** The checksum of images, for tests that repair it after they have damaged an image. A twin of assembly/balance/checksum.ts. */

const MASK = (1n << 64n) - 1n;
const PRIME_1 = 0x9e3779b97f4a7c15n;
const PRIME_2 = 0xff51afd7ed558ccdn;

function fold(lane: bigint, word: bigint): bigint {
  const product = ((lane ^ word) * PRIME_2) & MASK;
  return product ^ (product >> 32n);
}

function rotate(word: bigint, by: bigint): bigint {
  return ((word << by) | (word >> (64n - by))) & MASK;
}

/** checksum64 of `bytes`. */
export function checksum64(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lanes = [1n, 2n, 3n, 4n].map((i) => (PRIME_1 * i) & MASK);
  lanes[0] ^= BigInt(bytes.length);
  let at = 0;
  for (; at + 32 <= bytes.length; at += 32) {
    for (let i = 0; i < 4; i++) lanes[i] = fold(lanes[i], view.getBigUint64(at + 8 * i, true));
  }
  let sum = lanes[0] ^ rotate(lanes[1], 16n) ^ rotate(lanes[2], 32n) ^ rotate(lanes[3], 48n);
  for (; at + 8 <= bytes.length; at += 8) sum = fold(sum, view.getBigUint64(at, true));
  for (; at < bytes.length; at++) sum = fold(sum, BigInt(bytes[at]));
  return sum;
}

/** Writes into the header of an image the checksum that fits what follows it. */
export function repairChecksum(image: Uint8Array): void {
  if (image.length < 16) return;
  new DataView(image.buffer, image.byteOffset).setBigUint64(8, checksum64(image.subarray(16)), true);
}
