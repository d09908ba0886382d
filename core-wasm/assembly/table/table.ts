/**
 * A table: the shards and upstreams of one process or worker. Shards and peer sets are replaced one by one; what was
 * replaced is freed as soon as no context holds a decision made with it.
 *
 * Table, 96 bytes: 0 magic "NJTB" | 4 slot array of shards (table/slot-array.ts) | 16 shard of rules without host
 * | 20 default shard | 24 first context | 28 retired handles | 32 slot array of upstreams | 44 wildcard shards
 * | 48 zero | 52 largest regex scratch | 56 peer slots (table/peer-slots.ts) | 60 room for them | 64 given out so far
 * | 68 first free one + 1 | 72 number of free ones | 80 a free slot: the arrays before they have entries
 */
import { alloc, free, isHandle } from "../memory/heap";
import {
  D_ACTION,
  D_PEERS,
  D_SHARD,
  growArray,
  newContext,
  X_HANDLE,
  X_NEED_COUNT,
  X_NEXT_CONTEXT,
  X_SCRATCH,
} from "./context";
import { imageOf } from "./shards";

const TABLE_MAGIC: u32 = 0x42544a4e;
const TABLE_SIZE: u32 = 96;
export const T_SHARDS: usize = 4;
export const T_MASK: usize = 8;
export const T_ANY: usize = 16;
export const T_DEFAULT: usize = 20;
export const T_CONTEXTS: usize = 24;
export const T_RETIRED: usize = 28;
export const T_UPSTREAMS: usize = 32;
export const T_WILDCARDS: usize = 44;
export const T_SCRATCH: usize = 52;
export const T_PEERS: usize = 56;
export const T_PEER_COUNT: usize = 64;
export const T_FREE_PEER: usize = 68;
export const T_FREE_PEERS: usize = 72;
const T_FREE_SLOT: usize = 80;

/** An empty table; 0 if memory is short. */
export function newTable(): usize {
  let table = alloc(TABLE_SIZE);
  if (!table) return 0;
  memory.fill(table, 0, TABLE_SIZE);
  store<u32>(table, TABLE_MAGIC);
  store<u32>(table, <u32>(table + T_FREE_SLOT), T_SHARDS);
  store<u32>(table, <u32>(table + T_FREE_SLOT), T_UPSTREAMS);
  return table;
}

export function isTable(table: usize): bool {
  return isHandle(table, TABLE_SIZE, TABLE_MAGIC);
}

/** True if a context may still read `image` (a shard or a peer set). */
export function isPinned(table: usize, image: usize): bool {
  for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
    if (load<u32>(ctx, D_SHARD) == <u32>image || load<u32>(ctx, D_PEERS) == <u32>image) return true;
    if (imageOf(load<u32>(ctx, X_HANDLE)) == image) return true;
  }
  return false;
}

/** Makes room in an array of every context (see growArray), whose address and capacity are the two words at `field`. */
export function growContexts(table: usize, field: usize, count: u32, size: u32): bool {
  for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
    if (!growArray(ctx + field, count, size)) return false;
  }
  return true;
}

/** Lets every context have the scratch that the regexes of an image need. */
export function growAllScratch(table: usize, size: u32): bool {
  if (size <= load<u32>(table, T_SCRATCH)) return true;
  if (!growContexts(table, X_SCRATCH, size, 1)) return false;
  store<u32>(table, size, T_SCRATCH);
  return true;
}

/** A context of this table; 0 if memory is short or the table is none. */
export function addContext(table: usize, input: u32, output: u32): usize {
  if (!isTable(table)) return 0;
  let ctx = newContext(table, input, output);
  if (!ctx) return 0;
  store<u32>(ctx, load<u32>(table, T_CONTEXTS), X_NEXT_CONTEXT);
  store<u32>(table, <u32>ctx, T_CONTEXTS);
  return ctx;
}

/** Takes a context off the list of its table. */
export function dropContext(table: usize, ctx: usize): void {
  let link = table + T_CONTEXTS;
  while (load<u32>(link) && load<u32>(link) != <u32>ctx) link = <usize>load<u32>(link) + X_NEXT_CONTEXT;
  if (load<u32>(link)) store<u32>(link, load<u32>(ctx, X_NEXT_CONTEXT));
}

/** Lets go of what the last decision of a context refers to. */
export function releaseDecision(ctx: usize): void {
  store<u32>(ctx, 0, D_ACTION);
  store<u32>(ctx, 0, D_SHARD);
  store<u32>(ctx, 0, D_PEERS);
  store<u32>(ctx, 0, X_HANDLE);
  store<u32>(ctx, 0, X_NEED_COUNT);
}

/** Ends a table that has nothing in it any more. */
export function freeTable(table: usize): void {
  free(load<u32>(table, T_SHARDS));
  free(load<u32>(table, T_UPSTREAMS));
  free(load<u32>(table, T_PEERS));
  free(table);
}
