/** Bracket classes: `[a-z]`, `[^...]`, `[[:alpha:]]`, with the escapes inside them. */

import { parseEscape } from "./escape";
import { CLASS_NAME, CLASS_NON_ASCII, CLASS_RANGE, CLASS_UNCLOSED } from "./limits";
import { addNamedClass, addPerlClass } from "./named-classes";
import { setAdd, setFold, setNegate } from "./sets";
import { clearScratchSet } from "./tree";
import { FLAGS, FOLD, PATTERN_END, peek, refuse, VALUE } from "./work";

/** Where the `:]` of a named class begins, 0 if there is none and `[:` stands for itself. */
function namedClassEnd(work: usize, at: usize): usize {
  if (peek(work, at) !== 0x5b || peek(work, at + 1) !== 0x3a) return 0;
  const end: usize = load<u32>(work, PATTERN_END);
  for (let i = at + 2; i + 1 < end; i++) if (load<u16>(i) === 0x5d3a) return i;
  return 0;
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
      const negates = load<u8>(at + 2) === 0x5e;
      const name = negates ? at + 3 : at + 2;
      const length = <u32>(close - name);
      // Names of one letter are those of escapes.
      if (length === 1 || !addNamedClass(work, set, name, length, negates)) return refuse(work, at, CLASS_NAME);
      at = close + 2;
      continue;
    }
    if (c === 0x5c && addPerlClass(work, set, peek(work, at + 1))) {
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
