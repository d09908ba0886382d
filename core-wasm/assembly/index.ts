/**
 * The exports of the core. All values are 32-bit integers; text is bytes in memory, given by address and length. ABI.md
 * documents each. Nothing here traps, whatever it is given.
 */

import { pad4, S_COOKIE, SETTING_HEADER, TAG_ERROR_REDIRECT, TAG_ERROR_RETURN } from "./image/layout";
import { validateShard } from "./image/validate";
import { alloc as allocate, give, inMemory, isGiven, free as release, usedBytes } from "./memory/heap";
import { MODE_BODY, MODE_HEADER, MODE_LOCATION, overflowed, render } from "./request/render";
import { E_LIMIT, E_MEMORY, E_POINTER, E_STATE, OK } from "./status";
import {
  COUNTS_SIZE,
  D_RENDERED,
  D_SETTINGS,
  D_SETTINGS_LENGTH,
  D_SHARD,
  freeContext,
  growArray,
  isContext,
  keepTrace,
  X_COUNTS,
  X_SCRATCH,
  X_TABLE,
  X_WRITE,
} from "./table/context";
import { clearTable, loadPeers, unloadPeers } from "./table/peer-sets";
import { loadShard, unloadShard } from "./table/shards";
import {
  addContext,
  dropContext,
  freeTable,
  isTable,
  newTable,
  releaseDecision,
  T_CONTEXTS,
  T_PEER_COUNT,
  T_SCRATCH,
} from "./table/table";
import { U_PEERS } from "./table/upstream-record";
import { findUpstream } from "./table/upstreams";

export * from "./balance/exports";
export * from "./health/exports";
/** Deciding a request, and going on after NEED. See ABI.md, "Deciding a request". */
export { decide as route, goOn as resume } from "./match/evaluate";
export * from "./match/peer-exports";
export * from "./regex/exports";

/** Version of this interface: major * 256 + minor. A caller accepts its own major and any minor from its own on. */
export function abi_version(): u32 {
  return 0x0102;
}

/** Memory for the caller: at least `size` bytes, 16-byte aligned; 0 if it can't be had. May move the memory. */
export function alloc(size: u32): usize {
  return give(allocate(size));
}

/** Gives back what `alloc` or a compile gave: OK, or E_POINTER. */
export function free(pointer: usize): i32 {
  if (!isGiven(pointer, 0)) return E_POINTER;
  release(pointer);
  return OK;
}

/** Bytes in use by everything that lives in the core. */
export function memory_used(): u32 {
  return usedBytes();
}

/** A new, empty table; 0 if memory is short. */
export function table_new(): usize {
  return newTable();
}

/** Ends a table with all its contexts, shards and peer sets. */
export function table_free(table: usize): i32 {
  if (!isTable(table)) return E_POINTER;
  while (true) {
    let ctx: usize = load<u32>(table, T_CONTEXTS);
    if (!ctx) break;
    context_free(ctx);
  }
  clearTable(table);
  freeTable(table);
  return OK;
}

/** A context with buffers for `input` bytes of host and target, and for `output` bytes of text; 0 if memory is short. */
export function context_new(table: usize, input: u32, output: u32): usize {
  let ctx = addContext(table, input, output);
  if (!ctx) return 0;
  if (
    growArray(ctx + X_COUNTS, load<u32>(table, T_PEER_COUNT), COUNTS_SIZE) &&
    growArray(ctx + X_SCRATCH, load<u32>(table, T_SCRATCH), 1)
  ) {
    return ctx;
  }
  context_free(ctx);
  return 0;
}

/** Ends a context. */
export function context_free(ctx: usize): i32 {
  if (!isContext(ctx)) return E_POINTER;
  dropContext(load<u32>(ctx, X_TABLE), ctx);
  freeContext(ctx);
  return OK;
}

/** Switches the keeping of a trace on (1) or off (0). */
export function context_trace(ctx: usize, on: u32): i32 {
  if (!isContext(ctx)) return E_POINTER;
  return keepTrace(ctx, on != 0) ? OK : E_MEMORY;
}

/** Checks an image: OK, or what is wrong with it. With `seal` its checksum is written instead of compared. */
export function shard_validate(image: usize, length: u32, seal: u32): i32 {
  return inMemory(image, length) ? validateShard(image, length, seal != 0) : E_POINTER;
}

/** As shard_validate; then copies the image and puts the shard in place. */
export function shard_load(table: usize, image: usize, length: u32, seal: u32): i32 {
  return loadShard(table, image, length, seal != 0);
}

/** Takes the shard of a pattern (kind, host) out. */
export function shard_remove(table: usize, pattern: u32, host: usize, length: u32): i32 {
  return unloadShard(table, pattern, host, length);
}

/** Validates a peer set image, copies it and puts it in place under its key. */
export function peers_load(table: usize, image: usize, length: u32): i32 {
  return loadPeers(table, image, length);
}

/** Takes the peers of an upstream away. */
export function peers_remove(table: usize, key: usize, length: u32): i32 {
  return unloadPeers(table, key, length);
}

/** The peer set image of an upstream, 0 if it has none. Valid until the next change of the table. */
export function peers_find(table: usize, key: usize, length: u32): usize {
  if (!isTable(table) || !inMemory(key, length)) return 0;
  let record = findUpstream(table, key, length);
  return record ? <usize>load<u32>(record, U_PEERS) : 0;
}

/** Lets go of what the last decision refers to, so that replaced shards can be freed before the next request. */
export function release_decision(ctx: usize): i32 {
  if (!isContext(ctx)) return E_POINTER;
  releaseDecision(ctx);
  return OK;
}

/**
 * Fills in the value of setting `index` of the last decision (of a header, or the body or location of an error page); its
 * length, the text at the word "rendered text" of the context. Valid until the next call of `route`.
 */
export function render_setting(ctx: usize, index: u32): i32 {
  if (!isContext(ctx)) return E_POINTER;
  let image: usize = load<u32>(ctx, D_SHARD);
  let at: usize = load<u32>(ctx, D_SETTINGS);
  let end = at + load<u32>(ctx, D_SETTINGS_LENGTH);
  if (!image) return E_STATE;
  for (let i: u32 = 0; at < end; i++) {
    let size = load<u32>(at, 4);
    let tag: u32 = load<u8>(at);
    at += SETTING_HEADER;
    if (i < index) {
      at += size;
      continue;
    }
    let name = 4 + pad4(load<u32>(at));
    let start = load<u32>(ctx, X_WRITE);
    let mode = tag == TAG_ERROR_RETURN ? MODE_BODY : tag == TAG_ERROR_REDIRECT ? MODE_LOCATION : MODE_HEADER;
    render(ctx, at + name, size - name, mode, 0, load<u32>(image, S_COOKIE));
    if (overflowed(ctx)) return E_LIMIT;
    store<u32>(ctx, start, D_RENDERED);
    return <i32>(load<u32>(ctx, X_WRITE) - start);
  }
  return E_STATE;
}
