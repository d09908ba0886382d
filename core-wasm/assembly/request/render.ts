/** Fills templates in, into the output buffer of a context. */
import {
  PART_ARGUMENT,
  PART_COOKIE,
  PART_GROUP,
  PART_HEADER,
  PART_TEXT,
  PART_VARIABLE,
  pad4,
  VAR_REQUEST,
} from "../image/layout";
import {
  X_GROUPS,
  X_OUTPUT,
  X_OUTPUT_CAPACITY,
  X_PATH,
  X_TARGET,
  X_VALUE,
  X_VALUE_LENGTH,
  X_WRITE,
} from "../table/context";
import { byteBits, ESCAPE_HEADER, ESCAPE_LOCATION, ESCAPE_PATH } from "./byte-classes";
import { hasGroups } from "./groups";
import { argumentValue, cookieValue, REQUEST_PARTS, requestPart, slotValue, variableValue } from "./values";

/** How bytes are written: what becomes an escape (a set of byte-classes.ts). BODY: nothing. */
export const MODE_BODY: u32 = 0;
/** Location: control characters, blanks and bytes above 126 become escapes. */
export const MODE_LOCATION: u32 = ESCAPE_LOCATION;
/** Header value: control characters become escapes. */
export const MODE_HEADER: u32 = ESCAPE_HEADER;
/** Path for the upstream: the text of the object as in a location, values of the request by `escapePath`. */
export const MODE_PATH: u32 = ESCAPE_PATH;

export function startOutput(ctx: usize): void {
  store<u32>(ctx, load<u32>(ctx, X_OUTPUT), X_WRITE);
}

/** True once more was written than the output has room for. */
export function overflowed(ctx: usize): bool {
  return load<u32>(ctx, X_WRITE) > load<u32>(ctx, X_OUTPUT) + load<u32>(ctx, X_OUTPUT_CAPACITY);
}

/** Writes bytes as they are. */
export function writeBytes(ctx: usize, from: usize, length: u32): void {
  let to: usize = load<u32>(ctx, X_WRITE);
  let end = <usize>load<u32>(ctx, X_OUTPUT) + load<u32>(ctx, X_OUTPUT_CAPACITY);
  if (to > end) return;
  if (<u64>to + length > <u64>end) {
    store<u32>(ctx, <u32>end + 1, X_WRITE);
    return;
  }
  memory.copy(to, from, length);
  store<u32>(ctx, <u32>to + length, X_WRITE);
}

function hexDigit(n: u32): u32 {
  return n < 10 ? 48 + n : 55 + n;
}

/** Writes bytes, those with a bit of `set` as %XX. */
function writeEscaped(ctx: usize, from: usize, length: u32, set: u32): void {
  if (!set) {
    writeBytes(ctx, from, length);
    return;
  }
  let to: usize = load<u32>(ctx, X_WRITE);
  let end = <usize>load<u32>(ctx, X_OUTPUT) + load<u32>(ctx, X_OUTPUT_CAPACITY);
  for (let i: u32 = 0; i < length && to <= end; i++) {
    let c: u32 = load<u8>(from + i);
    let escaped = byteBits(c, set);
    if (to + (escaped ? 3 : 1) > end) {
      to = end + 1;
    } else if (escaped) {
      store<u8>(to, 37);
      store<u8>(to, hexDigit(c >> 4), 1);
      store<u8>(to, hexDigit(c & 15), 2);
      to += 3;
    } else {
      store<u8>(to++, c);
    }
  }
  store<u32>(ctx, <u32>to, X_WRITE);
}

/** True if the normalised path is the raw one: nothing in it was decoded, merged or resolved. */
function pathIsRaw(ctx: usize): bool {
  return load<u32>(ctx, X_PATH) == load<u32>(ctx, X_TARGET);
}

/** Writes a piece of the normalised path: escaped again if it was decoded, else as the client sent it. */
export function writePath(ctx: usize, from: usize, length: u32): void {
  writeEscaped(ctx, from, length, pathIsRaw(ctx) ? MODE_BODY : MODE_PATH);
}

function writeValue(ctx: usize, mode: u32): void {
  writeEscaped(ctx, load<u32>(ctx, X_VALUE), load<u32>(ctx, X_VALUE_LENGTH), mode);
}

function writeGroup(ctx: usize, group: u32, mode: u32): void {
  if (!hasGroups(ctx)) return;
  let start = load<u32>(ctx + ((<usize>group) << 3), X_GROUPS);
  let end = load<u32>(ctx + ((<usize>group) << 3), X_GROUPS + 4);
  if (start == 0xffffffff || end < start) return;
  let from: usize = load<u32>(ctx, X_PATH) + start;
  if (mode == MODE_PATH) {
    writePath(ctx, from, end - start);
    return;
  }
  writeEscaped(ctx, from, end - start, mode);
}

/**
 * Writes a (valid) template of `length` bytes at `at`. `base` is the first value slot of its owner, `cookies` the slot of
 * the cookie header there.
 */
export function render(ctx: usize, at: usize, length: u32, mode: u32, base: u32, cookies: u32): void {
  let end = at + length;
  while (at < end) {
    let op: u32 = load<u8>(at);
    let argument: u32 = load<u8>(at, 1);
    let field: u32 = load<u16>(at, 2);
    at += 4;
    switch (op) {
      case PART_TEXT:
        writeEscaped(ctx, at, field, mode == MODE_PATH ? MODE_LOCATION : mode);
        break;
      case PART_GROUP:
        writeGroup(ctx, argument, mode);
        break;
      case PART_HEADER:
        slotValue(ctx, base + field);
        field = 0;
        writeValue(ctx, mode);
        break;
      case PART_COOKIE:
        cookieValue(ctx, base + cookies, at, field);
        writeValue(ctx, mode);
        break;
      case PART_ARGUMENT:
        argumentValue(ctx, at, field);
        writeValue(ctx, mode);
        break;
      case PART_VARIABLE: {
        let parts = argument == VAR_REQUEST ? REQUEST_PARTS : 1;
        for (let part: u32 = 0; part < parts; part++) {
          if (parts > 1) requestPart(ctx, base, part);
          else variableValue(ctx, argument, base);
          writeValue(ctx, mode);
        }
        break;
      }
    }
    if (op == PART_TEXT || op == PART_COOKIE || op == PART_ARGUMENT) at += pad4(field);
  }
}
