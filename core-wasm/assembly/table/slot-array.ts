/**
 * Slot arrays: hash tables with open addressing, of shards by host and of upstreams by key.
 *
 * The array of a table, three words at `index`: 0 address | 4 mask | 8 entries. A slot is u32 hash, u32 address of the
 * entry; address 0 is free. An entry has the length of its text at 4, and the text at an offset that its kind decides.
 */
import { sameBytes } from "../memory/bytes";
import { alloc, free } from "../memory/heap";

const MASK: usize = 4;
const COUNT: usize = 8;
export const ENTRY_LENGTH: usize = 4;

/** The slot of the entry with this text, or the free one where it would go. */
export function findSlot(index: usize, hash: u32, text: usize, length: u32, textAt: u32): usize {
  let slots: usize = load<u32>(index);
  let mask = load<u32>(index, MASK);
  let slot = hash & mask;
  while (true) {
    let at = slots + ((<usize>slot) << 3);
    let entry: usize = load<u32>(at, 4);
    if (
      !entry ||
      (load<u32>(at) == hash && load<u32>(entry, ENTRY_LENGTH) == length && sameBytes(entry + textAt, text, length))
    ) {
      return at;
    }
    slot = (slot + 1) & mask;
  }
}

/** Doubles the array when one entry more would fill over half of it. False if memory is short. */
export function roomForOne(index: usize): bool {
  let slots = load<u32>(index, MASK) + 1;
  if ((load<u32>(index, COUNT) + 1) << 1 <= slots) return true;
  let old: usize = load<u32>(index);
  let size = slots << 4;
  let grown = alloc(size);
  if (!grown) return false;
  memory.fill(grown, 0, size);
  let mask = (slots << 1) - 1;
  for (let i: u32 = 0; i < slots; i++) {
    let pair = load<u64>(old + ((<usize>i) << 3));
    if (!(pair >> 32)) continue;
    let slot = <u32>pair & mask;
    while (load<u32>(grown + ((<usize>slot) << 3), 4)) slot = (slot + 1) & mask;
    store<u64>(grown + ((<usize>slot) << 3), pair);
  }
  free(old);
  store<u32>(index, <u32>grown);
  store<u32>(index, mask, MASK);
  return true;
}

/** Puts an entry (0: none) into the slot at `at`, which `findSlot` gave; returns the one that was there. */
export function putEntry(index: usize, at: usize, hash: u32, entry: usize): usize {
  let old: usize = load<u32>(at, 4);
  store<u32>(index, load<u32>(index, COUNT) + <u32>(entry != 0) - <u32>(old != 0), COUNT);
  store<u32>(at, hash);
  store<u32>(at, <u32>entry, 4);
  if (!entry) closeGap(load<u32>(index), load<u32>(index, MASK), at);
  return old;
}

/** Closes the gap that a freed slot leaves, so that no later entry of the run is cut off (Knuth 6.4, algorithm R). */
function closeGap(slots: usize, mask: u32, at: usize): void {
  let hole = <u32>(at - slots) >> 3;
  let i = hole;
  while (true) {
    i = (i + 1) & mask;
    let pair = load<u64>(slots + ((<usize>i) << 3));
    if (!(pair >> 32)) return;
    let home = <u32>pair & mask;
    // The entry may move to the hole unless its home lies cyclically in (hole, i].
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      store<u64>(slots + ((<usize>hole) << 3), pair);
      store<u64>(slots + ((<usize>i) << 3), 0);
      hole = i;
    }
  }
}
