/** Upstreams by key. The record: table/upstream-record.ts. */
import { I_KEY, I_KEY_LENGTH, I_TEMPLATE, I_TEMPLATE_LENGTH, peersOf } from "../balance/peer-set-layout";
import { peerSetValidate } from "../balance/peer-set-validate";
import { validateKey } from "../image/validate";
import { hashBytes, sameBytes } from "../memory/bytes";
import { alloc, free, inMemory } from "../memory/heap";
import { E_MEMORY, E_POINTER, OK } from "../status";
import { CURSOR_SIZE, cursorAt, growCursors, X_NEXT_CONTEXT } from "./context";
import { loadedSize, moveSlots, noteTrouble, reserveSlots } from "./peer-slots";
import {
  closeSlot,
  isPinned,
  isTable,
  roomForOne,
  T_CONTEXTS,
  T_CURSORS,
  T_FREE_CURSORS,
  T_GENERATION,
  T_RETIRED_PEERS,
  T_UPSTREAM_COUNT,
  T_UPSTREAM_MASK,
  T_UPSTREAMS,
} from "./table";
import {
  RECORD_MAGIC,
  U_CURSOR,
  U_HASH,
  U_KEY,
  U_KEY_LENGTH,
  U_PEERS,
  U_PEERS_SIZE,
  U_REFERENCES,
} from "./upstream-record";

/** Retired peer sets are kept in blocks of their own: u32 next, then the image 16 bytes on. */
const RETIRED_HEADER: u32 = 16;

function findRecord(table: usize, hash: u32, key: usize, length: u32): u32 {
  let slots: usize = load<u32>(table, T_UPSTREAMS);
  let mask = load<u32>(table, T_UPSTREAM_MASK);
  let slot = hash & mask;
  while (true) {
    let record: usize = load<u32>(slots + ((<usize>slot) << 3), 4);
    if (!record) return slot;
    if (
      load<u32>(record, U_HASH) == hash &&
      load<u32>(record, U_KEY_LENGTH) == length &&
      sameBytes(record + U_KEY, key, length)
    ) {
      return slot;
    }
    slot = (slot + 1) & mask;
  }
}

/** The record of a key, or 0. */
export function findUpstream(table: usize, key: usize, length: u32): usize {
  let slot = findRecord(table, hashBytes(key, length), key, length);
  return load<u32>(<usize>load<u32>(table, T_UPSTREAMS) + ((<usize>slot) << 3), 4);
}

/**
 * A cursor index that no live record has. Free ones form a list through the words of an array that is as long as the
 * number given out: word i holds the next free index + 1.
 */
function takeCursor(table: usize): i32 {
  let list: usize = load<u32>(table, T_FREE_CURSORS);
  // Word 0 of the list: first free index + 1. Word 1: capacity.
  if (list && load<u32>(list)) {
    let index = load<u32>(list) - 1;
    store<u32>(list, load<u32>(list + 8 + ((<usize>index) << 2)));
    for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
      memory.fill(cursorAt(ctx, index), 0, CURSOR_SIZE);
    }
    return <i32>index;
  }
  let index = load<u32>(table, T_CURSORS);
  let capacity = list ? load<u32>(list, 4) : 0;
  if (index >= capacity) {
    let wanted = max(16, capacity << 1);
    let grown = alloc(8 + (wanted << 2));
    if (!grown) return -1;
    store<u32>(grown, 0);
    store<u32>(grown, wanted, 4);
    free(list);
    store<u32>(table, <u32>grown, T_FREE_CURSORS);
  }
  for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
    if (!growCursors(ctx, index + 1)) return -1;
  }
  store<u32>(table, index + 1, T_CURSORS);
  return <i32>index;
}

function giveCursor(table: usize, index: u32): void {
  let list: usize = load<u32>(table, T_FREE_CURSORS);
  store<u32>(list + 8 + ((<usize>index) << 2), load<u32>(list));
  store<u32>(list, index + 1);
}

/** The record of a key with one more reference, made if there is none; 0 if memory is short. */
export function upstreamFor(table: usize, key: usize, length: u32): usize {
  let record = recordFor(table, key, length);
  if (record) store<u32>(record, load<u32>(record, U_REFERENCES) + 1, U_REFERENCES);
  return record;
}

