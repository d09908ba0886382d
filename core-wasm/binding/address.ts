/**
 * IP literals. The identity of a peer is its address, so each has one form here: four 32-bit words, and one text (IPv4
 * without leading zeros; IPv6 as RFC 5952 says). Two spellings of one address are one peer.
 */

/** An address: `words` in network order; of IPv4 the first word alone counts and the others are 0. */
export interface IpAddress {
  family: 4 | 6;
  words: readonly [number, number, number, number];
  text: string;
}

const LONGEST = 45;
const DOT = 46;
const ZERO = 48;

/**
 * The address as one number; undefined if the text is not dotted IPv4. A leading zero is refused: some read it as octal.
 * By characters, because an upstream may have thousands of peers.
 */
function parseIpv4(text: string): number | undefined {
  let address = 0;
  let at = 0;
  for (let part = 0; part < 4; part++) {
    if (part > 0 && text.charCodeAt(at++) !== DOT) return undefined;
    const start = at;
    let value = 0;
    for (; at - start < 3; at++) {
      const digit = text.charCodeAt(at) - ZERO;
      if (!(digit >= 0 && digit <= 9)) break;
      value = value * 10 + digit;
    }
    if (at === start || value > 255 || (at - start > 1 && text.charCodeAt(start) === ZERO)) return undefined;
    address = address * 256 + value;
  }
  return at === text.length ? address : undefined;
}

/** The eight groups of an IPv6 address; undefined if the text is not one. */
function parseIpv6(text: string): number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const groups = halves.map((half) => {
    const parts = half === "" ? [] : half.split(":");
    const last = parts.at(-1) ?? "";
    // The last 32 bits may be written as IPv4.
    const tail = last.includes(".") ? parseIpv4(last) : undefined;
    if (tail !== undefined) parts.splice(-1, 1, (tail >>> 16).toString(16), (tail & 0xffff).toString(16));
    return parts.map((part) => (/^[0-9a-f]{1,4}$/i.test(part) ? Number.parseInt(part, 16) : Number.NaN));
  });
  const [head, tail = []] = groups;
  const missing = 8 - head.length - tail.length;
  if (groups.flat().some(Number.isNaN) || (halves.length === 2 ? missing < 1 : missing !== 0)) return undefined;
  // A tail in dots can only stand at the very end.
  if (halves.length === 2 && halves[0].includes(".")) return undefined;
  return [...head, ...new Array<number>(missing).fill(0), ...tail];
}

/** RFC 5952, section 4: lower case, no leading zeros, the first longest run of two or more zero groups as `::`. */
function formatIpv6(groups: readonly number[]): string {
  let gap = -1;
  let gapLength = 1;
  for (let i = 0; i < 8; i++) {
    let run = 0;
    while (i + run < 8 && groups[i + run] === 0) run++;
    if (run > gapLength) {
      gap = i;
      gapLength = run;
    }
    i += run;
  }
  const text = (from: number, to: number) =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(":");
  return gap < 0 ? text(0, 8) : `${text(0, gap)}::${text(gap + gapLength, 8)}`;
}

/** Reads an IP literal, IPv6 without brackets and zone; undefined if the text is none. */
export function parseAddress(text: string): IpAddress | undefined {
  if (text.length > LONGEST) return undefined;
  const four = parseIpv4(text);
  if (four !== undefined) return { family: 4, words: [four, 0, 0, 0], text };
  const groups = parseIpv6(text);
  if (!groups) return undefined;
  const word = (i: number) => groups[i] * 0x10000 + groups[i + 1];
  return { family: 6, words: [word(0), word(2), word(4), word(6)], text: formatIpv6(groups) };
}
