/**
 * Looking peers of a valid image up, whatever their states. A *position* is a point of the ring, a place of Maglev, or a
 * peer's index where there is neither. Nothing here allocates or writes.
 */
import {
  I_BITS,
  I_BUCKETS,
  I_HASHES,
  I_OWNERS,
  I_PEER_COUNT,
  I_POINT_COUNT,
  NONE,
  positionsOf,
} from "./peer-set-layout";

/** Points that are compared at once. A bucket seldom has more; hostile hashes may all fall into one. */
const SCAN: u32 = 8;

/**
 * The position that owns `hash`: the first point at or after it, wrapping. Without a ring: `hash` modulo the number of
 * places, or of peers. NONE if there is no peer.
 */
export function peerSetPosition(image: usize, hash: u32): u32 {
  let points = positionsOf(image);
  let bits: u32 = load<u8>(image, I_BITS);
  if (!bits) return points ? hash % points : NONE;
  let hashes = image + load<u32>(image, I_HASHES);
  let bucket = image + load<u32>(image, I_BUCKETS) + ((<usize>(hash >> (32 - bits))) << 2);
  // The bounds hold for a valid image anyway; they keep any other from being read outside.
  let high = min(load<u32>(bucket, 4), points);
  let low = min(load<u32>(bucket), high);
  while (high - low > SCAN) {
    let middle = (low + high) >> 1;
    if (load<u32>(hashes + ((<usize>middle) << 2)) < hash) low = middle + 1;
    else high = middle;
  }
  if (low + SCAN <= points) {
    // Points behind the bucket are not below the hash, so counting needs no end, and no branch that is guessed wrong.
    let p = hashes + ((<usize>low) << 2);
    low +=
      <u32>(load<u32>(p) < hash) +
      <u32>(load<u32>(p, 4) < hash) +
      <u32>(load<u32>(p, 8) < hash) +
      <u32>(load<u32>(p, 12) < hash) +
      <u32>(load<u32>(p, 16) < hash) +
      <u32>(load<u32>(p, 20) < hash) +
      <u32>(load<u32>(p, 24) < hash) +
      <u32>(load<u32>(p, 28) < hash);
  } else {
    while (low < high && load<u32>(hashes + ((<usize>low) << 2)) < hash) low++;
  }
  return low == points ? 0 : low;
}

/** The peer at a position. */
export function peerSetOwner(image: usize, position: u32): u32 {
  if (!load<u32>(image, I_POINT_COUNT)) return position;
  return load<u16>(image + load<u32>(image, I_OWNERS) + ((<usize>position) << 1));
}

/** The peer that owns `hash`; NONE if there is no peer. */
export function peerSetLookup(image: usize, hash: u32): u32 {
  let position = peerSetPosition(image, hash);
  return position == NONE ? NONE : peerSetOwner(image, position);
}

/**
 * The first position at or clockwise after `position` whose peer is not marked in `tried` (a bitmap, bit `index & 7` of
 * byte `index >> 3`); NONE if all are. A walk marks each peer it meets and goes on from the position it got: it visits
 * every peer once, in one turn of the ring altogether.
 */
export function peerSetWalk(image: usize, position: u32, tried: usize): u32 {
  let peers = load<u32>(image, I_PEER_COUNT);
  let count = positionsOf(image);
  if (position >= count) return NONE;
  for (let left = count; left; left--) {
    let peer = peerSetOwner(image, position);
    if (peer < peers && !((load<u8>(tried + (peer >> 3)) >> (peer & 7)) & 1)) return position;
    if (++position == count) position = 0;
  }
  return NONE;
}
