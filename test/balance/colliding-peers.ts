/**
 * Peers that somebody chose so that all their points fall on one another. CRC-32 is affine: with the digits 4 to 7, whose
 * two lowest bits are free, an IPv6 address has more free bits than the CRC has, and the rest is a system of equations.
 */
import { peerId, type ReferencePeer, referenceCrc32 } from "./ring-reference.js";

const PORT = 80;

function crcOf(address: string): number {
  return referenceCrc32(new TextEncoder().encode(peerId({ address, port: PORT, weight: 1 })));
}

function flipped(address: string, chosen: bigint): string {
  const characters = [...address];
  let bit = 0n;
  for (let i = 0; i < characters.length; i++) {
    if (characters[i] === ":") continue;
    characters[i] = String(Number(characters[i]) ^ Number((chosen >> bit) & 3n));
    bit += 2n;
  }
  return characters.join("");
}

/** `count` addresses (a power of two) made of digits from 4 to 7, shaped as `base`, whose ids all have the CRC `target`. */
function withCrc(base: string, target: number, count: number): string[] {
  const free = base.replaceAll(":", "").length * 2;
  const start = crcOf(base);
  // Gaussian elimination: rows of what flipping a set of bits does to the CRC, by their highest bit; what does nothing is
  // free to be chosen.
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
  for (let bit = 0; bit < free; bit++) {
    const reduced = reduce((crcOf(flipped(base, 1n << BigInt(bit))) ^ start) >>> 0, 1n << BigInt(bit));
    if (reduced.effect === 0) idle.push(reduced.bits);
    else rows.set(Math.clz32(reduced.effect), reduced);
  }
  const solution = reduce((start ^ target) >>> 0, 0n);
  if (solution.effect !== 0 || 2 ** idle.length < count) throw new Error("too few free bits");
  return Array.from({ length: count }, (_, i) => {
    const bits = idle.reduce((sum, mask, j) => ((i >> j) & 1 ? sum ^ mask : sum), solution.bits);
    return flipped(base, bits);
  });
}

/**
 * Twice `count` peers with the same points each, in an order of ids that is far from that of their addresses: a first group
 * of one digit is the smaller number and the greater text.
 */
export function collidingPeers(count: number): ReferencePeer[] {
  const rest = ":4444".repeat(7);
  const target = crcOf(`4444${rest}`);
  return [...withCrc(`4444${rest}`, target, count), ...withCrc(`7${rest}`, target, count)].map((address) => ({
    address,
    port: PORT,
    weight: 1,
  }));
}
