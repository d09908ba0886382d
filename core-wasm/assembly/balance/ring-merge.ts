/** Hashes, owners and buckets of an image: fresh points merged with those of an older image whose peers stayed. */
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
  let hash = image + load<u32>(image, I_HASHES);
  let owner = image + load<u32>(image, I_OWNERS);
  let hashes = hash;
  let hashEnd = hash + ((<usize>load<u32>(image, I_POINT_COUNT)) << 2);
  // While points are written, entry `bucket + 1` says how many there are up to the last one of the bucket.
  let ends = image + load<u32>(image, I_BUCKETS) + 4;
  let shift = 32 - <u32>load<u8>(image, I_BITS);
  memory.fill(ends - 4, 0, image + load<u32>(image, I_OWNERS) - ends + 4);
  let oldHash = old;
  let oldEnd = old;
  let oldOwner = old;
  if (old) {
    oldHash += load<u32>(old, I_HASHES);
    oldEnd = oldHash + ((<usize>load<u32>(old, I_POINT_COUNT)) << 2);
    oldOwner += load<u32>(old, I_OWNERS);
  }
  while (true) {
    let bound: u32 = fresh < freshEnd ? load<u32>(fresh, 4) : NONE;
    for (; oldHash < oldEnd; oldHash += 4, oldOwner += 2) {
      let h = load<u32>(oldHash);
      if (h > bound) break;
      let before = <u32>load<u16>(oldOwner);
      if (before >= oldPeers) return false;
      let now = load<u32>(remap + ((<usize>before) << 2));
      if (now == NONE) continue;
      if (h == bound && fresh < freshEnd && compareIds(image, now, load<u32>(fresh)) > 0) break;
      if (hash == hashEnd) return false;
      store<u32>(hash, h);
      store<u16>(owner, <u16>now);
      hash += 4;
      owner += 2;
      store<u32>(ends + ((<usize>(h >> shift)) << 2), <u32>(hash - hashes) >> 2);
    }
    if (fresh == freshEnd) break;
    // At least the one point that stopped the old ones, then all that come before the next old one.
    let next = oldHash < oldEnd ? load<u32>(oldHash) : NONE;
    do {
      if (hash == hashEnd) return false;
      bound = load<u32>(fresh, 4);
      store<u32>(hash, bound);
      store<u16>(owner, load<u16>(fresh));
      hash += 4;
      owner += 2;
      store<u32>(ends + ((<usize>(bound >> shift)) << 2), <u32>(hash - hashes) >> 2);
      fresh += 8;
    } while (fresh < freshEnd && (load<u32>(fresh, 4) < next || oldHash == oldEnd));
  }
  fillBuckets(ends, image + load<u32>(image, I_OWNERS));
  return hash == hashEnd && oldHash == oldEnd;
}

/** Gives empty buckets the count of the one before. */
function fillBuckets(entry: usize, end: usize): void {
  let most: u32 = 0;
  for (; entry < end; entry += 4) {
    most = max(most, load<u32>(entry));
    store<u32>(entry, most);
  }
}
