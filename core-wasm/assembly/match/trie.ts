/** The walk down the trie of a shard: the exact route and the longest prefix route that cover a path. */
import { N_BITMAP, N_CHILDREN, N_EXACT, N_PREFIX, N_SEGMENTS, NODE_HEADER, NONE } from "../image/layout";
import { X_PATH, X_PATH_LENGTH, X_PREFIX } from "../table/context";
import { H_TRIE, imageOf } from "../table/shards";

const LOW: u64 = 0x0101010101010101;
const HIGH: u64 = 0x8080808080808080;

/** Rank of byte `c` in a bitmap of 256 bits, or NONE if its bit is not set. */
function rankOf(bitmap: usize, c: u32): u32 {
  let word = bitmap + ((c >> 6) << 3);
  let bits = load<u64>(word);
  let bit = (<u64>1) << (c & 63);
  if (!(bits & bit)) return NONE;
  let rank = popcnt(bits & (bit - 1));
  for (let before = bitmap; before < word; before += 8) rank += popcnt(load<u64>(before));
  return <u32>rank;
}

/** The exact route that covers the path, or NONE. Sets X_PREFIX to the longest prefix route that does, or to NONE. */
export function searchTrie(ctx: usize, handle: usize): u32 {
  let image = imageOf(handle);
  let path: usize = load<u32>(ctx, X_PATH);
  let end = path + load<u32>(ctx, X_PATH_LENGTH);
  let exact = NONE;
  let prefix = NONE;
  let node: usize = load<u32>(handle, H_TRIE);
  for (;;) {
    let head = load<u32>(node);
    let flags = head >> 16;
    let left = head & 0xffff;
    let at = node + NODE_HEADER;
    if (<u32>(end - path) < left) break;
    for (; left > 8; left -= 8, at += 8, path += 8) {
      if (load<u64>(at) != load<u64>(path)) break;
    }
    // The buffers of a path can be read past their end; what is beyond the label is shifted out.
    if (left) {
      if (left > 8 || (load<u64>(at) ^ load<u64>(path)) << (64 - (left << 3))) break;
      path += left;
      at += 8;
    }
    if (flags & (N_EXACT | N_SEGMENTS | N_PREFIX)) {
      if (flags & N_EXACT) {
        if (path == end) exact = load<u32>(at);
        at += 4;
      }
      let segments = NONE;
      if (flags & N_SEGMENTS) {
        if (path == end || load<u8>(path) == 47) segments = load<u32>(at);
        at += 4;
      }
      if (flags & N_PREFIX) {
        prefix = load<u32>(at);
        at += 4;
      }
      // Of a segments and a plain prefix route with one path the former is the more particular.
      if (segments != NONE) prefix = segments;
    }
    if (path == end || !(flags & N_CHILDREN)) break;
    let c: u32 = load<u8>(path++);
    if (flags & N_BITMAP) {
      let child = rankOf(at, c);
      if (child == NONE) break;
      at += 32 + ((<usize>child) << 2);
    } else {
      // The key that is equal leaves a zero, which sets the highest bit of its byte.
      let x = load<u64>(at) ^ (LOW * <u64>c);
      x = (x - LOW) & ~x & HIGH;
      if (!x) break;
      // Bit 8 i + 7 belongs to key i, whose offset is the word at 8 + 4 i.
      at += 5 + (<usize>ctz(x) >> 1);
    }
    node = image + load<u32>(at);
  }
  store<u32>(ctx, prefix, X_PREFIX);
  return exact;
}
