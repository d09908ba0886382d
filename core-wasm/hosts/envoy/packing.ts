/**
 * A bundle as the filter's configuration holds it: packed, for Envoy keeps several copies of a configuration, and only the filter
 * reads it. u32 "NJKZ" | u32 bytes of the bundle | its blocks; a block: u32 bytes that follow | those bytes. Each block is
 * `BLOCK` bytes of the bundle, the last one the rest, in the block format of LZ4, or as they are where that is not shorter.
 * Little-endian. assembly/unpacking.ts reads it.
 */

const MAGIC = 0x5a4b_4a4e;
const BLOCK = 1 << 18;
const HEADER = 8;
/** Rules of LZ4: a match has four bytes or more, starts twelve bytes before the end, and ends five before it. */
const LEAST_MATCH = 4;
const LAST_START = 12;
const LAST_LITERALS = 5;
/** The farthest that a match can reach back. */
const FARTHEST = 0xffff;
const HASH_BITS = 15;

/** The same bytes give the same packed ones. */
export function packBundle(bundle: Uint8Array): Uint8Array {
  const blocks = Math.ceil(bundle.length / BLOCK);
  const out = new Uint8Array(HEADER + blocks * 4 + bundle.length);
  const view = new DataView(out.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, bundle.length, true);
  let at = HEADER;
  for (let start = 0; start < bundle.length; start += BLOCK) {
    const block = bundle.subarray(start, start + BLOCK);
    const packed = packBlock(block);
    const kept = packed.length < block.length ? packed : block;
    view.setUint32(at, kept.length, true);
    out.set(kept, at + 4);
    at += 4 + kept.length;
  }
  return out.slice(0, at);
}

function packBlock(block: Uint8Array): Uint8Array {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  // Where four bytes with this hash were last seen, plus one.
  const seen = new Int32Array(1 << HASH_BITS);
  const out = new Sequences(block);
  let at = 0;
  while (at <= block.length - LAST_START) {
    const word = view.getUint32(at, true);
    const slot = Math.imul(word, 0x9e37_79b1) >>> (32 - HASH_BITS);
    const match = seen[slot] - 1;
    seen[slot] = at + 1;
    if (match < 0 || at - match > FARTHEST || view.getUint32(match, true) !== word) {
      at++;
      continue;
    }
    let end = at + LEAST_MATCH;
    while (end < block.length - LAST_LITERALS && block[end] === block[match + end - at]) end++;
    out.put(at, at - match, end);
    at = end;
  }
  return out.ended();
}

/** Sequences of LZ4: literals, then a match. */
class Sequences {
  readonly #out: Uint8Array;
  #length = 0;
  /** Up to here the block is written. */
  #done = 0;

  constructor(private readonly block: Uint8Array) {
    // Literals alone take a byte more for each 255 of them.
    this.#out = new Uint8Array(block.length + Math.ceil(block.length / 255) + 16);
  }

  /** What is not written yet before `at`, and the bytes up to `end`, as they stand `distance` bytes before. */
  put(at: number, distance: number, end: number): void {
    const rest = end - at - LEAST_MATCH;
    this.#literals(at, Math.min(rest, 15));
    this.#out[this.#length++] = distance & 0xff;
    this.#out[this.#length++] = distance >> 8;
    this.#more(rest);
    this.#done = end;
  }

  ended(): Uint8Array {
    this.#literals(this.block.length, 0);
    return this.#out.subarray(0, this.#length);
  }

  #literals(end: number, match: number): void {
    const length = end - this.#done;
    this.#out[this.#length++] = (Math.min(length, 15) << 4) | match;
    this.#more(length);
    this.#out.set(this.block.subarray(this.#done, end), this.#length);
    this.#length += length;
  }

  /** The rest of a length that four bits do not hold. */
  #more(length: number): void {
    if (length < 15) return;
    let rest = length - 15;
    for (; rest >= 255; rest -= 255) this.#out[this.#length++] = 255;
    this.#out[this.#length++] = rest;
  }
}
