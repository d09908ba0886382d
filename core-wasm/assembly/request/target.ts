/**
 * The path of a request target, normalised as NGINX's `$uri` (ngx_http_parse_complex_uri): percent-decoded once, slashes
 * merged, dot segments resolved. The raw target stays as it came.
 */

import { sameBytes } from "../memory/bytes";
import {
  X_DECODED,
  X_HOST,
  X_HOST_LENGTH,
  X_PATH,
  X_PATH_LENGTH,
  X_QUERY,
  X_QUERY_LENGTH,
  X_TARGET,
  X_TARGET_LENGTH,
} from "../table/context";
import { targetClass } from "./byte-classes";
import { normaliseHost } from "./host";

const SLASH: u32 = 47;
const DOT: u32 = 46;
const QUESTION: u32 = 63;
const HASH: u32 = 35;

function hexValue(c: u32): u32 {
  if (c - 48 < 10) return c - 48;
  c |= 32;
  return c - 97 < 6 ? c - 87 : 255;
}

/** Splits what follows the path: the query without its question mark (0 if there is none), up to a fragment. */
function takeQuery(ctx: usize, at: usize, end: usize): bool {
  // Both words of the query.
  store<u64>(ctx, 0, X_QUERY);
  if (at == end) return true;
  let start = at + 1;
  let stop: usize = load<u8>(at) == <u8>QUESTION ? 0 : start - 1;
  for (let p = start; p < end; p++) {
    p += plainLength(p, <u32>(end - p));
    if (p == end) break;
    let c: u32 = load<u8>(p);
    if (targetClass(c) == 4) return false;
    if (c == HASH && !stop) stop = p;
  }
  if (load<u8>(at) == <u8>QUESTION) {
    store<u32>(ctx, <u32>start, X_QUERY);
    store<u32>(ctx, <u32>((stop ? stop : end) - start), X_QUERY_LENGTH);
  }
  return true;
}

/** The slow way: writes the normalised path to the context's own buffer. Returns where the path ends, 0 if it is bad. */
function decodePath(ctx: usize, at: usize, end: usize): usize {
  let start: usize = load<u32>(ctx, X_DECODED);
  // Where the segment at hand begins: after its slash. A segment is complete when the next slash or the end is seen.
  let segment = start + 1;
  let to = segment;
  store<u8>(start, SLASH);
  at++;
  for (;;) {
    let ended = at == end;
    let c: u32 = ended ? 0 : load<u8>(at);
    let kind: u32 = ended ? 3 : targetClass(c);
    if (kind == 4) return 0;
    if (kind == 2) {
      if (end - at < 3) return 0;
      let high = hexValue(load<u8>(at + 1));
      let low = hexValue(load<u8>(at + 2));
      if ((high | low) > 15) return 0;
      c = (high << 4) | low;
      if (!c) return 0;
      at += 2;
      kind = c == SLASH ? 1 : 0;
    }
    if (kind == 0) {
      store<u8>(to++, c);
      at++;
      continue;
    }
    let size = to - segment;
    if (size == 1 && load<u8>(segment) == <u8>DOT) {
      to = segment;
    } else if (size == 2 && load<u16>(segment) == 0x2e2e) {
      if (segment == start + 1) return 0;
      to = segment - 1;
      while (load<u8>(to - 1) != <u8>SLASH) to--;
      segment = to;
    } else if (size && kind == 1) {
      store<u8>(to++, SLASH);
      segment = to;
    }
    if (kind == 3) break;
    at++;
  }
  store<u32>(ctx, <u32>start, X_PATH);
  store<u32>(ctx, <u32>(to - start), X_PATH_LENGTH);
  return at;
}

/**
 * `http://authority...`: the authority must be the host of the request, if it has one, or becomes it. Returns where
 * the path begins; a missing path is put in place of the authority's last byte. 0 if the target is bad.
 */
