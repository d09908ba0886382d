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
  while (oldHash < oldEnd || fresh < freshEnd) {
    let value: u32 = 0;
    let peer: u32 = 0;
    let takeOld = oldHash < oldEnd;
    if (takeOld) {
      value = load<u32>(oldHash);
      peer = load<u16>(oldOwner);
      if (peer >= oldPeers) return false;
      peer = load<u32>(remap + ((<usize>peer) << 2));
      if (peer == NONE) {
        oldHash += 4;
        oldOwner += 2;
        continue;
      }
      if (fresh < freshEnd && load<u32>(fresh, 4) <= value) {
        takeOld = load<u32>(fresh, 4) == value && compareIds(image, peer, load<u32>(fresh)) < 0;
      }
    }
    if (takeOld) {
      oldHash += 4;
      oldOwner += 2;
    } else {
      value = load<u32>(fresh, 4);
      peer = load<u32>(fresh);
      fresh += 8;
    }
    if (hash == hashEnd) return false;
    store<u32>(hash, value);
    store<u16>(owner, <u16>peer);
    hash += 4;
    owner += 2;
    store<u32>(ends + ((<usize>(value >> shift)) << 2), <u32>(hash - hashes) >> 2);
  }
  fillBuckets(ends, image + load<u32>(image, I_OWNERS));
  return hash == hashEnd;
}

/** Gives empty buckets the count of the one before. */
function fillBuckets(entry: usize, end: usize): void {
  let most: u32 = 0;
  for (; entry < end; entry += 4) {
    most = max(most, load<u32>(entry));
    store<u32>(entry, most);
  }
}
