/**
 * A table: the shards and upstreams of one process or worker. Shards and peer sets are replaced one by one; what was
 * replaced is freed as soon as no context holds a decision made with it.
 *
 * Table, 96 bytes: 0 magic "NJTB" | 4 slot array of shards | 8 slot mask | 12 shards in the array | 16 shard of rules
 * without host | 20 default shard | 24 first context | 28 retired handles | 32 slot array of upstreams | 36 slot mask
 * | 40 upstreams | 44 cursor indices given out | 48 first free cursor index list | 52 largest regex scratch
 * | 56 generation | 60 wildcard shards | 64 retired peer sets | 68 peer slots | 72 room for peer slots | 76 peer slots given
 * out so far | 80 first free one + 1 | 84 number of free ones
 * A slot array holds pairs of u32 hash and u32 address; address 0 is free.
 */
import { alloc, free, isAllocated } from "../memory/heap";
import { D_ACTION, D_PEERS, D_SHARD, growScratch, newContext, X_HANDLE, X_NEED_COUNT, X_NEXT_CONTEXT } from "./context";
import { HANDLE_SIZE } from "./shards";

const TABLE_MAGIC: u32 = 0x42544a4e;
const TABLE_SIZE: u32 = 96;
export const T_SHARDS: usize = 4;
export const T_MASK: usize = 8;
export const T_SHARD_COUNT: usize = 12;
export const T_ANY: usize = 16;
export const T_DEFAULT: usize = 20;
export const T_CONTEXTS: usize = 24;
export const T_RETIRED: usize = 28;
export const T_UPSTREAMS: usize = 32;
export const T_UPSTREAM_MASK: usize = 36;
export const T_UPSTREAM_COUNT: usize = 40;
export const T_CURSORS: usize = 44;
export const T_FREE_CURSORS: usize = 48;
export const T_SCRATCH: usize = 52;
export const T_GENERATION: usize = 56;
export const T_WILDCARDS: usize = 60;
export const T_RETIRED_PEERS: usize = 64;
export const T_PEERS: usize = 68;
export const T_PEER_CAPACITY: usize = 72;
export const T_PEER_COUNT: usize = 76;
export const T_FREE_PEER: usize = 80;
export const T_FREE_PEERS: usize = 84;
const FIRST_SLOTS: u32 = 16;
/** An empty table; 0 if memory is short. */
export function newTable(): usize {
  let table = alloc(TABLE_SIZE);
  let shards = alloc(FIRST_SLOTS << 3);
  let upstreams = alloc(FIRST_SLOTS << 3);
  if (!table || !shards || !upstreams) {
    free(table);
    free(shards);
    free(upstreams);
    return 0;
  }
  memory.fill(table, 0, TABLE_SIZE);
  memory.fill(shards, 0, FIRST_SLOTS << 3);
  memory.fill(upstreams, 0, FIRST_SLOTS << 3);
  store<u32>(table, TABLE_MAGIC);
  store<u32>(table, <u32>shards, T_SHARDS);
  store<u32>(table, FIRST_SLOTS - 1, T_MASK);
  store<u32>(table, <u32>upstreams, T_UPSTREAMS);
  store<u32>(table, FIRST_SLOTS - 1, T_UPSTREAM_MASK);
  return table;
}

export function isTable(table: usize): bool {
  return isAllocated(table, TABLE_SIZE) && load<u32>(table) == TABLE_MAGIC;
}

/** Doubles a slot array when it is more than half full. Returns false if memory is short. */
export function roomForOne(table: usize, array: usize, mask: usize, count: u32): bool {
  let slots = load<u32>(table + mask) + 1;
  if ((count + 1) << 1 <= slots) return true;
  let old: usize = load<u32>(table + array);
  let size = slots << 4;
  let grown = alloc(size);
  if (!grown) return false;
  memory.fill(grown, 0, size);
  let newMask = (slots << 1) - 1;
  for (let i: u32 = 0; i < slots; i++) {
    let pair = load<u64>(old + ((<usize>i) << 3));
    if (!(pair >> 32)) continue;
    let slot = <u32>pair & newMask;
    while (load<u32>(grown + ((<usize>slot) << 3), 4)) slot = (slot + 1) & newMask;
    store<u64>(grown + ((<usize>slot) << 3), pair);
  }
  free(old);
  store<u32>(table + array, <u32>grown);
  store<u32>(table + mask, newMask);
  return true;
}

/** Empties a slot and closes the gap, so that no later entry of the run is cut off (Knuth 6.4, algorithm R). */
export function closeSlot(slots: usize, mask: u32, hole: u32): void {
  let i = hole;
  while (true) {
    i = (i + 1) & mask;
    let pair = load<u64>(slots + ((<usize>i) << 3));
    if (!(pair >> 32)) break;
    let home = <u32>pair & mask;
    // The entry may move to the hole unless its home lies cyclically in (hole, i].
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      store<u64>(slots + ((<usize>hole) << 3), pair);
      hole = i;
    }
  }
  store<u64>(slots + ((<usize>hole) << 3), 0);
}

/** True if a context may still read `image` (a shard or a peer set). */
export function isPinned(table: usize, image: usize): bool {
  for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
    if (load<u32>(ctx, D_SHARD) == <u32>image || load<u32>(ctx, D_PEERS) == <u32>image) return true;
    let handle = load<u32>(ctx, X_HANDLE);
    if (handle && handle + HANDLE_SIZE == <u32>image) return true;
  }
  return false;
}

/** Lets every context have the scratch that the regexes of an image need. */
export function growAllScratch(table: usize, size: u32): bool {
  if (size <= load<u32>(table, T_SCRATCH)) return true;
  for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
    if (!growScratch(ctx, size)) return false;
  }
  store<u32>(table, size, T_SCRATCH);
  return true;
}

/** The scratch that a new context of this table begins with. */
export function scratchSize(table: usize): u32 {
  return load<u32>(table, T_SCRATCH);
}

export function changed(table: usize): void {
  store<u32>(table, load<u32>(table, T_GENERATION) + 1, T_GENERATION);
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
  store<u32>(table, 0);
  free(load<u32>(table, T_UPSTREAMS));
  free(load<u32>(table, T_FREE_CURSORS));
  free(load<u32>(table, T_PEERS));
  free(table);
}
