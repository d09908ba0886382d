/** The match section: a byte trie over the paths of the exact, segments and prefix routes. Layout: image/layout.ts. */
import {
  FEW_CHILDREN,
  N_BITMAP,
  N_CHILDREN,
  N_EXACT,
  N_PREFIX,
  N_SEGMENTS,
  NONE,
  pad8,
  ROUTE_EXACT,
  ROUTE_PREFIX,
  ROUTE_SEGMENTS,
} from "../image/layout";
import { alloc, free } from "../memory/heap";
import { E_MEMORY } from "../status";
import { at, fail, here, patch, put, reserve, status, writing } from "./builder";
import { E_ENCLOSING, E_INDEX, E_NEXT, E_PATH, E_PATH_LENGTH } from "./route-entry";

/** Frame of the walk over the sorted list: u32 low, u32 high, u32 depth, u32 offset of the child word, u32 enclosing entry. */
const FRAME: u32 = 20;

function entryAt(list: usize, index: u32): usize {
  return load<u32>(list + ((<usize>index) << 2));
}

function byteAt(entry: usize, position: u32): u32 {
  return load<u8>(<usize>load<u32>(entry, E_PATH) + position);
}

/** True if every path that the prefix route `entry` covers is covered by `outer`, a prefix of its path. */
function covers(outer: usize, entry: usize): bool {
  let length = load<u32>(outer, E_PATH_LENGTH);
  if (load<u32>(outer) == ROUTE_PREFIX) return true;
  if (length == load<u32>(entry, E_PATH_LENGTH)) return load<u32>(entry) == ROUTE_SEGMENTS;
  return byteAt(entry, length) == 47;
}

/**
 * Finds the candidate after a prefix route: the nearest route around it that covers whatever it covers. `enclosing`
 * links each route to the one before it on the way from the root.
 */
function linkNext(entry: usize, enclosing: usize): void {
  store<u32>(entry, <u32>enclosing, E_ENCLOSING);
  let outer = enclosing;
  while (outer && !covers(outer, entry)) outer = load<u32>(outer, E_ENCLOSING);
  store<u32>(entry, outer ? load<u32>(outer, E_INDEX) : NONE, E_NEXT);
}

/**
 * Writes the node for `list[low..high)`, whose paths agree in their first `depth` bytes, and pushes a frame for each
 * child: the last one is taken up first, and all below it before its neighbour. Returns the new top of the stack.
 */
function putNode(b: usize, list: usize, low: u32, high: u32, depth: u32, enclosing: usize, stack: usize): usize {
  let first = entryAt(list, low);
  let last = entryAt(list, high - 1);
  let shared = depth;
  let limit = min(load<u32>(first, E_PATH_LENGTH), load<u32>(last, E_PATH_LENGTH));
  while (shared < limit && byteAt(first, shared) == byteAt(last, shared)) shared++;

  let node = here(b);
  put(b, 0);
  let label = reserve(b, pad8(shared - depth));
  if (writing(b)) memory.copy(at(b, label), <usize>load<u32>(first, E_PATH) + depth, shared - depth);
  let flags: u32 = 0;
  // Entries that end here come first, ordered by kind; of equal ones the first is the terminal, the others follow it.
  // They are linked from the last to the first, so that `enclosing` runs from the inside out.
  let next = low;
  while (next < high && load<u32>(entryAt(list, next), E_PATH_LENGTH) == shared) next++;
  for (let kind: u32 = ROUTE_EXACT; kind <= ROUTE_PREFIX; kind++) {
    for (let i = low; i < next; i++) {
      let entry = entryAt(list, i);
      if (load<u32>(entry) != kind) continue;
      flags |= kind == ROUTE_EXACT ? N_EXACT : kind == ROUTE_SEGMENTS ? N_SEGMENTS : N_PREFIX;
      put(b, load<u32>(entry, E_INDEX));
      break;
    }
  }
  for (let i = next; i > low; i--) {
    let entry = entryAt(list, i - 1);
    if (load<u32>(entry) == ROUTE_EXACT) {
      let follower = i < next ? entryAt(list, i) : 0;
      let chained = follower && load<u32>(follower) == ROUTE_EXACT;
      store<u32>(entry, chained ? load<u32>(follower, E_INDEX) : NONE, E_NEXT);
    } else {
      linkNext(entry, enclosing);
      enclosing = entry;
    }
  }

  // One frame for each child; the last one is taken up first.
  let top = stack;
  for (let i = next; i < high; top += FRAME) {
    let c = byteAt(entryAt(list, i), shared);
    store<u32>(top, i);
    store<u32>(top, c, 12);
    while (i < high && byteAt(entryAt(list, i), shared) == c) i++;
    store<u32>(top, i, 4);
    store<u32>(top, shared + 1, 8);
    store<u32>(top, <u32>enclosing, 16);
  }
  let children = <u32>(top - stack) / FRAME;
  if (children) {
    let many = children > FEW_CHILDREN;
    flags |= many ? N_CHILDREN | N_BITMAP : N_CHILDREN;
    let keys = reserve(b, many ? 32 : 8);
    for (let k: u32 = 0; k < children; k++) {
      let frame = stack + k * FRAME;
      let c = load<u32>(frame, 12);
      if (writing(b)) {
        let byte = at(b, keys + (many ? c >> 3 : k));
        store<u8>(byte, many ? <u32>load<u8>(byte) | (1 << (c & 7)) : c);
      }
      store<u32>(frame, reserve(b, 4), 12);
    }
  }
  patch(b, node, (shared - depth) | (flags << 16) | ((children ? children - 1 : 0) << 24));
  return top;
}

/** Writes the match section for `count` entries, sorted by path, and links each with its next candidate. */
export function compileTrie(b: usize, list: usize, count: u32): void {
  if (!count) {
    put(b, 0);
    return;
  }
  // A frame for each child of each node on the current way down; no two frames stand for the same entry.
  let frames = alloc((count + 257) * FRAME);
  if (!frames) {
    fail(b, E_MEMORY);
    return;
  }
  let stack = putNode(b, list, 0, count, 0, 0, frames);
  while (stack > frames && !status(b)) {
    stack -= FRAME;
    patch(b, load<u32>(stack, 12), here(b));
    stack = putNode(b, list, load<u32>(stack), load<u32>(stack, 4), load<u32>(stack, 8), load<u32>(stack, 16), stack);
  }
  free(frames);
}
