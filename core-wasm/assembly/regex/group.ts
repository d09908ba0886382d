/** What follows an opening parenthesis: groups, names, flags, and the Perl syntax that RE2 does not have. */
import { sameBytes } from "../memory/bytes";
import { isDigit, isWordByte, lookUp } from "./escape";
import {
  BACKREFERENCE,
  GROUP_NAME,
  GROUP_NAME_TWICE,
  GROUP_SYNTAX,
  MAX_NESTING,
  MAX_SLOTS,
  NESTING_TOO_DEEP,
  PAREN_UNCLOSED,
  RECURSION,
} from "./limits";
import { NO_CAPTURE, newGroup } from "./tree";
import {
  DEPTH,
  FLAGS,
  GROUP_COUNT,
  NAME_AREA,
  NAME_COUNT,
  OPEN_AREA,
  OPEN_AT,
  OPEN_BYTES,
  OPEN_FLAGS,
  OPEN_NODE,
  OPEN_SIZE,
  PATTERN,
  peek,
  refuse,
  SIZE,
} from "./work";

/** What may follow `(?` in Perl but not in RE2: pairs of a byte and the reason of the refusal. A zero ends the table. */
// biome-ignore format: one reason a line
const PERL_GROUPS: usize = memory.data<u8>([
  0x3c, 21, 0x3d, 21, 0x21, 21, // < = !: LOOKAROUND
  0x3e, 22, // >: ATOMIC
  0x28, 23, // (: CONDITIONAL
  0x52, 24, 0x26, 24, // R &: RECURSION
  0,
]);

/** i: FOLD, s: DOT_ALL, m: MULTI_LINE, U: UNGREEDY. A zero ends the table. */
const FLAG_LETTERS: usize = memory.data<u8>([0x69, 1, 0x73, 2, 0x6d, 4, 0x55, 8, 0]);

/** Entry of the innermost open group. */
export function innermost(work: usize): usize {
  return work + OPEN_AREA + load<u32>(work, DEPTH) * OPEN_BYTES;
}

/** Opens a group, capturing or not; `open` is its parenthesis. Returns `next`, 0 if it is refused. */
export function enterGroup(work: usize, open: usize, capturing: bool, next: usize): usize {
  const depth = load<u32>(work, DEPTH) + 1;
  if (depth > MAX_NESTING) return refuse(work, open, NESTING_TOO_DEEP);
  store<u32>(work, depth, DEPTH);
  let capture = NO_CAPTURE;
  if (capturing) {
    capture = load<u32>(work, GROUP_COUNT) + 1;
    store<u32>(work, capture, GROUP_COUNT);
    if (capture * 2 >= MAX_SLOTS) capture = NO_CAPTURE;
  }
  const entry = innermost(work);
  store<u32>(entry, open, OPEN_AT);
  store<u32>(entry, load<u32>(work, FLAGS), OPEN_FLAGS);
  store<u32>(entry, load<u32>(work, SIZE), OPEN_SIZE);
  store<u32>(entry, newGroup(work, capture, capture === NO_CAPTURE ? 0 : 2), OPEN_NODE);
  return next;
}

/** Reads `name>` of a named group. Names are ASCII words and stand for one group each. */
function parseName(work: usize, open: usize, name: usize): usize {
  let at = name;
  while (isWordByte(peek(work, at))) at++;
  if (at === name || peek(work, at) !== 0x3e) return refuse(work, at, GROUP_NAME);
  const pattern: usize = load<u32>(work, PATTERN);
  const length = <u32>(at - name);
  const count = load<u32>(work, NAME_COUNT);
  let entry = work + NAME_AREA;
  for (const end = entry + (count << 2); entry < end; entry += 4) {
    if (load<u16>(entry, 2) === length && sameBytes(pattern + load<u16>(entry), name, length)) {
      return refuse(work, name, GROUP_NAME_TWICE);
    }
  }
  store<u16>(entry, name - pattern);
  store<u16>(entry, length, 2);
  store<u32>(work, count + 1, NAME_COUNT);
  return enterGroup(work, open, true, at + 1);
}

/** Reads `flags)`, which hold for the rest of the group around, or `flags:`, which hold for the group that they open. */
function parseFlags(work: usize, open: usize, at: usize): usize {
  let flags = load<u32>(work, FLAGS);
  let negative = false;
  let complete = true;
  for (;;) {
    const c = peek(work, at);
    if (c < 0) return refuse(work, open, PAREN_UNCLOSED);
    if (c === 0x2d) {
      if (negative) return refuse(work, at, GROUP_SYNTAX);
      negative = true;
      complete = false;
      at++;
      continue;
    }
    const flag = lookUp(FLAG_LETTERS, c);
    if (!flag) break;
    flags = negative ? flags & ~flag : flags | flag;
    complete = true;
    at++;
  }
  const opens = peek(work, at) === 0x3a;
  if (!complete || (!opens && peek(work, at) !== 0x29)) return refuse(work, at, GROUP_SYNTAX);
  if (opens && !enterGroup(work, open, false, at)) return 0;
  store<u32>(work, flags, FLAGS);
  return at + 1;
}

/** Reads what the parenthesis at `open` begins. Returns where the inside starts, or where a group of flags ends. */
export function parseGroup(work: usize, open: usize): usize {
  if (peek(work, open + 1) !== 0x3f) return enterGroup(work, open, true, open + 1);
  const at = open + 2;
  const c = peek(work, at);
  const next = peek(work, at + 1);
  if (c === 0x3c && next !== 0x3d && next !== 0x21) return parseName(work, open, at + 1);
  if (c === 0x50 && next === 0x3c) return parseName(work, open, at + 2);
  if (c === 0x50) return refuse(work, open, next === 0x3d ? BACKREFERENCE : next === 0x3e ? RECURSION : GROUP_SYNTAX);
  const digit = c === 0x2b || c === 0x2d ? isDigit(next) : isDigit(c);
  const refused = digit ? RECURSION : lookUp(PERL_GROUPS, c);
  if (refused) return refuse(work, open, refused);
  return parseFlags(work, open, at);
}
