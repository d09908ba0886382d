/** A set of bytes: 256 flags, 0 or 1. */
export type ByteSet = Uint8Array;

/** The set of these ranges, lowest and highest byte of each in turn. */
export function byteSet(...ranges: number[]): ByteSet {
  const set = new Uint8Array(256);
  for (let i = 0; i < ranges.length; i += 2) set.fill(1, ranges[i], ranges[i + 1] + 1);
  return set;
}

/** Adds the bytes of `other` to `set`. */
export function unite(set: ByteSet, other: ByteSet): ByteSet {
  for (let c = 0; c < 256; c++) set[c] |= other[c];
  return set;
}

export function complement(set: ByteSet): ByteSet {
  return set.map((flag) => 1 - flag);
}

export function intersects(a: ByteSet, b: ByteSet): boolean {
  return a.some((flag, c) => (flag & b[c]) !== 0);
}

/** True if every byte of `inner` is in `outer`. */
export function includes(outer: ByteSet, inner: ByteSet): boolean {
  return inner.every((flag, c) => flag <= outer[c]);
}

/** The set with the other case of each ASCII letter in it. */
export function folded(set: ByteSet): ByteSet {
  const result = Uint8Array.from(set);
  for (let c = 0x41; c <= 0x5a; c++) result[c] = result[c | 0x20] = set[c] | set[c | 0x20];
  return result;
}

/** The one byte of a set, undefined where it has none or several. */
export function onlyByte(set: ByteSet): number | undefined {
  const first = set.indexOf(1);
  return first >= 0 && set.indexOf(1, first + 1) < 0 ? first : undefined;
}
