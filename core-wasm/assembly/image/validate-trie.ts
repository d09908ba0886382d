/** Checks the match section of a shard image. */
import { alloc, free } from "../memory/heap";
import { E_CORRUPT, E_MEMORY, OK } from "../status";
import {
  FEW_CHILDREN,
  N_BITMAP,
  N_CHILDREN,
  N_EXACT,
  NODE_HEADER,
  pad8,
  ROUTE_EXACT,
  ROUTE_PREFIX,
  ROUTE_SIZE,
  S_ROUTE_COUNT,
  S_ROUTES,
  S_SIZE,
} from "./layout";

/** True if the terminal at `at` names a route of `kind`. The routes themselves are checked later. */
function goodTerminal(image: usize, at: usize, end: usize, kind: u32): bool {
  if (at + 4 > end) return false;
  let index = load<u32>(at);
  if (index >= load<u32>(image, S_ROUTE_COUNT)) return false;
  return load<u8>(image + load<u32>(image, S_ROUTES) + index * ROUTE_SIZE) == <u8>kind;
}

/**
 * The size of the node at `at`, or 0 if it is wrong. `mark` has a byte for each word of the section: 1 where a child is to
 * begin that has not been reached yet. Children come after their parents, so none is marked after it was reached.
 */
function checkNode(image: usize, at: usize, end: usize, mark: usize, start: usize): u32 {
  let node = at;
  if (at + NODE_HEADER > end) return 0;
  let label: u32 = load<u16>(at);
  let flags: u32 = load<u8>(at, 2);
  let children: u32 = flags & N_CHILDREN ? <u32>load<u8>(at, 3) + 1 : 0;
  at += NODE_HEADER;
  if (pad8(label) > <u32>(end - at)) return 0;
  at += pad8(label);
  // Flags of terminals are in the order of the kinds of routes: exact, segments, prefix.
  for (let kind: u32 = ROUTE_EXACT; kind <= ROUTE_PREFIX; kind++) {
    if (!(flags & (N_EXACT << kind))) continue;
    if (!goodTerminal(image, at, end, kind)) return 0;
    at += 4;
  }
  if (children) {
    let bitmap = (flags & N_BITMAP) != 0;
    let keys: usize = bitmap ? 32 : 8;
    if (at + keys + ((<usize>children) << 2) > end) return 0;
    if (bitmap) {
      // The rank of a byte in the bitmap is the index of its child.
      let set: u64 = 0;
      for (let i: usize = 0; i < 32; i += 8) set += popcnt(load<u64>(at + i));
      if (set != <u64>children) return 0;
    } else {
      // Unused keys are zero, and no path holds a zero byte: a key that is found is the key of a child.
      if (children > FEW_CHILDREN) return 0;
      for (let i = children; i < FEW_CHILDREN; i++) if (load<u8>(at + i)) return 0;
    }
    at += keys;
    for (let i: u32 = 0; i < children; i++, at += 4) {
      let offset = load<u32>(at);
      let child = image + offset;
      if (child <= node || child >= end || offset & 3) return 0;
      store<u8>(mark + ((child - start) >> 2), 1);
    }
  } else if (flags & N_BITMAP) {
    return 0;
  }
  return <u32>(at - node);
}

/**
 * Walks the nodes one after another from `from` to `to` (offsets): each must be sound, each child must begin where a node
 * begins, and after its parent, so that a walk from the root ends.
 */
export function validateTrie(image: usize, from: u32, to: u32): i32 {
  // The table of routes must lie inside before terminals can be looked up in it.
  let routes = <u64>load<u32>(image, S_ROUTE_COUNT) * ROUTE_SIZE;
  if (<u64>to + routes > <u64>load<u32>(image, S_SIZE)) return E_CORRUPT;
  let words = (to - from) >> 2;
  if (!words) return E_CORRUPT;
  let mark = alloc(words);
  if (!mark) return E_MEMORY;
  memory.fill(mark, 0, words);
  let start = image + from;
  let end = image + to;
  let status = OK;
  for (let at = start; at < end; ) {
    let size = checkNode(image, at, end, mark, start);
    if (!size) {
      status = E_CORRUPT;
      break;
    }
    store<u8>(mark + ((at - start) >> 2), 0);
    at += size;
  }
  for (let i: u32 = 0; i < words && status == OK; i++) {
    if (load<u8>(mark + i)) status = E_CORRUPT;
  }
  free(mark);
  return status;
}
