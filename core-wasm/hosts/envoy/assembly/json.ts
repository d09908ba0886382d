/** Reads JSON: a cursor over bytes. Whatever is not JSON is answered with false, and the cursor is of no more use. */
import { clearGrowing, putByte } from "./growing";
import { hexDigit } from "./text";

const MOST_DEPTH: u32 = 32;

let at: usize = 0;
let end: usize = 0;

export function startJson(bytes: usize, length: u32): void {
  at = bytes;
  end = bytes + length;
}

/** True if nothing is left. */
export function jsonEnded(): bool {
  skipBlanks();
  return at == end;
}

function skipBlanks(): void {
  while (at < end && (load<u8>(at) == 32 || load<u8>(at) - 9 < 2 || load<u8>(at) == 13)) at++;
}

/** Passes the byte `c` if it is next. */
export function jsonByte(c: u32): bool {
  skipBlanks();
  if (at == end || load<u8>(at) != <u8>c) return false;
  at++;
  return true;
}

/** Takes over the text of a string, as UTF-8. */
export function jsonString(into: usize): bool {
  clearGrowing(into);
  if (!jsonByte(34)) return false;
  while (at < end) {
    let c: u32 = load<u8>(at++);
    if (c == 34) return true;
    if (c < 32) return false;
    if (c == 92) {
      if (!escaped(into)) return false;
    } else putByte(into, c);
  }
  return false;
}

function escaped(into: usize): bool {
  if (at == end) return false;
  let c: u32 = load<u8>(at++);
  if (c == 117) return codeUnit(into);
  if (c == 34 || c == 92 || c == 47) putByte(into, c);
  else if (c == 98) putByte(into, 8);
  else if (c == 102) putByte(into, 12);
  else if (c == 110) putByte(into, 10);
  else if (c == 114) putByte(into, 13);
  else if (c == 116) putByte(into, 9);
  else return false;
  return true;
}

/** `\uXXXX`. Half of a pair can't be a header's or a cookie's text: it becomes a question mark. */
function codeUnit(into: usize): bool {
  if (end - at < 4) return false;
  let unit: u32 = 0;
  for (let i = 0; i < 4; i++) {
    let digit = hexDigit(load<u8>(at++));
    if (digit > 15) return false;
    unit = (unit << 4) | digit;
  }
  if (unit < 0x80) putByte(into, unit);
  else if (unit < 0x800) {
    putByte(into, 0xc0 | (unit >> 6));
    putByte(into, 0x80 | (unit & 63));
  } else if (unit - 0xd800 < 0x800) putByte(into, 63);
  else {
    putByte(into, 0xe0 | (unit >> 12));
    putByte(into, 0x80 | ((unit >> 6) & 63));
    putByte(into, 0x80 | (unit & 63));
  }
  return true;
}

/** 1 for `true`, 0 for `false`, -1 for anything else. */
export function jsonBoolean(): i32 {
  skipBlanks();
  if (passes(0x65757274, 4)) return 1;
  return end - at >= 5 && load<u8>(at, 4) == 101 && passes(0x736c6166, 5) ? 0 : -1;
}

/** Passes `length` bytes of which the first four are `word`. */
function passes(word: u32, length: u32): bool {
  if (end - at < <usize>length || load<u32>(at) != word) return false;
  at += length;
  return true;
}

/** A whole number from 0 on; -1 for anything else. */
export function jsonNumber(): i64 {
  skipBlanks();
  let start = at;
  let number: i64 = 0;
  while (at < end && <u32>load<u8>(at) - 48 < 10) {
    number = number * 10 + <i64>(load<u8>(at++) - 48);
    if (at - start > 16) return -1;
  }
  return at == start ? -1 : number;
}

/** Passes a value of any kind; `text` is room for its strings. */
export function skipJson(text: usize, depth: u32): bool {
  if (depth > MOST_DEPTH) return false;
  skipBlanks();
  if (at == end) return false;
  let c: u32 = load<u8>(at);
  if (c == 34) return jsonString(text);
  if (c == 123 || c == 91) return skipInner(text, depth + 1, c);
  if (c == 110) return passes(0x6c6c756e, 4);
  if (c == 116 || c == 102) return jsonBoolean() >= 0;
  let start = at;
  // What a number may be made of.
  while (at < end && (<u32>load<u8>(at) - 48 < 10 || isNumberSign(load<u8>(at)))) at++;
  return at > start;
}

function isNumberSign(c: u32): bool {
  return c == 43 || c == 45 || c == 46 || (c | 32) == 101;
}

/** Members of an object, or values of a list, up to its end. `open` is the byte that begins it: its end is two further. */
function skipInner(text: usize, depth: u32, open: u32): bool {
  jsonByte(open);
  if (jsonByte(open + 2)) return true;
  do {
    if (open == 123 && !(jsonString(text) && jsonByte(58))) return false;
    if (!skipJson(text, depth)) return false;
  } while (jsonByte(44));
  return jsonByte(open + 2);
}
