/** Stable sorting, in memory that the caller gives; the time depends on the count only, never on the data's shape. */
import { compareAddresses, compareIds, PEER_SIZE } from "../balance/peer-set-layout";

/** Orders: of indices of peers, by the ids of the image `base` or by the addresses of the records Peer[] at `base`. */
export const BY_ID: u32 = 0;
export const BY_ADDRESS: u32 = 1;

function inOrder(order: u32, base: usize, a: u32, b: u32): bool {
  let difference =
    order == BY_ID ? compareIds(base, a, b) : compareAddresses(base + a * PEER_SIZE, base + b * PEER_SIZE);
  return difference <= 0;
}

/** Merge sort of the words at `a`; `b` has room for as many, `count`. Returns the one of both that holds the result. */
export function mergeSort(a: usize, b: usize, count: u32, order: u32, base: usize): usize {
  for (let width: u32 = 1; width < count; width <<= 1) {
    for (let start: u32 = 0; start < count; start += width << 1) {
      mergeRuns(a, b, start, min(start + width, count), min(start + (width << 1), count), order, base);
    }
    let other = a;
    a = b;
    b = other;
  }
  return a;
}

function mergeRuns(from: usize, to: usize, start: u32, middle: u32, end: u32, order: u32, base: usize): void {
  let left = from + ((<usize>start) << 2);
  let right = from + ((<usize>middle) << 2);
  let leftEnd = right;
  let rightEnd = from + ((<usize>end) << 2);
  let out = to + ((<usize>start) << 2);
  // Lists mostly come in order: one comparison then settles a whole run.
  if (left < leftEnd && right < rightEnd && inOrder(order, base, load<u32>(leftEnd - 4), load<u32>(right)))
    right = rightEnd;
  if (right == rightEnd) {
    memory.copy(out, left, rightEnd - left);
    return;
  }
  while (left < leftEnd && right < rightEnd) {
    let x = load<u32>(left);
    let y = load<u32>(right);
    if (inOrder(order, base, x, y)) {
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
