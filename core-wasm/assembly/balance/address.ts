/**
 * IP literals. A peer's identity is its address bytes; its text is always written by the core, in the one canonical
 * form (IPv4 without leading zeros; IPv6 as RFC 5952 says), so that two spellings of one address are one peer.
 */

const COLON: u32 = 0x3a;
const DOT: u32 = 0x2e;

/** The four bytes of a dotted IPv4 address, the first the most significant; -1 if it is not one. */
function parseIpv4(p: usize, end: usize): i64 {
  let address: u32 = 0;
  for (let part = 0; part < 4; part++) {
    if (part) {
      if (p >= end || load<u8>(p) != DOT) return -1;
      p++;
    }
    let start = p;
    let value: u32 = 0;
    for (; p < end && p - start < 3; p++) {
      let digit = <u32>load<u8>(p) - 48;
      if (digit > 9) break;
      value = value * 10 + digit;
    }
    // A leading zero is refused: some parsers read it as octal, and then two programs see two addresses.
    if (p == start || value > 255 || (p - start > 1 && load<u8>(start) == 48)) return -1;
    address = (address << 8) | value;
  }
  return p == end ? <i64>address : -1;
}

function hexDigit(c: u32): u32 {
  if (c - 48 < 10) return c - 48;
  c |= 32;
  return c - 97 < 6 ? c - 87 : 16;
}

/** Place of group `index` of an IPv6 address in a record. */
function groupAt(address: usize, index: usize): usize {
  return address + ((index << 1) ^ 6);
}

/** Writes the groups of an IPv6 address to `out`, which holds zeros. False if the text is not one. */
function parseIpv6(p: usize, end: usize, out: usize): bool {
  let groups: usize = 0;
  let gap: usize = 9;
  if (p + 2 <= end && load<u16>(p) == 0x3a3a) {
    gap = 0;
    p += 2;
  }
  while (p < end) {
    if (groups == 8) return false;
    let start = p;
    let value: u32 = 0;
    for (; p < end && p - start < 4; p++) {
      let digit = hexDigit(load<u8>(p));
      if (digit > 15) break;
      value = (value << 4) | digit;
    }
    if (p < end && load<u8>(p) == DOT) {
      let tail = parseIpv4(start, end);
      if (tail < 0 || groups > 6) return false;
      store<u16>(groupAt(out, groups), <u16>(<u32>tail >> 16));
      value = <u32>tail;
      groups++;
      p = end;
    } else if (p == start) return false;
    store<u16>(groupAt(out, groups), <u16>value);
    groups++;
    if (p == end) break;
    if (load<u8>(p++) != COLON || p == end) return false;
    if (load<u8>(p) == COLON) {
      if (gap < 9) return false;
      gap = groups;
      p++;
    }
  }
  if (gap == 9) return groups == 8;
  if (groups == 8) return false;
  // What stands behind the gap moves to the end, and leaves zeros.
  for (let to: usize = 8; groups > gap; ) {
    let from = groupAt(out, --groups);
    store<u16>(groupAt(out, --to), load<u16>(from));
    store<u16>(from, 0);
  }
  return true;
}

/**
 * Reads an IP literal: dotted IPv4, or IPv6 without brackets and zone. Writes it to `out` as two u64, the upper half first;
 * IPv4 is in the upper half of the first. Returns 4 or 6, and 0 if the text is not an IP literal.
 */
export function parseAddress(text: usize, length: u32, out: usize): u32 {
  let end = text + length;
  store<u64>(out, 0);
  store<u64>(out, 0, 8);
  let four = parseIpv4(text, end);
  if (four >= 0) {
    store<u32>(out, <u32>four, 4);
    return 4;
  }
  return parseIpv6(text, end, out) ? 6 : 0;
}

/** Writes a number below 100,000 in decimal; returns the end. */
export function writeDecimal(value: u32, out: usize): usize {
  let digits: u32 = value < 10 ? 1 : value < 100 ? 2 : value < 1000 ? 3 : value < 10000 ? 4 : 5;
  for (let p = out + digits; p > out; value /= 10) store<u8>(--p, 48 + (value % 10));
  return out + digits;
}

function writeIpv6(address: usize, out: usize): usize {
  // RFC 5952, section 4.2: the longest run of two or more zero groups is `::`, the first one if two are as long.
  let gap: usize = 8;
  let gapLength: usize = 1;
  for (let i: usize = 0, run: usize = 0; i < 8; i++) {
    run = load<u16>(groupAt(address, i)) ? 0 : run + 1;
    if (run > gapLength) {
      gapLength = run;
      gap = i + 1 - run;
    }
  }
  for (let i: usize = 0; i < 8; i++) {
    if (i == gap) {
      store<u16>(out, 0x3a3a);
      out += 2;
      i += gapLength - 1;
      continue;
    }
    if (i && i != gap + gapLength) store<u8>(out++, COLON);
    let group = <u32>load<u16>(groupAt(address, i));
    for (let shift = (31 - <i32>clz(group | 1)) & 12; shift >= 0; shift -= 4) {
      let digit = (group >> shift) & 15;
      store<u8>(out++, digit < 10 ? digit + 48 : digit + 87);
    }
  }
  return out;
}

/** Writes the canonical text of an address of `parseAddress`; returns its end. */
export function formatAddress(family: u32, address: usize, out: usize): usize {
  if (family == 6) return writeIpv6(address, out);
  let bytes = load<u32>(address, 4);
  for (let shift: i32 = 24; shift > 0; shift -= 8) {
    out = writeDecimal((bytes >> shift) & 255, out);
    store<u8>(out++, DOT);
  }
  return writeDecimal(bytes & 255, out);
}
