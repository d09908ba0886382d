/** The trace of a decision: which rules were looked at, in order. Kept only while a request is being explained. */

import { TRACE_CAPACITY, TRACE_SIZE, X_TRACE, X_TRACE_COUNT, X_VALUE, X_VALUE_LENGTH } from "../table/context";
import { imageOf } from "../table/shards";

/** Kinds of entries. Result 1: taken, holds or covers; 0: not. Subject as stated. */
const TRACE_HOST: u32 = 1; // pattern kind tried; as the value, the shard that the entries after it are about
export const TRACE_GUARD: u32 = 2; // index of the guard
export const TRACE_ROUTE: u32 = 3; // index of the route: covers the path or not
export const TRACE_MATCH: u32 = 4; // index of the match within its route
export const TRACE_CONDITION: u32 = 5; // address of the condition; the value that was compared
export const TRACE_SPLIT: u32 = 6; // index of the entry that was chosen
export const TRACE_FALLS: u32 = 7; // index of the route that has no outcome of its own
export const TRACE_UNMATCHED: u32 = 8; // 0 shard, 1 default shard, 2 nothing
export const TRACE_STOPPED: u32 = 9; // index of the regex route that a ^~ prefix keeps from being tried

export function tracing(ctx: usize): bool {
  return load<u32>(ctx, X_TRACE) != 0;
}

function put(ctx: usize, kind: u32, subject: u32, result: u32, value: u32, length: u32): void {
  let trace: usize = load<u32>(ctx, X_TRACE);
  let count = load<u32>(ctx, X_TRACE_COUNT);
  if (!trace || count == TRACE_CAPACITY) return;
  let entry = trace + count * TRACE_SIZE;
  store<u32>(entry, kind);
  store<u32>(entry, result, 4);
  store<u32>(entry, subject, 8);
  store<u32>(entry, value, 12);
  store<u32>(entry, length, 16);
  store<u32>(ctx, count + 1, X_TRACE_COUNT);
}

export function trace(ctx: usize, kind: u32, subject: u32, result: bool): void {
  put(ctx, kind, subject, result ? 1 : 0, 0, 0);
}

/** A kind of pattern that was tried for the host, with the handle that was found, or 0. */
export function traceHost(ctx: usize, pattern: u32, handle: usize): void {
  put(ctx, TRACE_HOST, pattern, handle ? 1 : 0, handle ? <u32>imageOf(handle) : 0, 0);
}

/** As trace, with the value that is at hand. */
export function traceValue(ctx: usize, kind: u32, subject: u32, result: bool): void {
  put(ctx, kind, subject, result ? 1 : 0, load<u32>(ctx, X_VALUE), load<u32>(ctx, X_VALUE_LENGTH));
}
