/** Escapes that stand for one byte, and the classes \d \s \w, as in RE2. */
import { SET_BYTES } from "./image";
import {
  BACKREFERENCE,
  CODE_POINT_TOO_LARGE,
  ESCAPE_AT_END,
  ESCAPE_HEX,
  ESCAPE_UNKNOWN,
  ESCAPE_UNSUPPORTED,
  UNICODE_CLASS,
} from "./limits";
import { setAdd, setNegate, setUnite } from "./sets";
import { peek, refuse, VALUE } from "./work";

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
  let value = c;
  switch (c) {
    case 0x61: // a
      value = 7;
      break;
    case 0x66: // f
      value = 12;
      break;
    case 0x6e: // n
      value = 10;
      break;
    case 0x72: // r
      value = 13;
      break;
    case 0x74: // t
      value = 9;
      break;
    case 0x76: // v
      value = 11;
      break;
    case 0x78: // x
      return parseHex(work, open);
    case 0x67: // g
    case 0x6b: // k
      return refuse(work, open, BACKREFERENCE);
    case 0x70: // p
    case 0x50: // P
      return refuse(work, open, UNICODE_CLASS);
    case 0x47: // G
    case 0x4b: // K
    case 0x58: // X
    case 0x5a: // Z
      return refuse(work, open, ESCAPE_UNSUPPORTED);
    case 0x5f: // RE2 takes \_ although it is a word byte
      break;
    default:
      if (c >= 0x80 || isWordByte(c)) return refuse(work, open, ESCAPE_UNKNOWN);
  }
  store<u32>(work, value, VALUE);
  return open + 2;
}

/** Adds \d, \s, \w or, with capital letters, what is not in them. False if the letter is none of these. */
export function addPerlClass(set: usize, scratch: usize, letter: i32): bool {
  memory.fill(scratch, 0, SET_BYTES);
  switch (letter | 0x20) {
    case 0x77: // w
      setAdd(scratch, 0x41, 0x5a);
      setAdd(scratch, 0x5f, 0x5f);
      setAdd(scratch, 0x61, 0x7a);
      setAdd(scratch, 0x30, 0x39);
      break;
    case 0x64: // d
      setAdd(scratch, 0x30, 0x39);
      break;
    case 0x73: // s
      setAdd(scratch, 9, 10);
      setAdd(scratch, 12, 13);
      setAdd(scratch, 32, 32);
      break;
    default:
      return false;
  }
  if (!(letter & 0x20)) setNegate(scratch);
  setUnite(set, scratch);
  return true;
}
