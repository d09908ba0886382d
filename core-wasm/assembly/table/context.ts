/**
 * A context: everything one caller (a thread, a worker, a coroutine) needs to decide one request at a time. A table may
 * have many; they share nothing that matching writes to.
 *
 * Public words (u32), at these offsets from the address of the context:
 *    0 magic "NJCX"          32 action: 1 proxy, 2 redirect, 3 return      64 text length
 *    4 table                 36 status (redirect, return)                  68 content type (return)
 *    8 input address         40 route: index in its shard, or NONE         72 content type length
 *   12 input capacity        44 shard image, 0 if no host fits             76 settings
 *   16 output address        48 upstream record, 0 if none                 80 settings length
 *   20 output capacity       52 peer set image, 0 if none                  84 origin: 0 none, 1 route, 2 guard, 3 unmatched
 *   24 number of needs       56 peer index                                 88 rendered text (render)
 *   28 needs address         60 text: target, location or body             92 number of trace entries (explain)
 *   96 trace entries (explain)           204 guard: its index (origin 2)   100 position of the peer on its ring
 *  544 time, ms (the caller's)           548 marks of the choice             556 hash of the key
 * Need, 16 bytes: u32 id (below FACTS: a fact of the connection; else the address of a u32 length and a lower-case
 * header name), u32 address of the value, i32 its length or -1 if absent, u32 value slot. The caller writes address and
 * length.
 */
import { MAX_KEY_SLOTS, MAX_SLOTS } from "../image/layout";
import { alloc, free, isHandle } from "../memory/heap";

export const CONTEXT_MAGIC: u32 = 0x58434a4e;

export const X_TABLE: usize = 4;
export const X_INPUT: usize = 8;
export const X_INPUT_CAPACITY: usize = 12;
export const X_OUTPUT: usize = 16;
export const X_OUTPUT_CAPACITY: usize = 20;
export const X_NEED_COUNT: usize = 24;
export const X_NEEDS: usize = 28;
export const D_ACTION: usize = 32;
export const D_STATUS: usize = 36;
export const D_ROUTE: usize = 40;
export const D_SHARD: usize = 44;
export const D_UPSTREAM: usize = 48;
export const D_PEERS: usize = 52;
export const D_PEER: usize = 56;
export const D_TEXT: usize = 60;
export const D_TEXT_LENGTH: usize = 64;
export const D_TYPE: usize = 68;
export const D_TYPE_LENGTH: usize = 72;
export const D_SETTINGS: usize = 76;
export const D_SETTINGS_LENGTH: usize = 80;
export const D_ORIGIN: usize = 84;
export const D_RENDERED: usize = 88;
export const X_TRACE_COUNT: usize = 92;

export const X_TRACE: usize = 96;
export const D_POSITION: usize = 100;

/** Private words. */
export const X_FLAGS: usize = 104;
export const X_RANDOM: usize = 108;
export const X_HOST_LENGTH: usize = 112;
export const X_PATH: usize = 116;
export const X_PATH_LENGTH: usize = 120;
export const X_TARGET: usize = 124;
export const X_TARGET_LENGTH: usize = 128;
export const X_QUERY: usize = 132;
export const X_QUERY_LENGTH: usize = 136;
/** The shard handle in use (0: none) and the candidate at hand. */
export const X_HANDLE: usize = 140;
export const X_CANDIDATE: usize = 144;
export const X_PREFIX: usize = 148;
export const X_ACTION: usize = 152;
/** Where the next rendered byte goes; above the end when the output has run full. */
export const X_WRITE: usize = 156;
export const X_VALUE: usize = 160;
export const X_VALUE_LENGTH: usize = 164;
/** Whether the groups below are those of the route at hand; the values are in request/groups.ts. */
export const X_CAPTURED: usize = 168;
export const X_SCRATCH: usize = 180;
export const X_DECODED: usize = 188;
export const X_NEXT_CONTEXT: usize = 192;
export const X_STAGE: usize = 196;
/** X_TRACED and X_GUARD are cleared as one. */
export const X_TRACED: usize = 200;
export const X_GUARD: usize = 204;
export const X_EPOCH: usize = 552;
/** Time in milliseconds, of any origin, wrapping: the caller writes it before a call that picks a peer or ends a try. */
export const X_NOW: usize = 544;
export const D_MARKS: usize = 548;
export const D_HASH: usize = 556;
/** All peers that could be used have as many requests under way as they may. */
export const MARK_BUSY: u32 = 1;
/** The key was not empty, and D_HASH is its hash. */
export const MARK_HASHED: u32 = 2;
/** The client is to be given the session cookie of the peer. */
export const MARK_SESSION: u32 = 4;
export const X_GROUPS: usize = 208; // to 288
/** Normalised host: at most 255 bytes, followed by zeros to the next multiple of 8. */
export const X_HOST: usize = 288;
/** Value slots: u32 epoch of the request that filled it, u32 address, i32 length. The last ones are those of hash keys. */
export const X_SLOTS: usize = 560;
export const SLOT_SIZE: u32 = 12;
const X_NEED_LIST: usize = 560 + 160 * 12;
/** Counts by peer slot (table/peer-slots.ts), and how many there is room for. */
export const X_COUNTS: usize = 560 + 160 * 12 + 128 * 16;
/** While a peer is picked: tokens of the peers that were tried, and what is not held against others. */
export const X_TRIED: usize = X_COUNTS + 8;
export const X_TRIED_COUNT: usize = X_COUNTS + 12;
export const X_FORGIVEN: usize = X_COUNTS + 16;
/** And the cursor of the upstream. */
export const X_CURSOR: usize = X_COUNTS + 20;
const CONTEXT_SIZE: u32 = 560 + 160 * 12 + 128 * 16 + 32;
export const NEED_SIZE: u32 = 16;

