/**
 * Distinct texts in the order of their first use, each with an index.
 *
 * Table: 0 u32 count | 4 u32 capacity (texts) | 8 u32 slot mask | 12 u32 zero
 *        then per text: u32 address, u32 length, u32 hash; then u32 slot[mask + 1], index + 1 or 0.
 */

import { FACTS, NONE } from "../image/layout";
import { hashBytes, sameBytes } from "../memory/bytes";
import { alloc } from "../memory/heap";

const T_CAPACITY: usize = 4;
const T_MASK: usize = 8;
const T_ENTRIES: usize = 16;
const ENTRY: u32 = 12;

/** `cookie`: the header that cookies are read from. */
export const COOKIE: usize = memory.data<u8>([99, 111, 111, 107, 105, 101]);
export const COOKIE_LENGTH: u32 = 6;

/** A table for at most `capacity` texts; 0 if memory is short. */
export function newTextTable(capacity: u32): usize {
  let slots: u32 = 8;
  while (slots < capacity * 2) slots <<= 1;
  let size = <u32>T_ENTRIES + capacity * ENTRY + slots * 4;
  let table = alloc(size);
  if (!table) return 0;
  memory.fill(table, 0, size);
  store<u32>(table, capacity, T_CAPACITY);
  store<u32>(table, slots - 1, T_MASK);
  return table;
}

export function textCount(table: usize): u32 {
  return load<u32>(table);
}

export function textAddress(table: usize, index: u32): usize {
  return load<u32>(table + T_ENTRIES + index * ENTRY);
}

export function textSize(table: usize, index: u32): u32 {
  return load<u32>(table + T_ENTRIES + index * ENTRY, 4);
}

/** The index of a text, which is added if it is new; NONE if the table is full. The bytes must stay where they are. */
export function internText(table: usize, text: usize, length: u32): u32 {
  let hash = hashBytes(text, length);
  let mask = load<u32>(table, T_MASK);
  let slots = table + T_ENTRIES + load<u32>(table, T_CAPACITY) * ENTRY;
  let slot = hash & mask;
  for (;;) {
    let found = load<u32>(slots + ((<usize>slot) << 2));
    if (!found) break;
    let entry = table + T_ENTRIES + (found - 1) * ENTRY;
    if (
      load<u32>(entry, 8) == hash &&
      load<u32>(entry, 4) == length &&
      sameBytes(<usize>load<u32>(entry), text, length)
    ) {
      return found - 1;
    }
    slot = (slot + 1) & mask;
  }
  let index = load<u32>(table);
  if (index == load<u32>(table, T_CAPACITY)) return NONE;
  let entry = table + T_ENTRIES + index * ENTRY;
  store<u32>(entry, <u32>text);
  store<u32>(entry, length, 4);
  store<u32>(entry, hash, 8);
  store<u32>(slots + ((<usize>slot) << 2), index + 1);
  store<u32>(table, index + 1);
  return index;
}

/** The value slot of the cookie header in a table of headers; 0 if it is not among them. */
export function cookieSlot(headers: usize): u32 {
  for (let i: u32 = 0; i < textCount(headers); i++) {
    if (textSize(headers, i) == COOKIE_LENGTH && sameBytes(textAddress(headers, i), COOKIE, COOKIE_LENGTH)) {
      return i + FACTS;
    }
  }
  return 0;
}
