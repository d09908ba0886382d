/** Stable sorting, in memory that the caller gives; the time depends on the count only, never on the data's shape. */
import { compareAddresses, compareIds, PEER_SIZE } from "./peer-set-layout";

function inOrder(base: usize, a: u32, b: u32, byId: bool): bool {
  return (byId ? compareIds(base, a, b) : compareAddresses(base + a * PEER_SIZE, base + b * PEER_SIZE)) <= 0;
}

/**
 * Merge sort of the numbers 0 to `count - 1`: by the ids of the peers of the image `base`, or by the addresses of the
 * records Peer[] at `base`. `a` and `b` are u32[count] each. Returns the one that holds the result.
 */
export function sortIndices(a: usize, b: usize, count: u32, base: usize, byId: bool): usize {
  for (let i: u32 = 0; i < count; i++) store<u32>(a + ((<usize>i) << 2), i);
  return mergeSort(a, b, count, base, byId);
}

/** As `sortIndices`, of the numbers that stand in `a`. */
export function mergeSort(a: usize, b: usize, count: u32, base: usize, byId: bool): usize {
  for (let width: u32 = 1; width < count; width <<= 1) {
    for (let start: u32 = 0; start < count; start += width << 1) {
      mergeRuns(a, b, start, min(start + width, count), min(start + (width << 1), count), base, byId);
    }
    let other = a;
    a = b;
    b = other;
  }
  return a;
}

function mergeRuns(from: usize, to: usize, start: u32, middle: u32, end: u32, base: usize, byId: bool): void {
  let left = from + ((<usize>start) << 2);
  let right = from + ((<usize>middle) << 2);
  let leftEnd = right;
  let rightEnd = from + ((<usize>end) << 2);
  let out = to + ((<usize>start) << 2);
  // Lists mostly come in order: one comparison then settles a whole run.
  if (left < leftEnd && right < rightEnd && inOrder(base, load<u32>(leftEnd - 4), load<u32>(right), byId))
    right = rightEnd;
  if (right == rightEnd) {
    memory.copy(out, left, rightEnd - left);
    return;
  }
  while (left < leftEnd && right < rightEnd) {
    let x = load<u32>(left);
    let y = load<u32>(right);
    if (inOrder(base, x, y, byId)) {
      store<u32>(out, x);
      left += 4;
    } else {
      store<u32>(out, y);
      right += 4;
    }
    out += 4;
  }
  memory.copy(out, left, leftEnd - left);
  memory.copy(out + (leftEnd - left), right, rightEnd - right);
}
