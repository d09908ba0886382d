/** The checksum of images, for tests that repair it after they have damaged an image. A twin of assembly/balance/checksum.ts. */

const MASK = (1n << 64n) - 1n;
const PRIME_1 = 0x9e3779b97f4a7c15n;
const PRIME_2 = 0xff51afd7ed558ccdn;

function fold(lane: bigint, word: bigint): bigint {
  const product = ((lane ^ word) * PRIME_2) & MASK;
  return product ^ (product >> 32n);
}

/** checksum64 of `bytes`. */
export function checksum64(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lanes = [1n, 2n, 3n, 4n].map((i) => (PRIME_1 * i) & MASK);
  let at = 0;
  for (; at + 32 <= bytes.length; at += 32) {
    for (let i = 0; i < 4; i++) lanes[i] = fold(lanes[i], view.getBigUint64(at + 8 * i, true));
  }
  for (; at + 8 <= bytes.length; at += 8) lanes[0] = fold(lanes[0], view.getBigUint64(at, true));
  for (; at < bytes.length; at++) lanes[0] = fold(lanes[0], BigInt(bytes[at]));
  return fold(fold(fold(fold(lanes[0], lanes[1]), lanes[2]), lanes[3]), BigInt(bytes.length));
}

/** Writes into the header of an image the checksum that fits what follows it. */
export function repairChecksum(image: Uint8Array): void {
  if (image.length < 16) return;
  new DataView(image.buffer, image.byteOffset).setBigUint64(8, checksum64(image.subarray(16)), true);
}
