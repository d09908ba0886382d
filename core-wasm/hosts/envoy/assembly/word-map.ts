/**
 * A map from words that are not 0 to words, with open addressing. Map: u32 mask | u32 count | address of the slots; slot:
 * u32 key (0: free), u32 value. At most half of the slots are taken.
 */

import { mix32 } from "../../../assembly/memory/bytes";
import { alloc, free } from "../../../assembly/memory/heap";

const M_MASK: usize = 0;
const M_COUNT: usize = 4;
const M_SLOTS: usize = 8;
const SIZE: u32 = 12;
const FIRST: u32 = 64;

/** An empty map; 0 if memory is short. */
export function newMap(): usize {
  let map = alloc(SIZE);
  let slots = alloc(FIRST << 3);
  if (!map || !slots) {
    free(map);
    free(slots);
    return 0;
  }
  memory.fill(slots, 0, FIRST << 3);
  store<u32>(map, FIRST - 1, M_MASK);
  store<u32>(map, 0, M_COUNT);
  store<u32>(map, <u32>slots, M_SLOTS);
  return map;
}

export function dropMap(map: usize): void {
  if (!map) return;
  free(load<u32>(map, M_SLOTS));
  free(map);
}

/** The slot of a key, or the free one where it would be. */
function slotOf(map: usize, key: u32): usize {
  let mask = load<u32>(map, M_MASK);
  let slots: usize = load<u32>(map, M_SLOTS);
  let index = mix32(key) & mask;
  while (true) {
    let slot = slots + ((<usize>index) << 3);
    let found = load<u32>(slot);
    if (found == key || !found) return slot;
    index = (index + 1) & mask;
  }
}

/** The value of a key; 0 if it has none. */
export function mapGet(map: usize, key: u32): u32 {
  let slot = slotOf(map, key);
  return load<u32>(slot) ? load<u32>(slot, 4) : 0;
}

/** Gives a key a value. False if memory is short. */
export function mapSet(map: usize, key: u32, value: u32): bool {
  let slot = slotOf(map, key);
  if (!load<u32>(slot)) {
    let mask = load<u32>(map, M_MASK);
    let count = load<u32>(map, M_COUNT) + 1;
    if (count << 1 > mask) {
      if (!grow(map, (mask + 1) << 1)) return false;
      slot = slotOf(map, key);
    }
    store<u32>(map, count, M_COUNT);
    store<u32>(slot, key);
  }
  store<u32>(slot, value, 4);
  return true;
}

function grow(map: usize, capacity: u32): bool {
  let slots = alloc(capacity << 3);
  if (!slots) return false;
  memory.fill(slots, 0, capacity << 3);
  let old: usize = load<u32>(map, M_SLOTS);
  let end = old + ((<usize>load<u32>(map, M_MASK) + 1) << 3);
  store<u32>(map, capacity - 1, M_MASK);
  store<u32>(map, <u32>slots, M_SLOTS);
  for (let at = old; at < end; at += 8) {
    if (load<u32>(at)) store<u64>(slotOf(map, load<u32>(at)), load<u64>(at));
  }
  free(old);
  return true;
}

/** Takes a key out. Those after it move up, so that no search ends before its key. */
export function mapDelete(map: usize, key: u32): void {
  let hole = slotOf(map, key);
  if (!load<u32>(hole)) return;
  store<u32>(map, load<u32>(map, M_COUNT) - 1, M_COUNT);
  let mask = load<u32>(map, M_MASK);
  let slots: usize = load<u32>(map, M_SLOTS);
  let free = <u32>((hole - slots) >> 3);
  let index = free;
  while (true) {
    index = (index + 1) & mask;
    let slot = slots + ((<usize>index) << 3);
    let found = load<u32>(slot);
    if (!found) break;
    let home = mix32(found) & mask;
    // It may fill the hole unless its home lies behind the hole, on the way to where it is.
    if (((index - home) & mask) < ((index - free) & mask)) continue;
    store<u64>(slots + ((<usize>free) << 3), load<u64>(slot));
    free = index;
  }
  store<u64>(slots + ((<usize>free) << 3), 0);
}

/** The first slot, for whoever goes through all of them. */
export function mapSlots(map: usize): usize {
  return load<u32>(map, M_SLOTS);
}

/** One past the last slot. */
export function mapSlotsEnd(map: usize): usize {
  return mapSlots(map) + ((<usize>load<u32>(map, M_MASK) + 1) << 3);
}
