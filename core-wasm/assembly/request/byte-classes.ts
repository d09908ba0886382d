/**
 * What each byte may be in a request, in one table.
 *   bits 0 to 2  in a target: 0 plain, 1 slash, 2 percent, 3 end of the path (? and #), 4 not allowed
 *   bit 3        becomes an escape in a location (control characters, blanks, bytes above 126, and what RFC 3986 bars)
 *   bit 4        becomes an escape in a header value (control characters but tab)
 *   bit 5        becomes an escape in a path that was decoded (NGX_ESCAPE_URI, and what RFC 3986 bars)
 *   bit 6        stands for itself in a host, letter case aside (RFC 3986, section 3.2.2: unreserved, sub-delims, %)
 */
const BYTES: usize = memory.data<u8>([
  60, 60, 60, 60, 60, 60, 60, 60, 60, 44, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60,
  60, 60, 60, 44, 64, 40, 35, 64, 98, 64, 64, 64, 64, 64, 64, 64, 64, 64, 1, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 0,
  64, 40, 64, 40, 35, 0, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
  64, 64, 32, 40, 32, 40, 64, 40, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
  64, 64, 64, 64, 64, 40, 40, 40, 64, 60, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40,
  40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40,
  40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40,
  40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40,
  40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40,
]);

export const TARGET_SLASH: u32 = 1;
export const TARGET_PERCENT: u32 = 2;
export const TARGET_END: u32 = 3;
export const TARGET_BAD: u32 = 4;

export const ESCAPE_LOCATION: u32 = 8;
export const ESCAPE_HEADER: u32 = 16;
export const ESCAPE_PATH: u32 = 32;
export const IN_HOST: u32 = 64;

/** What a byte is in a request target. */
export function targetClass(c: u32): u32 {
  return <u32>load<u8>(BYTES + c) & 7;
}

/** Those of these bits that a byte has. */
export function byteBits(c: u32, bits: u32): u32 {
  return <u32>load<u8>(BYTES + c) & bits;
}
