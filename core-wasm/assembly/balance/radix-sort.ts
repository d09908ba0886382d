/** Sorting of ring points: the time depends on their number only, which hostile hashes cannot change. */

/** A hash has three digits: bits 0 to 9 (which one sort leaves out), 10 to 20 and 21 to 31. */
const LOW_BITS: u32 = 10;
const HIGH_SHIFT: u32 = 21;
const DIGITS: u32 = 2048;
/** u32[3][DIGITS]: how often each digit occurs; the row of the low one is the last. */
export const HISTOGRAM_BYTES: u32 = 3 * 2048 * 4;
const HIGH_ROW: usize = 8192;
const LOW_ROW: usize = 16384;

/** Counts the two upper digits of a hash in a histogram that began with zeros. */
export function countHash(histogram: usize, hash: u32): void {
  countDigit(histogram + (((hash >> LOW_BITS) & (DIGITS - 1)) << 2));
  countDigit(histogram + HIGH_ROW + ((hash >> HIGH_SHIFT) << 2));
}

function countDigit(slot: usize): void {
  store<u32>(slot, load<u32>(slot) + 1);
}

/** One pass: the words u64 from `a` to `end`, stable by one digit, to `b`. */
function scatter(a: usize, end: usize, b: usize, counts: usize, shift: u64, mask: u64): void {
  let at = <u32>b;
  for (let slot = counts; slot < counts + DIGITS * 4; slot += 4) {
    let size = load<u32>(slot) << 3;
    store<u32>(slot, at);
    at += size;
  }
  for (; a < end; a += 8) {
    let word = load<u64>(a);
    let slot = counts + <usize>((word >> shift) & mask);
    let place: usize = load<u32>(slot);
    store<u32>(slot, <u32>place + 8);
    store<u64>(place, word);
  }
}

/**
 * Sorts the words from `a` to `end` by the upper 22 bits of their upper halves (the hashes), stable. `histogram` has
 * counted every hash and is used up; `b` is as large as the words.
 */
export function radixSortUpper(a: usize, end: usize, b: usize, histogram: usize): void {
  let bytes = end - a;
  // The mask keeps a digit in the place of an index of four-byte entries.
  scatter(a, end, b, histogram, 32 + LOW_BITS - 2, (DIGITS - 1) << 2);
  scatter(b, b + bytes, a, histogram + HIGH_ROW, 32 + HIGH_SHIFT - 2, (DIGITS - 1) << 2);
}

/** As `radixSortUpper`, by all 32 bits. */
export function radixSort(a: usize, end: usize, b: usize, histogram: usize): void {
  let bytes = end - a;
  let low = histogram + LOW_ROW;
  memory.fill(low, 0, DIGITS * 4);
  for (let p = a; p < end; p += 8) countDigit(low + ((load<u32>(p, 4) & ((1 << LOW_BITS) - 1)) << 2));
  scatter(a, end, b, low, 32 - 2, ((1 << LOW_BITS) - 1) << 2);
  memory.copy(a, b, bytes);
  radixSortUpper(a, end, b, histogram);
}
