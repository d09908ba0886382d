/**
 * Peers that somebody chose so that all their points fall on one another. CRC-32 is affine: with the digits 4 to 7, whose
 * two lowest bits are free, an address and a port have more free bits than the CRC has, and the rest is a system of
 * equations.
 */
import { hashedId, type ReferenceLayout, type ReferencePeer, referenceCrc32 } from "./ring-reference.js";

const PORT = 80;

function crcOf(address: string, port: number, layout: ReferenceLayout): number {
  return referenceCrc32(hashedId({ address, port, weight: 1 }, layout));
}

/** Flips the two lowest bits of each digit from 4 to 7 as `chosen` says, the first digit by the lowest bits. */
function flipped(text: string, chosen: bigint): string {
  let rest = chosen;
  return text.replace(/[4-7]/g, (digit) => {
    const flips = Number(rest & 3n);
    rest >>= 2n;
    return String(Number(digit) ^ flips);
  });
}

interface Solution {
  bits: bigint;
  idle: bigint[];
}

/**
 * Solves `value(bits) = target` for an affine function of `width` bits by Gaussian elimination. `idle` are independent
 * sets of bits that may be flipped in any solution.
 */
function solve(width: number, value: (bits: bigint) => number, target: number): Solution {
  const start = value(0n);
  const rows = new Map<number, { effect: number; bits: bigint }>();
  const idle: bigint[] = [];
  const reduce = (effect: number, bits: bigint) => {
    while (effect !== 0) {
      const row = rows.get(Math.clz32(effect));
      if (!row) break;
      effect = (effect ^ row.effect) >>> 0;
      bits ^= row.bits;
    }
    return { effect, bits };
  };
  for (let bit = 0n; bit < BigInt(width); bit++) {
    const reduced = reduce((value(1n << bit) ^ start) >>> 0, 1n << bit);
    if (reduced.effect === 0) idle.push(reduced.bits);
    else rows.set(Math.clz32(reduced.effect), reduced);
  }
  const solution = reduce((start ^ target) >>> 0, 0n);
  if (solution.effect !== 0) throw new Error("the equations have no solution");
  return { bits: solution.bits, idle };
}

/** `count` addresses shaped as `base`, whose ids all have the CRC `target`. */
function withCrc(base: string, target: number, count: number, layout: ReferenceLayout): string[] {
  const width = base.replaceAll(/[^4-7]/g, "").length * 2;
  const { bits, idle } = solve(width, (chosen) => crcOf(flipped(base, chosen), PORT, layout), target);
  if (2 ** idle.length < count) throw new Error("too few free bits");
  return Array.from({ length: count }, (_, i) =>
    flipped(
      base,
      idle.reduce((sum, mask, j) => ((i >> j) & 1 ? sum ^ mask : sum), bits),
    ),
  );
}

/**
 * Twice `count` peers with the same points each, in an order of ids that is far from that of their addresses: a first group
 * of one digit is the smaller number and the greater text.
 */
export function collidingPeers(count: number, layout: ReferenceLayout): ReferencePeer[] {
  const rest = ":4444".repeat(7);
  const target = crcOf(`4444${rest}`, PORT, layout);
  return [`4444${rest}`, `8${rest}`].flatMap((base) =>
    withCrc(base, target, count, layout).map((address) => ({ address, port: PORT, weight: 1 })),
  );
}

/**
 * Two peers with the same points in either layout, found by search, one address being the beginning of the other: which
 * comes first depends on the byte that ends an address in the id, `:` being above all digits and NUL below.
 */
export const TIED_PAIR: readonly ReferencePeer[] = [
  { address: "10.0.0.24", port: 37939, weight: 1 },
  { address: "10.0.0.243", port: 10606, weight: 1 },
];
