/**
 * IP literals. A peer's identity is its address bytes; its text is always written by the core, in the one canonical
 * form (IPv4 without leading zeros; IPv6 as RFC 5952 says), so that two spellings of one address are one peer.
 */

const COLON: u32 = 0x3a;
const DOT: u32 = 0x2e;

/** Longest text that `formatAddress` writes: `ffff:...:ffff`, 39 bytes. */
export const MAX_ADDRESS_TEXT: u32 = 39;

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

/** Writes the 16 bytes of an IPv6 address to `out`, which holds zeros. False if the text is not one. */
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
      store<u32>(out + groups * 2, bswap<u32>(<u32>tail));
      groups += 2;
      break;
    }
    if (p == start) return false;
    store<u16>(out + groups * 2, bswap<u16>(<u16>value));
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
  let tail = (groups - gap) * 2;
  memory.copy(out + 16 - tail, out + gap * 2, tail);
  memory.fill(out + gap * 2, 0, 16 - groups * 2);
  return true;
}

/**
 * Reads an IP literal: dotted IPv4, or IPv6 without brackets and zone. Writes 16 bytes to `out` (network order; IPv4
 * in the first four, the rest zero). Returns 4 or 6, and 0 if the text is not an IP literal.
 */
export function parseAddress(text: usize, length: u32, out: usize): u32 {
  let end = text + length;
  store<u64>(out, 0);
  store<u64>(out, 0, 8);
  let four = parseIpv4(text, end);
  if (four >= 0) {
    store<u32>(out, bswap<u32>(<u32>four));
    return 4;
  }
  return parseIpv6(text, end, out) ? 6 : 0;
}

/** Writes a number below 100,000 in decimal; returns the end. */
export function writeDecimal(value: u32, out: usize): usize {
  let divisor: u32 = value < 10 ? 1 : value < 100 ? 10 : value < 1000 ? 100 : value < 10000 ? 1000 : 10000;
  for (; divisor; divisor /= 10) {
    store<u8>(out++, 48 + ((value / divisor) % 10));
  }
  return out;
}

function writeIpv4(bytes: usize, out: usize): usize {
  for (let i: usize = 0; i < 4; i++) {
    if (i) store<u8>(out++, DOT);
    out = writeDecimal(load<u8>(bytes + i), out);
  }
  return out;
}

function writeIpv6(bytes: usize, out: usize): usize {
  // RFC 5952, section 4.2: the longest run of two or more zero groups is `::`, the first one if two are as long.
  let gap: usize = 8;
  let gapLength: usize = 1;
  for (let i: usize = 0; i < 8; i++) {
    let run: usize = 0;
    while (i + run < 8 && load<u16>(bytes + (i + run) * 2) == 0) run++;
    if (run > gapLength) {
      gap = i;
      gapLength = run;
    }
    i += run;
  }
  for (let i: usize = 0; i < 8; i++) {
    if (i == gap) {
      store<u16>(out, 0x3a3a);
      out += 2;
      i += gapLength - 1;
      continue;
    }
    if (i && i != gap + gapLength) store<u8>(out++, COLON);
    let group = <u32>bswap<u16>(load<u16>(bytes + i * 2));
    for (let shift = group > 0xfff ? 12 : group > 0xff ? 8 : group > 0xf ? 4 : 0; shift >= 0; shift -= 4) {
      let digit = (group >> shift) & 15;
      store<u8>(out++, digit < 10 ? digit + 48 : digit + 87);
    }
  }
  return out;
}

/** Writes the canonical text of an address of `parseAddress` (at most MAX_ADDRESS_TEXT bytes); returns its end. */
export function formatAddress(family: u32, bytes: usize, out: usize): usize {
  return family == 4 ? writeIpv4(bytes, out) : writeIpv6(bytes, out);
}