/** Slots of hash keys begin here. */
export const KEY_SLOTS: u32 = MAX_SLOTS;
/** All slots; X_NEED_LIST leaves room for as many. */
export const ALL_SLOTS: u32 = MAX_SLOTS + MAX_KEY_SLOTS;

/** Bytes of the counts of a peer slot. */
export const COUNTS_SIZE: u32 = 24;

/** Reads past the end of input by whole words stay inside the buffers. */
const SLACK: u32 = 16;
export const LARGEST_BUFFER: u32 = 1 << 24;

/** Trace entry, 20 bytes: u32 kind, u32 result, u32 subject, u32 value address, u32 value length. */
export const TRACE_SIZE: u32 = 20;
export const TRACE_CAPACITY: u32 = 1024;

/** A context with buffers of these sizes; 0 if memory is short. Not yet known to its table. */
export function newContext(table: usize, input: u32, output: u32): usize {
  if (input > LARGEST_BUFFER || output > LARGEST_BUFFER) return 0;
  // Behind it: input, decoded path, output.
  let ctx = alloc(CONTEXT_SIZE + input * 2 + output + SLACK * 3);
  if (!ctx) return 0;
  let buffers = <u32>ctx + CONTEXT_SIZE;
  memory.fill(ctx, 0, CONTEXT_SIZE);
  store<u32>(ctx, CONTEXT_MAGIC);
  store<u32>(ctx, <u32>table, X_TABLE);
  store<u32>(ctx, buffers, X_INPUT);
  store<u32>(ctx, input, X_INPUT_CAPACITY);
  store<u32>(ctx, buffers + input + SLACK, X_DECODED);
  store<u32>(ctx, buffers + (input + SLACK) * 2, X_OUTPUT);
  store<u32>(ctx, output, X_OUTPUT_CAPACITY);
  store<u32>(ctx, <u32>(ctx + X_NEED_LIST), X_NEEDS);
  return ctx;
}

/** Frees a context that its table no longer knows. */
export function freeContext(ctx: usize): void {
  free(load<u32>(ctx, X_COUNTS));
  free(load<u32>(ctx, X_SCRATCH));
  free(load<u32>(ctx, X_TRACE));
  free(ctx);
}

/** True if `ctx` is a context. Any number may be asked about. */
export function isContext(ctx: usize): bool {
  return isHandle(ctx, CONTEXT_SIZE, CONTEXT_MAGIC);
}

/** Begins (or ends) the keeping of traces. False if memory is short. */
export function keepTrace(ctx: usize, on: bool): bool {
  let trace: usize = load<u32>(ctx, X_TRACE);
  if ((trace != 0) == on) return true;
  free(trace);
  trace = on ? alloc(TRACE_SIZE * TRACE_CAPACITY) : 0;
  store<u32>(ctx, <u32>trace, X_TRACE);
  store<u32>(ctx, 0, X_TRACE_COUNT);
  return !on || trace != 0;
}

/**
 * Makes room for `count` elements of `size` bytes in an array whose address and capacity are the two words at `field`. Those
 * there keep their values, new ones are zero. False if memory is short.
 */
export function growArray(field: usize, count: u32, size: u32): bool {
  let have = load<u32>(field, 4);
  if (count <= have) return true;
  let wanted = max(count, max(have << 1, 16));
  let moved = alloc(wanted * size);
  if (!moved) return false;
  memory.fill(moved, 0, wanted * size);
  memory.copy(moved, load<u32>(field), have * size);
  free(load<u32>(field));
  store<u32>(field, <u32>moved);
  store<u32>(field, wanted, 4);
  return true;
}
