/** Escapes that stand for one byte, as in RE2. */
import { BACKREFERENCE, CODE_POINT_TOO_LARGE, ESCAPE_AT_END, ESCAPE_HEX, ESCAPE_UNKNOWN } from "./limits";
import { peek, refuse, VALUE } from "./work";

/** Marks the reason of a refusal in a table for `lookUp`. */
export const REFUSED: u32 = 0x80;

/** Escapes of a letter: pairs of the letter and its byte, or REFUSED plus a reason. A zero ends the table. */
// biome-ignore format: one kind a line
const ESCAPES: usize = memory.data<u8>([
  0x61, 7, 0x66, 12, 0x6e, 10, 0x72, 13, 0x74, 9, 0x76, 11, // a f n r t v
  0x5f, 0x5f, // RE2 takes \_ although it is a word byte
  0x67, 0x80 + 13, 0x6b, 0x80 + 13, // g k: BACKREFERENCE
  0x70, 0x80 + 14, 0x50, 0x80 + 14, // p P: UNICODE_CLASS
  0x47, 0x80 + 15, 0x4b, 0x80 + 15, 0x58, 0x80 + 15, 0x5a, 0x80 + 15, // G K X Z: ESCAPE_UNSUPPORTED
  0,
]);

/** What a table of pairs says of a byte, 0 if nothing. */
export function lookUp(table: usize, c: i32): u32 {
  for (; load<u8>(table); table += 2) if (load<u8>(table) === c) return load<u8>(table, 1);
  return 0;
}

export function isDigit(c: i32): bool {
  return <u32>(c - 0x30) < 10;
}

export function isWordByte(c: i32): bool {
  return isDigit(c) || <u32>((c | 0x20) - 0x61) < 26 || c === 0x5f;
}

function isOctal(c: i32): bool {
  return <u32>(c - 0x30) < 8;
}

/** Value of a hexadecimal digit, or -1. */
function hexDigit(c: i32): i32 {
  if (isDigit(c)) return c - 0x30;
  const letter = (c | 0x20) - 0x61;
  return <u32>letter < 6 ? letter + 10 : -1;
}

/** Reads what follows `\x`. */
function parseHex(work: usize, open: usize): usize {
  let at = open + 2;
  let value = 0;
  if (peek(work, at) === 0x7b) {
    const first = ++at;
    let c = peek(work, at);
    for (; hexDigit(c) >= 0; c = peek(work, ++at)) value = min((value << 4) + hexDigit(c), 0x1000);
    if (at === first || c !== 0x7d) return refuse(work, open, ESCAPE_HEX);
    at++;
  } else {
    const high = hexDigit(peek(work, at));
    const low = hexDigit(peek(work, at + 1));
    if (high < 0 || low < 0) return refuse(work, open, ESCAPE_HEX);
    value = (high << 4) + low;
    at += 2;
  }
  if (value > 0xff) return refuse(work, open, CODE_POINT_TOO_LARGE);
  store<u32>(work, value, VALUE);
  return at;
}

/** One to three octal digits; a digit that stands alone is a backreference, unless it is 0. */
function parseOctal(work: usize, open: usize): usize {
  let at = open + 1;
  let value = 0;
  if (peek(work, at) !== 0x30 && !(isOctal(peek(work, at)) && isOctal(peek(work, at + 1)))) {
    return refuse(work, open, BACKREFERENCE);
  }
  for (const end = at + 3; at < end && isOctal(peek(work, at)); at++) value = (value << 3) + peek(work, at) - 0x30;
  if (value > 0xff) return refuse(work, open, CODE_POINT_TOO_LARGE);
  store<u32>(work, value, VALUE);
  return at;
}

/** Reads the escape whose backslash is at `open`. Returns where it ends and stores its byte, or refuses it. */
export function parseEscape(work: usize, open: usize): usize {
  const c = peek(work, open + 1);
  if (c < 0) return refuse(work, open, ESCAPE_AT_END);
  if (isDigit(c)) return parseOctal(work, open);
  if (c === 0x78) return parseHex(work, open);
  let value = lookUp(ESCAPES, c);
  if (value > REFUSED) return refuse(work, open, value - REFUSED);
  if (!value) {
    if (c >= 0x80 || isWordByte(c)) return refuse(work, open, ESCAPE_UNKNOWN);
    value = c;
  }
  store<u32>(work, value, VALUE);
  return open + 2;
}
