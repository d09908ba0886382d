/**
 * The points of a consistent-hash ring. A peer with weight w has 160 * w: point i is the CRC-32 of its id followed by
 * point i - 1 as four little-endian bytes, 0 before the first; the register after the id is used again for each.
 */
import { BY_ID, mergeSort } from "../memory/merge-sort";
import { crc32, crc32Byte, crc32Shift, crc32Word, prepareCrc32 } from "./crc32";
import {
  compareIds,
  I_METHOD,
  METHOD_NGINX_RING,
  P_ID,
  P_ID_LENGTH,
  P_WEIGHT,
  POINTS_PER_WEIGHT,
  peerAt,
  separatorOf,
} from "./peer-set-layout";
import { countHash, HISTOGRAM_BYTES, radixSort } from "./radix-sort";

/** How far the sort by 24 bits may leave a point from its place. */
const NEAR: u32 = 16;
/** Points that are made one from another; each later one is made from the one so many places before it. */
const STRIDE: u32 = 8;
/** u32[4][256]: row k, column v is what STRIDE words of zeros make of the CRC register `v << 8k`. */
export const LEAP_BYTES: u32 = 4096;

/**
 * Fills the leap table. Point i + 1 is L(point i) ^ c, where L, 32 bits of zeros through the CRC register, is linear and
 * c depends on the peer alone; so point i + s is L^s(point i) ^ point s. A whole stride can then be computed at once,
 * where the plain chain would wait for each table look-up in turn.
 */
function fillLeaps(table: usize): void {
  prepareCrc32();
  for (let row: u32 = 0; row < 32; row += 8) {
    store<u32>(table, 0);
    for (let bit: u32 = 0; bit < 8; bit++) {
      let image = (<u32>1) << (row + bit);
      for (let i: u32 = 0; i < STRIDE; i++) image = crc32Shift(image);
      let half = (<usize>4) << bit;
      for (let p: usize = 0; p < half; p += 4) store<u32>(table + half + p, load<u32>(table + p) ^ image);
    }
    table += 1024;
  }
}

function leap(table: usize, x: u32): u32 {
  return (
    load<u32>(table + ((x & 255) << 2)) ^
    load<u32>(table + ((x >> 6) & 1020), 1024) ^
    load<u32>(table + ((x >> 14) & 1020), 2048) ^
    load<u32>(table + ((x >> 22) & 1020), 3072)
  );
}

/** Writes the points of a peer of `image` to `out` as u64 words, hash << 32 | index, and counts their hashes; returns the end. */
function writePoints(image: usize, index: u32, leaps: usize, histogram: usize, out: usize): usize {
  let peer = peerAt(image, index);
  let id = image + load<u32>(peer, P_ID);
  let separator = separatorOf(peer);
  let base = crc32(0, id, separator);
  base = crc32Byte(base, load<u8>(image, I_METHOD) == METHOD_NGINX_RING ? 0 : 0x3a);
  base = crc32(base, id + separator + 1, load<u8>(peer, P_ID_LENGTH) - separator - 1);
  let end = out + <usize>load<u16>(peer, P_WEIGHT) * POINTS_PER_WEIGHT * 8;
  let strideEnd = out + STRIDE * 8;
  let last: u32 = 0;
  for (; out < end; out += 8) {
    let hash: u32;
    if (out < strideEnd) hash = last = crc32Word(base, last);
    else hash = last ^ leap(leaps, load<u32>(out - STRIDE * 8, 4));
    store<u32>(out, index);
    store<u32>(out, hash, 4);
    countHash(histogram, hash);
  }
  return end;
}

/** True if the point at `p` does not belong where it is, having the same or a smaller hash than the one ahead of it. */
function misplaced(image: usize, p: usize): bool {
  if (load<u32>(p, 4) != load<u32>(p - 4)) return load<u32>(p, 4) < load<u32>(p - 4);
  let owner = load<u32>(p);
  let previous = load<u32>(p - 8);
  return owner != previous && compareIds(image, previous, owner) > 0;
}

/** Insertion sort of points that are almost in order. False if one is more than NEAR places off; none is lost then. */
function settle(image: usize, start: usize, end: usize): bool {
  for (let p = start + 8; p < end; p += 8) {
    if (load<u32>(p, 4) > load<u32>(p - 4)) continue;
    for (let q = p; q > start && misplaced(image, q); q -= 8) {
      if (p - q > NEAR * 8) return false;
      let word = load<u64>(q);
      store<u64>(q, load<u64>(q - 8));
      store<u64>(q - 8, word);
    }
  }
  return true;
}

/**
 * Makes the sorted points of `count` peers of `image`, whose indices are in `fresh` (u32[count], as is `spare`).
 * `a` and `b` hold u64[points] each, `histogram` HISTOGRAM_BYTES, `leaps` LEAP_BYTES. The result is in `b`;
 * returns its end.
 *
 * The upper 24 bits sort almost all of the points, and what is left, neighbours with the same 24 bits and ties, is settled
 * one by one. Only where hashes were made to collide is that too much: then the peers are put in the order of their ids
 * first and all bits are sorted, which, being stable, is the order wanted.
 */
export function freshPoints(
  image: usize,
  fresh: usize,
  spare: usize,
  count: u32,
  a: usize,
  b: usize,
  histogram: usize,
  leaps: usize,
): usize {
  fillLeaps(leaps);
  let end = writeAll(image, fresh, count, a, histogram, leaps);
  let bytes = end - a;
  radixSort(a, end, b, histogram, false);
  if (!settle(image, b, b + bytes)) {
    writeAll(image, mergeSort(fresh, spare, count, BY_ID, image), count, a, histogram, leaps);
    radixSort(a, end, b, histogram, true);
    memory.copy(b, a, bytes);
  }
  return b + bytes;
}

function writeAll(image: usize, order: usize, count: u32, out: usize, histogram: usize, leaps: usize): usize {
  memory.fill(histogram, 0, HISTOGRAM_BYTES);
  for (let i: u32 = 0; i < count; i++) {
    out = writePoints(image, load<u32>(order + ((<usize>i) << 2)), leaps, histogram, out);
  }
  return out;
}
