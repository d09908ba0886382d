/** Sorting of ring points: the time depends on their number only, which hostile hashes cannot change. */

/** u32[4][256]: how often each value occurs in each byte of the hashes, the lowest byte first. */
export const HISTOGRAM_BYTES: u32 = 4096;

/** Counts the three upper bytes of a hash in a histogram that began with zeros. */
export function countHash(histogram: usize, hash: u32): void {
  countSlot(histogram + 1024 + ((hash >> 6) & 1020));
  countSlot(histogram + 2048 + ((hash >> 14) & 1020));
  countSlot(histogram + 3072 + ((hash >> 22) & 1020));
}

function countSlot(slot: usize): void {
  store<u32>(slot, load<u32>(slot) + 1);
}

/**
 * Sorts the words u64 from `a` to `end` by their upper halves (the hashes): by the three upper bytes, or, with `exact`, by
 * all four; stable. `histogram` has counted every hash and is used up; `b` is as large as the words. The result is in `b`,
 * with `exact` in `a`.
 */
export function radixSort(a: usize, end: usize, b: usize, histogram: usize, exact: bool): void {
  let bytes = end - a;
  let digit: u32 = 1;
  if (exact) {
    digit = 0;
    for (let p = a; p < end; p += 8) countSlot(histogram + ((load<u32>(p, 4) & 255) << 2));
  }
  for (; digit < 4; digit++) {
    let counts = histogram + (digit << 10);
    let at = <u32>b;
    for (let slot = counts; slot < counts + 1024; slot += 4) {
      let size = load<u32>(slot) << 3;
      store<u32>(slot, at);
      at += size;
    }
    // The mask keeps a byte in the place of an index of four-byte entries.
    let shift: u64 = 30 + (digit << 3);
    end = a + bytes;
    for (let p = a; p < end; p += 8) {
      let word = load<u64>(p);
      let slot = counts + <usize>((word >> shift) & 1020);
      let place: usize = load<u32>(slot);
      store<u32>(slot, <u32>place + 8);
      store<u64>(place, word);
    }
    let other = a;
    a = b;
    b = other;
  }
}
