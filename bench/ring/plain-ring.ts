/** The core's ring in careful JavaScript: typed arrays, byte tables, binary search. What one would write without the core. */

const TABLE = Uint32Array.from({ length: 256 }, (_, i) => {
  let c = i;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  return c >>> 0;
});

const POINTS = 160;

/** CRC-32 of the characters of an ASCII text. */
export function crc32(text: string): number {
  let crc = -1;
  for (let i = 0; i < text.length; i++) crc = (crc >>> 8) ^ TABLE[(crc ^ text.charCodeAt(i)) & 255];
  return ~crc >>> 0;
}

function register(text: string): number {
  return ~crc32(text);
}

export class PlainRing {
  readonly #hashes: Uint32Array;
  readonly #owners: Uint32Array;

  /** `ids` are distinct; every peer has the weight 1. */
  constructor(ids: readonly string[]) {
    const count = ids.length * POINTS;
    // Points with one hash are ordered by the ids of their peers (ASCII here, so that < compares their bytes).
    const order = ids.map((_, peer) => peer).sort((a, b) => (ids[a] < ids[b] ? -1 : 1));
    // Hash and rank in one number below 2^53: Float64Array sorts numerically, without a comparison function.
    const points = new Float64Array(count);
    let at = 0;
    for (let rank = 0; rank < ids.length; rank++) {
      const base = register(ids[order[rank]]);
      let hash = 0;
      for (let i = 0; i < POINTS; i++) {
        let crc = base;
        for (let shift = 0; shift < 32; shift += 8) crc = (crc >>> 8) ^ TABLE[(crc ^ (hash >>> shift)) & 255];
        hash = ~crc >>> 0;
        points[at++] = hash * 65536 + rank;
      }
    }
    points.sort();
    this.#hashes = new Uint32Array(count);
    this.#owners = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      this.#hashes[i] = points[i] / 65536;
      this.#owners[i] = order[points[i] % 65536];
    }
  }

  /** Index of the peer that owns a hash. */
  lookupHash(hash: number): number {
    const hashes = this.#hashes;
    let low = 0;
    let high = hashes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (hashes[middle] < hash) low = middle + 1;
      else high = middle;
    }
    return this.#owners[low === hashes.length ? 0 : low];
  }

  /** Index of the peer that owns a key. */
  lookup(key: string): number {
    return this.lookupHash(crc32(key));
  }
}
