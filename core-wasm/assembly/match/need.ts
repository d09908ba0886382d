/** Asking the caller for header values, and taking them over. */
import { FACTS, K_HEADER_COUNT, KEY_HEADER, MAX_HEADERS, pad4 } from "../image/layout";
import { inMemory } from "../memory/heap";
import { isFilled } from "../request/values";
import { E_POINTER, OK } from "../status";
import { ALL_SLOTS, NEED_SIZE, SLOT_SIZE, X_EPOCH, X_HANDLE, X_NEED_COUNT, X_NEEDS, X_SLOTS } from "../table/context";
import { headerOf } from "../table/shards";

/** The address of header `index` (u32 length, text) of a hash key. */
function keyHeader(key: usize, index: u32): usize {
  let at = key + KEY_HEADER;
  // At most MAX_KEY_SLOTS steps; the list is inside the key, as its validation has shown.
  for (let i: u32 = 0; i < index && i < load<u32>(key, K_HEADER_COUNT); i++) at += 4 + pad4(load<u32>(at));
  return at;
}

/** Begins a request: no slot is filled in. Where the count of requests starts over, marks of long ago must not fit again. */
export function startValues(ctx: usize): void {
  let epoch = load<u32>(ctx, X_EPOCH) + 1;
  if (!epoch) {
    memory.fill(ctx + X_SLOTS, 0, ALL_SLOTS * SLOT_SIZE);
    epoch = 1;
  }
  store<u32>(ctx, epoch, X_EPOCH);
}

/** Empties the slots of headers: their numbers are those of one shard, and another takes over. Facts stay. */
export function forgetHeaders(ctx: usize): void {
  memory.fill(ctx + X_SLOTS + FACTS * SLOT_SIZE, 0, MAX_HEADERS * SLOT_SIZE);
}

/**
 * Lists those slots of a need list (at `offset` in `image`; 0: none) that are not filled in yet. `base` is 0 for a shard,
 * KEY_SLOTS for a hash key. False if nothing is missing.
 */
export function askFor(ctx: usize, image: usize, offset: u32, base: u32): bool {
  if (!offset) return false;
  let list = image + offset;
  let count = load<u32>(list);
  let needs: usize = load<u32>(ctx, X_NEEDS);
  let missing: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    let slot = load<u32>(list + 4 + ((<usize>i) << 2));
    if (isFilled(ctx, base + slot)) continue;
    let id = slot;
    if (slot >= FACTS) {
      if (base) id = <u32>keyHeader(image, slot - FACTS);
      else id = <u32>headerOf(<usize>load<u32>(ctx, X_HANDLE), slot - FACTS);
    }
    let need = needs + missing * NEED_SIZE;
    store<u32>(need, id);
    store<u32>(need, 0, 4);
    store<i32>(need, -1, 8);
    store<u32>(need, base + slot, 12);
    missing++;
  }
  store<u32>(ctx, missing, X_NEED_COUNT);
  return missing != 0;
}

/** Takes the answers to the last request for values over into their slots. */
export function takeAnswers(ctx: usize): i32 {
  let need: usize = load<u32>(ctx, X_NEEDS);
  let missing = load<u32>(ctx, X_NEED_COUNT);
  let epoch = load<u32>(ctx, X_EPOCH);
  for (let end = need + missing * NEED_SIZE; need < end; need += NEED_SIZE) {
    let value = load<u32>(need, 4);
    let length = load<i32>(need, 8);
    let slot = load<u32>(need, 12);
    if (slot >= ALL_SLOTS || (length > 0 && !inMemory(value, length))) return E_POINTER;
    let at = ctx + slot * SLOT_SIZE;
    store<u32>(at, epoch, X_SLOTS);
    store<u32>(at, value, X_SLOTS + 4);
    store<i32>(at, length, X_SLOTS + 8);
  }
  store<u32>(ctx, 0, X_NEED_COUNT);
  return OK;
}
