/** Values of a request: headers, cookies, arguments and variables. Each is left in X_VALUE and X_VALUE_LENGTH. */
import {
  FACT_ADDRESS,
  FACT_METHOD,
  FACT_PORT,
  FACT_PROTOCOL,
  VAR_ARGS,
  VAR_HOST,
  VAR_HTTP2,
  VAR_HTTPS,
  VAR_QUERY_STRING,
  VAR_REMOTE_ADDR,
  VAR_REMOTE_PORT,
  VAR_REQUEST,
  VAR_REQUEST_METHOD,
  VAR_REQUEST_URI,
  VAR_SCHEME,
  VAR_SERVER_PROTOCOL,
  VAR_URI,
} from "../image/layout";
import { lower, sameFolded } from "../memory/bytes";
import {
  SLOT_SIZE,
  X_EPOCH,
  X_FLAGS,
  X_HOST,
  X_HOST_LENGTH,
  X_OUTPUT,
  X_OUTPUT_CAPACITY,
  X_PATH,
  X_PATH_LENGTH,
  X_QUERY,
  X_QUERY_LENGTH,
  X_SLOTS,
  X_TARGET,
  X_TARGET_LENGTH,
  X_VALUE,
  X_VALUE_LENGTH,
  X_WRITE,
} from "../table/context";

/** Flag of a request that came over TLS. */
export const REQUEST_HTTPS: u32 = 1;

/** "https" then "on" then "h2". */
const WORDS: usize = memory.data<u8>([104, 116, 116, 112, 115, 111, 110, 104, 50]);

function setValue(ctx: usize, at: usize, length: u32): void {
  store<u32>(ctx, <u32>at, X_VALUE);
  store<u32>(ctx, length, X_VALUE_LENGTH);
}

/** True if the caller has filled this slot in for the request at hand. */
export function isFilled(ctx: usize, slot: u32): bool {
  return load<u32>(ctx + slot * SLOT_SIZE, X_SLOTS) == load<u32>(ctx, X_EPOCH);
}

/** The value of a slot; absent ones and those never asked for are empty. */
export function slotValue(ctx: usize, slot: u32): void {
  let at = ctx + slot * SLOT_SIZE;
  let length = load<i32>(at, X_SLOTS + 8);
  if (load<u32>(at, X_SLOTS) != load<u32>(ctx, X_EPOCH) || length < 0) setValue(ctx, 0, 0);
  else setValue(ctx, load<u32>(at, X_SLOTS + 4), length);
}

/**
 * The value of a cookie in the header of `slot`, found as NGINX does (ngx_http_parse_multi_header_lines): the name at the
 * start of the header or after a semicolon or comma, letter case aside, then `=`; the value runs to the next semicolon.
 */
export function cookieValue(ctx: usize, slot: u32, name: usize, length: u32): void {
  slotValue(ctx, slot);
  let at: usize = load<u32>(ctx, X_VALUE);
  let end = at + load<u32>(ctx, X_VALUE_LENGTH);
  let first = lower(load<u8>(name));
  while (at + length < end) {
    if (lower(load<u8>(at)) == first && sameFolded(at, name, length)) {
      let p = at + length;
      while (p < end && load<u8>(p) == 32) p++;
      if (p < end && load<u8>(p) == 61) {
        p++;
        while (p < end && load<u8>(p) == 32) p++;
        let start = p;
        while (p < end && load<u8>(p) != 59) p++;
        setValue(ctx, start, <u32>(p - start));
        return;
      }
    }
    while (at < end) {
      let c = load<u8>(at++);
      if (c == 59 || c == 44) break;
    }
    while (at < end && load<u8>(at) == 32) at++;
  }
  setValue(ctx, 0, 0);
}

/** The first argument of this name in the query, not decoded, as `$arg_name` (ngx_http_arg). */
export function argumentValue(ctx: usize, name: usize, length: u32): void {
  let at: usize = load<u32>(ctx, X_QUERY);
  let end = at + load<u32>(ctx, X_QUERY_LENGTH);
  while (at < end) {
    if (<u32>(end - at) > length && load<u8>(at + length) == 61 && sameFolded(at, name, length)) {
      let start = at + length + 1;
      let p = start;
      while (p < end && load<u8>(p) != 38) p++;
      setValue(ctx, start, <u32>(p - start));
      return;
    }
    while (at < end && load<u8>(at++) != 38) {}
  }
  setValue(ctx, 0, 0);
}

/** `$request`: method, target and protocol with blanks between, put together in the free part of the output. */
function requestLine(ctx: usize, base: u32): void {
  let out: usize = load<u32>(ctx, X_WRITE);
  let end = <usize>load<u32>(ctx, X_OUTPUT) + load<u32>(ctx, X_OUTPUT_CAPACITY);
  let to = out;
  for (let part = 0; part < 3; part++) {
    if (part == 1) setValue(ctx, load<u32>(ctx, X_TARGET), load<u32>(ctx, X_TARGET_LENGTH));
    else slotValue(ctx, base + (part ? FACT_PROTOCOL : FACT_METHOD));
    let length = load<u32>(ctx, X_VALUE_LENGTH);
    if (<u64>to + length + 1 > <u64>end) break;
    memory.copy(to, load<u32>(ctx, X_VALUE), length);
    to += length;
    if (part < 2) store<u8>(to++, 32);
  }
  setValue(ctx, out, <u32>(to - out));
}

/** The value of a variable. `base` is the first value slot of whoever asks (the shard, or a hash key). */
export function variableValue(ctx: usize, variable: u32, base: u32): void {
  let https = (load<u32>(ctx, X_FLAGS) & REQUEST_HTTPS) != 0;
  switch (variable) {
    case VAR_ARGS:
    case VAR_QUERY_STRING:
      setValue(ctx, load<u32>(ctx, X_QUERY), load<u32>(ctx, X_QUERY_LENGTH));
      break;
    case VAR_HOST:
      setValue(ctx, ctx + X_HOST, load<u32>(ctx, X_HOST_LENGTH));
      break;
    case VAR_HTTP2: {
      slotValue(ctx, base + FACT_PROTOCOL);
      let two = load<u32>(ctx, X_VALUE_LENGTH) > 5 && load<u8>(load<u32>(ctx, X_VALUE) + 5) == 50;
      setValue(ctx, WORDS + 7, two ? 2 : 0);
      break;
    }
    case VAR_HTTPS:
      setValue(ctx, WORDS + 5, https ? 2 : 0);
      break;
    case VAR_REMOTE_ADDR:
      slotValue(ctx, base + FACT_ADDRESS);
      break;
    case VAR_REMOTE_PORT:
      slotValue(ctx, base + FACT_PORT);
      break;
    case VAR_REQUEST:
      requestLine(ctx, base);
      break;
    case VAR_REQUEST_METHOD:
      slotValue(ctx, base + FACT_METHOD);
      break;
    case VAR_REQUEST_URI:
      setValue(ctx, load<u32>(ctx, X_TARGET), load<u32>(ctx, X_TARGET_LENGTH));
      break;
    case VAR_SCHEME:
      setValue(ctx, WORDS, https ? 5 : 4);
      break;
    case VAR_SERVER_PROTOCOL:
      slotValue(ctx, base + FACT_PROTOCOL);
      break;
    case VAR_URI:
      setValue(ctx, load<u32>(ctx, X_PATH), load<u32>(ctx, X_PATH_LENGTH));
      break;
    default:
      setValue(ctx, 0, 0);
  }
}