function skipAuthority(ctx: usize, at: usize, end: usize): usize {
  // h t t p, letter case aside.
  if (end - at < 8 || (load<u32>(at) | 0x20202020) != 0x70747468) return 0;
  at += 4;
  if ((load<u8>(at) | 32) == 115) at++;
  if (load<u8>(at) != 58 || load<u16>(at + 1) != 0x2f2f) return 0;
  at += 3;
  let authority = at;
  while (at < end && targetClass(load<u8>(at)) != 1 && targetClass(load<u8>(at)) != 3) at++;
  let buffer: usize = load<u32>(ctx, X_DECODED);
  if (at - authority > 255 || at == authority) return 0;
  let size = normaliseHost(buffer, authority, <u32>(at - authority));
  if (size <= 0) return 0;
  let length = load<u32>(ctx, X_HOST_LENGTH);
  if (length) {
    if (<u32>size != length || !sameBytes(buffer, ctx + X_HOST, length)) return 0;
  } else {
    memory.copy(ctx + X_HOST, buffer, size);
    store<u64>(ctx + X_HOST + size, 0);
    store<u32>(ctx, <u32>size, X_HOST_LENGTH);
  }
  if (at < end && load<u8>(at) == <u8>SLASH) return at;
  store<u8>(at - 1, SLASH);
  return at - 1;
}

const LOW: u64 = 0x0101010101010101;
const HIGH: u64 = 0x8080808080808080;
const SLASHES: u64 = 0x2f2f2f2f2f2f2f2f;

/**
 * How many of the first `length` bytes at `at` are known to be a plain path that is its own normal form. Looked for, eight bytes at once:
 * control characters, blanks, `! # % ' ?` and DEL, and a slash or dot after a slash. (`x - LOW & ~x & HIGH` marks the zero bytes of x, and above
 * one perhaps others: the lowest mark is right.) Input can be read past its end. A query in which none of these stands has nothing to be
 * looked at either.
 */
function plainLength(at: usize, length: u32): u32 {
  for (let left = <i32>length; left > 0; left -= 8, at += 8) {
    let w = load<u64>(at);
    let next = load<u64>(at, 1);
    if (left < 8) {
      // What is beyond the end counts as a letter.
      let mask = ((<u64>1) << ((<u64>left) << 3)) - 1;
      w = (w & mask) | ((LOW * 0x61) & ~mask);
      next = w >> 8;
    }
    let a = (w & ~(LOW * 6)) ^ (LOW * 0x21);
    let b = (w | (LOW << 6)) ^ (LOW * 0x7f);
    let c = (w ^ SLASHES) | ((next ^ SLASHES) & ~LOW);
    let marks = (((a - LOW) & ~a) | ((b - LOW) & ~b) | ((c - LOW) & ~c) | ((w - LOW * 0x21) & ~w)) & HIGH;
    if (marks) return length - <u32>left + <u32>(ctz(marks) >> 3);
  }
  return length;
}

/**
 * Takes `length` bytes at `at` as the request target: sets path, query and target of the context. False if the target is
 * neither in origin nor in absolute form, has a control character or a bad escape, or climbs above the root.
 */
export function takeTarget(ctx: usize, at: usize, length: u32): bool {
  let end = at + length;
  if (!length) return false;
  if (load<u8>(at) != <u8>SLASH) {
    at = skipAuthority(ctx, at, end);
    if (!at) return false;
  }
  store<u32>(ctx, <u32>at, X_TARGET);
  store<u32>(ctx, <u32>(end - at), X_TARGET_LENGTH);
  let p = at;
  for (; p < end; p++) {
    p += plainLength(p, <u32>(end - p));
    if (p == end) break;
    let kind: u32 = targetClass(load<u8>(p));
    if (!kind) continue;
    if (kind == 3) break;
    if (kind == 4) return false;
    // An escape, or a slash that may call for merging or resolving.
    p = decodePath(ctx, at, end);
    return p ? takeQuery(ctx, p, end) : false;
  }
  store<u32>(ctx, <u32>at, X_PATH);
  store<u32>(ctx, <u32>(p - at), X_PATH_LENGTH);
  return takeQuery(ctx, p, end);
}
