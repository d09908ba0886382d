/** Which shard answers for a host: the exact one, else the longest wildcard that covers it, else the one without host. */
import { PATTERN_ANY_HOST, PATTERN_ANY_LABELS, PATTERN_EXACT, PATTERN_ONE_LABEL, S_HEADER_SIZE } from "../image/layout";
import { hashBytes, sameWords } from "../memory/bytes";
import { X_HOST, X_HOST_LENGTH } from "../table/context";
import { H_HOST_LENGTH, H_PATTERN, H_ROUTES, imageOf } from "../table/shards";
import { T_ANY, T_MASK, T_SHARDS, T_WILDCARDS } from "../table/table";
import { traceHost, tracing } from "./trace";

const DOT: u32 = 46;

/**
 * Reads what is soon needed of a shard: the trie of a usual shard, and its upstreams. In a large table they are in no
 * cache; asked for at once they arrive together, instead of one after another as the decision gets to them. None of it
 * can be outside of the memory: all of it is before the routes.
 */
function touch(handle: usize): void {
  let routes: usize = load<u32>(handle, H_ROUTES);
  load<u32>(routes - 64);
  load<u32>(routes - 128);
  load<u32>(handle - 4);
}

/** The handle of the shard for `length` bytes at `host`, exact or wildcard by its hash; 0 if there is none. */
function lookUp(table: usize, hash: u32, exact: bool, host: usize, length: u32): usize {
  let slots: usize = load<u32>(table, T_SHARDS);
  let mask = load<u32>(table, T_MASK);
  let slot = hash & mask;
  while (true) {
    let at = slots + ((<usize>slot) << 3);
    let handle: usize = load<u32>(at, 4);
    if (!handle) return 0;
    if (load<u32>(at) == hash) {
      touch(handle);
      if (
        load<u32>(handle, H_HOST_LENGTH) == length &&
        (load<u32>(handle, H_PATTERN) == PATTERN_EXACT) == exact &&
        sameWords(imageOf(handle) + S_HEADER_SIZE, host, length)
      ) {
        return handle;
      }
    }
    slot = (slot + 1) & mask;
  }
}

/** The wildcard shard with the longest suffix of the host of the request; 0 if none covers it. */
function findWildcard(ctx: usize, table: usize): usize {
  let start = ctx + X_HOST;
  let length = load<u32>(ctx, X_HOST_LENGTH);
  let labels: u32 = 0;
  for (let i: u32 = 0; i < length; i++) {
    if (load<u8>(start + i) != <u8>DOT) continue;
    // At least one byte must stand for the asterisk.
    if (!i) return 0;
    labels++;
    let suffix = start + i + 1;
    let rest = length - i - 1;
    let handle = lookUp(table, ~hashBytes(suffix, rest), false, suffix, rest);
    if (!handle) continue;
    if (load<u32>(handle, H_PATTERN) == PATTERN_ONE_LABEL && labels > 1) continue;
    return handle;
  }
  return 0;
}

/** The exact shard for a host that `takePlainHost` has taken; 0 if there is none, which does not say that it is a host. */
export function findPlainHost(ctx: usize, table: usize, hash: u32, length: u32): usize {
  return lookUp(table, hash, true, ctx + X_HOST, length);
}

/**
 * The handle of the shard that answers for the host of the request; 0 if there is none. `notExact`: findPlainHost has not
 * found it.
 */
export function findShard(ctx: usize, table: usize, notExact: bool): usize {
  let length = load<u32>(ctx, X_HOST_LENGTH);
  if (length) {
    let host = ctx + X_HOST;
    let handle: usize = notExact ? 0 : lookUp(table, hashBytes(host, length), true, host, length);
    if (tracing(ctx)) traceHost(ctx, PATTERN_EXACT, handle);
    if (!handle && load<u32>(table, T_WILDCARDS)) {
      handle = findWildcard(ctx, table);
      if (tracing(ctx)) {
        traceHost(ctx, handle ? load<u32>(handle, H_PATTERN) : PATTERN_ANY_LABELS, handle);
      }
    }
    if (handle) return handle;
  }
  let any: usize = load<u32>(table, T_ANY);
  if (tracing(ctx)) traceHost(ctx, PATTERN_ANY_HOST, any);
  return any;
}
