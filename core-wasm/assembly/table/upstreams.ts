/** Upstreams by key. The record: table/upstream-record.ts. */
import { hashBytes } from "../memory/bytes";
import { alloc, free } from "../memory/heap";
import { OK } from "../status";
import { giveSlot, reserveSlots, takeSlot } from "./peer-slots";
import { ENTRY_LENGTH, findSlot, putEntry, roomForOne } from "./slot-array";
import { T_UPSTREAMS } from "./table";
import { U_CURSOR, U_KEY, U_PEERS, U_REFERENCES } from "./upstream-record";

/** The record of a key, or 0. */
export function findUpstream(table: usize, key: usize, length: u32): usize {
  return load<u32>(findSlot(table + T_UPSTREAMS, hashBytes(key, length), key, length, <u32>U_KEY), 4);
}

/** The record of a key with one more reference, made if there is none; 0 if memory is short. */
export function upstreamFor(table: usize, key: usize, length: u32): usize {
  let record = recordFor(table, key, length);
  if (record) store<u32>(record, load<u32>(record, U_REFERENCES) + 1, U_REFERENCES);
  return record;
}

/** The record of a key, made if there is none; 0 if memory is short. */
export function recordFor(table: usize, key: usize, length: u32): usize {
  let index = table + T_UPSTREAMS;
  if (!roomForOne(index)) return 0;
  let hash = hashBytes(key, length);
  let slot = findSlot(index, hash, key, length, <u32>U_KEY);
  let record: usize = load<u32>(slot, 4);
  if (record) return record;
  record = alloc(<u32>U_KEY + length);
  if (!record) return 0;
  if (reserveSlots(table, 1) != OK) {
    free(record);
    return 0;
  }
  memory.fill(record, 0, U_KEY);
  store<u32>(record, hash);
  store<u32>(record, length, ENTRY_LENGTH);
  store<u32>(record, takeSlot(table, record, 0), U_CURSOR);
  memory.copy(record + U_KEY, key, length);
  putEntry(index, slot, hash, record);
  return record;
}

/** Frees a record that nothing refers to. A decision that names it also holds the shard, which refers to it. */
export function dropIfUnused(table: usize, record: usize): void {
  if (load<u32>(record, U_REFERENCES) || load<u32>(record, U_PEERS)) return;
  let index = table + T_UPSTREAMS;
  let hash = load<u32>(record);
  putEntry(index, findSlot(index, hash, record + U_KEY, load<u32>(record, ENTRY_LENGTH), <u32>U_KEY), hash, 0);
  giveSlot(table, load<u32>(record, U_CURSOR));
  free(record);
}

/** Takes back one reference of a shard. */
export function releaseUpstream(table: usize, record: usize): void {
  store<u32>(record, load<u32>(record, U_REFERENCES) - 1, U_REFERENCES);
  dropIfUnused(table, record);
}