function recordFor(table: usize, key: usize, length: u32): usize {
  if (!roomForOne(table, T_UPSTREAMS, T_UPSTREAM_MASK, load<u32>(table, T_UPSTREAM_COUNT))) return 0;
  let hash = hashBytes(key, length);
  let slot = findRecord(table, hash, key, length);
  let slots: usize = load<u32>(table, T_UPSTREAMS);
  let found: usize = load<u32>(slots + ((<usize>slot) << 3), 4);
  if (found) return found;
  let record = alloc(<u32>U_KEY + length);
  if (!record) return 0;
  let cursor = takeCursor(table);
  if (cursor < 0) {
    free(record);
    return 0;
  }
  memory.fill(record, 0, U_KEY);
  store<u32>(record, RECORD_MAGIC);
  store<u32>(record, hash, U_HASH);
  store<u32>(record, length, U_KEY_LENGTH);
  store<u32>(record, <u32>cursor, U_CURSOR);
  memory.copy(record + U_KEY, key, length);
  store<u32>(slots + ((<usize>slot) << 3), hash);
  store<u32>(slots + ((<usize>slot) << 3), <u32>record, 4);
  store<u32>(table, load<u32>(table, T_UPSTREAM_COUNT) + 1, T_UPSTREAM_COUNT);
  return record;
}

/** Frees the retired peer sets that no context reads any more. */
function sweep(table: usize): void {
  let link = table + T_RETIRED_PEERS;
  while (true) {
    let block: usize = load<u32>(link);
    if (!block) break;
    if (isPinned(table, block + RETIRED_HEADER)) {
      link = block;
      continue;
    }
    store<u32>(link, load<u32>(block));
    free(block);
  }
}

function retirePeers(table: usize, record: usize): void {
  let image = load<u32>(record, U_PEERS);
  if (!image) return;
  let block: usize = image - RETIRED_HEADER;
  store<u32>(block, load<u32>(table, T_RETIRED_PEERS));
  store<u32>(table, <u32>block, T_RETIRED_PEERS);
  store<u32>(record, 0, U_PEERS);
  store<u32>(record, 0, U_PEERS_SIZE);
}

/** Frees a record that nothing refers to. A decision that names it also holds the shard, which refers to it. */
function dropIfUnused(table: usize, record: usize): void {
  if (load<u32>(record, U_REFERENCES) || load<u32>(record, U_PEERS)) return;
  let slot = findRecord(table, load<u32>(record, U_HASH), record + U_KEY, load<u32>(record, U_KEY_LENGTH));
  closeSlot(<usize>load<u32>(table, T_UPSTREAMS), load<u32>(table, T_UPSTREAM_MASK), slot);
  store<u32>(table, load<u32>(table, T_UPSTREAM_COUNT) - 1, T_UPSTREAM_COUNT);
  giveCursor(table, load<u32>(record, U_CURSOR));
  store<u32>(record, 0);
  free(record);
}

/** Takes back one reference of a shard. */
export function releaseUpstream(table: usize, record: usize): void {
  store<u32>(record, load<u32>(record, U_REFERENCES) - 1, U_REFERENCES);
  dropIfUnused(table, record);
}

/** Validates a peer set image, copies it and puts it in the place of the one that its upstream has. */
export function loadPeers(table: usize, image: usize, length: u32): i32 {
  if (!isTable(table) || !inMemory(image, length)) return E_POINTER;
  let status = peerSetValidate(image, length);
  if (status != OK) return status;
  status = validateKey(image + load<u32>(image, I_TEMPLATE), load<u32>(image, I_TEMPLATE_LENGTH));
  if (status != OK) return status;
  let block = alloc(RETIRED_HEADER + loadedSize(image));
  if (!block) return E_MEMORY;
  memory.copy(block + RETIRED_HEADER, image, length);
  let copy = block + RETIRED_HEADER;
  let record = recordFor(table, copy + load<u32>(copy, I_KEY), load<u32>(copy, I_KEY_LENGTH));
  status = record ? reserveSlots(table, peersOf(copy)) : E_MEMORY;
  if (status != OK) {
    free(block);
    if (record) dropIfUnused(table, record);
    return status;
  }
  moveSlots(table, record, copy);
  retirePeers(table, record);
  sweep(table);
  store<u32>(record, <u32>copy, U_PEERS);
  store<u32>(record, length, U_PEERS_SIZE);
  noteTrouble(table, record);
  store<u32>(table, load<u32>(table, T_GENERATION) + 1, T_GENERATION);
  return OK;
}

/** Takes the peers of an upstream away. OK also if it has none. */
export function unloadPeers(table: usize, key: usize, length: u32): i32 {
  if (!isTable(table) || !inMemory(key, length)) return E_POINTER;
  let record = findUpstream(table, key, length);
  if (!record) return OK;
  moveSlots(table, record, 0);
  retirePeers(table, record);
  sweep(table);
  dropIfUnused(table, record);
  store<u32>(table, load<u32>(table, T_GENERATION) + 1, T_GENERATION);
  return OK;
}

/** Frees every upstream. Shards and contexts must be gone. */
export function clearUpstreams(table: usize): void {
  let slots: usize = load<u32>(table, T_UPSTREAMS);
  for (let i: u32 = 0; i <= load<u32>(table, T_UPSTREAM_MASK); i++) {
    let record: usize = load<u32>(slots + ((<usize>i) << 3), 4);
    if (!record) continue;
    retirePeers(table, record);
    free(record);
  }
  sweep(table);
}
