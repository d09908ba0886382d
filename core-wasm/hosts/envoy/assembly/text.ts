/** Texts of the filter: bytes in memory behind their length. Nothing here is a string of AssemblyScript at run time. */
import { sameBytes } from "../../../assembly/memory/bytes";
import { alloc } from "../../../assembly/memory/heap";

/** An ASCII literal as `u32 length | bytes`, made once when the module is initialized; never freed. */
export function ascii(literal: string): usize {
  let length = literal.length;
  let text = alloc(4 + length);
  if (!text) unreachable();
  store<u32>(text, length);
  // Literals are UTF-16 in static data.
  for (let i = 0; i < length; i++) store<u8>(text + i, load<u16>(changetype<usize>(literal) + ((<usize>i) << 1)), 4);
  return text;
}

export function bytesOf(text: usize): usize {
  return text + 4;
}

export function lengthOf(text: usize): u32 {
  return load<u32>(text);
}

/** True if these bytes are `text`. */
export function isText(at: usize, length: u32, text: usize): bool {
  return length == lengthOf(text) && sameBytes(at, bytesOf(text), length);
}

/** True if these bytes begin with `text`. */
export function beginsWith(at: usize, length: u32, text: usize): bool {
  return length >= lengthOf(text) && sameBytes(at, bytesOf(text), lengthOf(text));
}

/** A decimal number of at most 10 digits, modulo 2^32; `otherwise` where the bytes are none. */
export function decimal(at: usize, length: u32, otherwise: u32): u32 {
  if (!length || length > 10) return otherwise;
  let number: u32 = 0;
  for (let i: u32 = 0; i < length; i++) {
    let digit: u32 = <u32>load<u8>(at + i) - 48;
    if (digit > 9) return otherwise;
    number = number * 10 + digit;
  }
  return number;
}

/** The value of a hexadecimal digit, 16 for any other byte. */
export function hexDigit(c: u32): u32 {
  if (c - 48 < 10) return c - 48;
  c |= 32;
  return c - 97 < 6 ? c - 87 : 16;
}
