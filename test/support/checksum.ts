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
  let sum = PRIME_1 ^ BigInt(bytes.length);
  let other = PRIME_2;
  let at = 0;
  for (; at + 16 <= bytes.length; at += 16) {
    sum = fold(sum, view.getBigUint64(at, true));
    other = fold(other, view.getBigUint64(at + 8, true));
  }
  sum ^= other;
  for (; at + 8 <= bytes.length; at += 8) sum = fold(sum, view.getBigUint64(at, true));
  const rest = bytes.subarray(at);
  if (rest.length > 0)
    sum = fold(
      sum,
      rest.reduceRight((word, byte) => (word << 8n) | BigInt(byte), 0n),
    );
  return sum;
}

/** Writes into the header of an image the checksum that fits what follows it. */
export function repairChecksum(image: Uint8Array): void {
  if (image.length < 16) return;
  new DataView(image.buffer, image.byteOffset).setBigUint64(8, checksum64(image.subarray(16)), true);
}
