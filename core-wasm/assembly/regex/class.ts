/** Bracket classes: `[a-z]`, `[^...]`, `[[:alpha:]]`, with the escapes inside them. */

import { addPerlClass, parseEscape } from "./escape";
import { SET_BYTES } from "./image";
import { CLASS_NAME, CLASS_NON_ASCII, CLASS_RANGE, CLASS_UNCLOSED } from "./limits";
import { setAdd, setFold, setNegate, setUnite } from "./sets";
import { clearScratchSet } from "./tree";
import { FLAGS, FOLD, NAMED_SET, PATTERN_END, peek, refuse, VALUE } from "./work";

/**
 * The named classes of POSIX, and `word`: length of the name, name, number of ranges, lowest and highest byte of each.
 * A length of 0 ends the table.
 */
const NAMED_CLASSES: usize = memory.data<u8>([
  5,
  0x61,
  0x6c,
  0x6e,
  0x75,
  0x6d,
  3,
  0x30,
  0x39,
  0x41,
  0x5a,
  0x61,
  0x7a, // alnum
  5,
  0x61,
  0x6c,
  0x70,
  0x68,
  0x61,
  2,
  0x41,
  0x5a,
  0x61,
  0x7a, // alpha
  5,
  0x61,
  0x73,
  0x63,
  0x69,
  0x69,
  1,
  0,
  0x7f, // ascii
  5,
  0x62,
  0x6c,
  0x61,
  0x6e,
  0x6b,
  2,
  9,
  9,
  0x20,
  0x20, // blank
  5,
  0x63,
  0x6e,
  0x74,
  0x72,
  0x6c,
  2,
  0,
  0x1f,
  0x7f,
  0x7f, // cntrl
  5,
  0x64,
  0x69,
  0x67,
  0x69,
  0x74,
  1,
  0x30,
  0x39, // digit
  5,
  0x67,
  0x72,
  0x61,
  0x70,
  0x68,
  1,
  0x21,
  0x7e, // graph
  5,
  0x6c,
  0x6f,
  0x77,
  0x65,
  0x72,
  1,
  0x61,
  0x7a, // lower
  5,
  0x70,
  0x72,
  0x69,
  0x6e,
  0x74,
  1,
  0x20,
  0x7e, // print
  5,
  0x70,
  0x75,
  0x6e,
  0x63,
  0x74,
  4,
  0x21,
  0x2f,
  0x3a,
  0x40,
  0x5b,
  0x60,
  0x7b,
  0x7e, // punct
  5,
  0x73,
  0x70,
  0x61,
  0x63,
  0x65,
  2,
  9,
  13,
  0x20,
  0x20, // space
  5,
  0x75,
  0x70,
  0x70,
  0x65,
  0x72,
  1,
  0x41,
  0x5a, // upper
  4,
  0x77,
  0x6f,
  0x72,
  0x64,
  4,
  0x30,
  0x39,
  0x41,
  0x5a,
  0x5f,
  0x5f,
  0x61,
  0x7a, // word
  6,
  0x78,
  0x64,
  0x69,
  0x67,
  0x69,
  0x74,
  3,
  0x30,
  0x39,
  0x41,
  0x46,
  0x61,
  0x66, // xdigit
  0,
]);

/** Where the `:]` of a named class begins, 0 if there is none and `[:` stands for itself. */
function namedClassEnd(work: usize, at: usize): usize {
  if (peek(work, at) !== 0x5b || peek(work, at + 1) !== 0x3a) return 0;
  const end: usize = load<u32>(work, PATTERN_END);
  for (let i = at + 2; i + 1 < end; i++) if (load<u16>(i) === 0x5d3a) return i;
  return 0;
}

/** Adds the class named from `at`, behind the `[:`, to `close`. Case is folded before it is negated, as in RE2. */
function addNamedClass(work: usize, set: usize, at: usize, close: usize): bool {
  const negated = load<u8>(at) === 0x5e;
  if (negated) at++;
  const length = close - at;
  let entry = NAMED_CLASSES;
  while (load<u8>(entry)) {
    const ranges: usize = entry + 1 + load<u8>(entry);
    const last: usize = ranges + 1 + ((<usize>load<u8>(ranges)) << 1);
    if (load<u8>(entry) === length && memory.compare(entry + 1, at, length) === 0) {
      const named = work + NAMED_SET;
      memory.fill(named, 0, SET_BYTES);
      for (let range = ranges + 1; range < last; range += 2) setAdd(named, load<u8>(range), load<u8>(range, 1));
      if (load<u32>(work, FLAGS) & FOLD) setFold(named);
      if (negated) setNegate(named);
      setUnite(set, named);
      return true;
    }
    entry = last;
  }
  return false;
}

/** Reads one byte of a class, escaped or not. Returns where it ends and stores it. */
function parseClassByte(work: usize, at: usize): usize {
  const c = peek(work, at);
  if (c === 0x5c) return parseEscape(work, at);
  if (c >= 0x80) return refuse(work, at, CLASS_NON_ASCII);
  store<u32>(work, c, VALUE);
  return at + 1;
}

/** Reads the class whose bracket is at `open` into the scratch set. Returns where it ends, 0 if it is refused. */
export function parseClass(work: usize, open: usize): usize {
  const set = clearScratchSet(work);
  const fold = load<u32>(work, FLAGS) & FOLD;
  let at = open + 1;
  const negated = peek(work, at) === 0x5e;
  if (negated) at++;
  const first = at;
  for (;;) {
    const c = peek(work, at);
    if (c < 0) return refuse(work, open, CLASS_UNCLOSED);
    if (c === 0x5d && at !== first) break;
    const close = namedClassEnd(work, at);
    if (close) {
      if (!addNamedClass(work, set, at + 2, close)) return refuse(work, at, CLASS_NAME);
      at = close + 2;
      continue;
    }
    if (c === 0x5c && addPerlClass(set, work + NAMED_SET, peek(work, at + 1))) {
      at += 2;
      continue;
    }
    const start = at;
    at = parseClassByte(work, at);
    if (!at) return 0;
    const low = load<u32>(work, VALUE);
    const next = peek(work, at + 1);
    if (peek(work, at) === 0x2d && next >= 0 && next !== 0x5d) {
      at = parseClassByte(work, at + 1);
      if (!at) return 0;
      if (load<u32>(work, VALUE) < low) return refuse(work, start, CLASS_RANGE);
    }
    setAdd(set, low, load<u32>(work, VALUE));
  }
  if (fold) setFold(set);
  if (negated) setNegate(set);
  return at + 1;
}
