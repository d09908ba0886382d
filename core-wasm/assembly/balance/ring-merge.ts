/**
 * Hashes, owners and buckets of an image: fresh points merged with those of an older image whose peers stayed. What lies
 * between two fresh or removed points is a run: its hashes are copied in one go, its buckets move by one number.
 */
import { compareIds, I_BITS, I_BUCKETS, I_HASHES, I_OWNERS, I_POINT_COUNT, NONE } from "./peer-set-layout";

/**
 * Writes the ring of `image` from the sorted words of `freshPoints` and, where `old` is not 0, from the points of that
 * image: `remap` (u32[oldPeers]) gives the new index of each of its peers, NONE for those whose points go.
 * False if `old` is not what its header says.
 */
export function mergePoints(
  image: usize,
  fresh: usize,
  freshEnd: usize,
  old: usize,
  oldPeers: u32,
  remap: usize,
): bool {
  let hashes = image + load<u32>(image, I_HASHES);
  let owner = image + load<u32>(image, I_OWNERS);
  let left = load<u32>(image, I_POINT_COUNT);
  let hash = hashes;
  // Buckets of one width move with the points; else they are counted in the end.
  let moves = old != 0 && load<u8>(old, I_BITS) == load<u8>(image, I_BITS);
  let bucket = image + load<u32>(image, I_BUCKETS);
  let buckets = bucket;
  let oldHash = old;
  let oldHashes = old;
  let oldEnd = old;
  let oldOwner = old;
  let oldBucket = old;
  if (old) {
    oldHashes += load<u32>(old, I_HASHES);
    oldHash = oldHashes;
    oldEnd = oldHash + ((<usize>load<u32>(old, I_POINT_COUNT)) << 2);
    oldOwner += load<u32>(old, I_OWNERS);
    oldBucket += load<u32>(old, I_BUCKETS);
  }
  let end = image + load<u32>(image, I_OWNERS);
  let shift = 32 - <u32>load<u8>(image, I_BITS);
  while (true) {
    let stop = fresh < freshEnd ? runEnd(image, oldHash, oldEnd, oldOwner, fresh, oldPeers, remap) : oldEnd;
    while (true) {
      // The run up to the next point that goes, or to `stop`.
      let start = oldHash;
      let now: u32 = 0;
      for (; oldHash < stop; oldHash += 4, oldOwner += 2) {
        let before = <u32>load<u16>(oldOwner);
        if (before >= oldPeers) return false;
        now = load<u32>(remap + ((<usize>before) << 2));
        if (now == NONE) break;
        store<u16>(owner, <u16>now);
        owner += 2;
        // Not beyond the owners, whatever an image that was never validated holds.
        if (!left--) return false;
      }
      memory.copy(hash, start, oldHash - start);
      let moved = <u32>(hash - hashes) - <u32>(start - oldHashes);
      hash += oldHash - start;
      let gone = oldHash < stop;
      if (moves) {
        let bound = (<u32>(oldHash - oldHashes) >> 2) + (gone ? 1 : 0);
        for (; bucket < end && load<u32>(oldBucket) < bound; bucket += 4, oldBucket += 4) {
          store<u32>(bucket, load<u32>(oldBucket) + <u32>(<i32>moved >> 2));
        }
      }
      if (!gone) break;
      oldHash += 4;
      oldOwner += 2;
    }
    if (fresh == freshEnd) break;
    // The point that stopped the old ones, and all that come before the next old one.
    let bar = oldHash < oldEnd ? load<u32>(oldHash) : NONE;
    let bound = load<u32>(fresh, 4);
    do {
      if (!left--) return false;
      if (moves) {
        let top = buckets + ((<usize>(bound >> shift)) << 2);
        for (; bucket <= top; bucket += 4, oldBucket += 4) store<u32>(bucket, <u32>(hash - hashes) >> 2);
      }
      store<u32>(hash, bound);
      store<u16>(owner, load<u16>(fresh));
      hash += 4;
      owner += 2;
      fresh += 8;
      if (fresh == freshEnd) break;
      bound = load<u32>(fresh, 4);
    } while (bound < bar || oldHash == oldEnd);
  }
  if (left) return false;
  if (!moves) countBuckets(hashes, hash, buckets, shift);
  let count = load<u32>(image, I_POINT_COUNT);
  for (; moves && bucket < end; bucket += 4) store<u32>(bucket, count);
  return true;
}

/** The end of the old points that come before the fresh point at `fresh`. */
function runEnd(image: usize, low: usize, end: usize, owner: usize, fresh: usize, oldPeers: u32, remap: usize): usize {
  let bound = load<u32>(fresh, 4);
  let first = low;
  let high = end;
  while (low < high) {
    let middle = low + (((high - low) >> 3) << 2);
    if (load<u32>(middle) < bound) low = middle + 4;
    else high = middle;
  }
  // Points of one hash are ordered by the ids of their peers; those that go anyway may go here.
  for (; low < end && load<u32>(low) == bound; low += 4) {
    let before = <u32>load<u16>(owner + ((low - first) >> 1));
    let now = before < oldPeers ? load<u32>(remap + ((<usize>before) << 2)) : NONE;
    if (now != NONE && compareIds(image, now, load<u32>(fresh)) > 0) break;
  }
  return low;
}

/** Writes to `bucket` on, for each bucket and the end, how many of the hashes up to `end` come before it. */
function countBuckets(hashes: usize, end: usize, bucket: usize, shift: u32): void {
  let last = bucket + ((<usize>4) << (32 - shift));
  memory.fill(bucket, 0, last + 4 - bucket);
  for (let hash = hashes; hash < end; ) {
    let after = bucket + ((<usize>(load<u32>(hash) >> shift)) << 2);
    hash += 4;
    store<u32>(after, <u32>(hash - hashes) >> 2, 4);
  }
  let most: u32 = 0;
  for (; bucket <= last; bucket += 4) {
    most = max(most, load<u32>(bucket));
    store<u32>(bucket, most);
  }
}
