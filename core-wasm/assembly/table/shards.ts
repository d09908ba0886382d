/**
 * The shards of a table, each loaded from an image into a block of its own.
 *
 * Shard handle, 64 bytes at a multiple of 64 (one cache line, with all that most requests need to know of a shard), then
 * the image. In front of the handle, going down: one u32 for each upstream (its record), then one for each header (its
 * address).
 *   0 host hash | 4 host length | 8 pattern kind | 12 trie | 16 routes | 20 first regex route | 24 first prefix route
 *   | 28 guard count | 32 upstream count | 36 next retired | 40 address of the allocation | 44 zero
 */
import {
  PATTERN_ANY_HOST,
  PATTERN_ANY_LABELS,
  PATTERN_DEFAULT,
  PATTERN_ONE_LABEL,
  pad4,
  S_FIRST_PREFIX,
  S_FIRST_REGEX,
  S_GUARD_COUNT,
  S_HEADER_COUNT,
  S_HEADER_SIZE,
  S_HEADERS,
  S_HOST_LENGTH,
  S_MATCH,
  S_PATTERN,
  S_ROUTES,
  S_SCRATCH,
  S_SIZE,
  S_UPSTREAM_COUNT,
  S_UPSTREAMS,
} from "../image/layout";
import { validateShard } from "../image/validate";
import { hashBytes, sameBytes } from "../memory/bytes";
import { alloc, free, inMemory } from "../memory/heap";
import { E_MEMORY, E_POINTER, E_SOURCE, OK } from "../status";
import {
  changed,
  closeSlot,
  growAllScratch,
  isPinned,
  isTable,
  roomForOne,
  T_ANY,
  T_DEFAULT,
  T_MASK,
  T_RETIRED,
  T_SHARD_COUNT,
  T_SHARDS,
  T_WILDCARDS,
} from "./table";
import { releaseUpstream, upstreamFor } from "./upstreams";

export const H_HOST_LENGTH: usize = 4;
export const H_PATTERN: usize = 8;
export const H_TRIE: usize = 12;
export const H_ROUTES: usize = 16;
export const H_FIRST_REGEX: usize = 20;
export const H_FIRST_PREFIX: usize = 24;
export const H_GUARD_COUNT: usize = 28;
const H_UPSTREAM_COUNT: usize = 32;
const H_NEXT: usize = 36;
const H_ALLOCATION: usize = 40;
export const HANDLE_SIZE: u32 = 64;
export function imageOf(handle: usize): usize {
  return handle + HANDLE_SIZE;
}

/** Hashes of wildcard patterns differ from those of the same text as an exact host. */
export function patternHash(pattern: u32, host: usize, length: u32): u32 {
  let hash = hashBytes(host, length);
  return pattern == PATTERN_ONE_LABEL || pattern == PATTERN_ANY_LABELS ? ~hash : hash;
}

function samePattern(image: usize, pattern: u32, host: usize, length: u32): bool {
  let other = load<u32>(image, S_PATTERN);
  return (
    (other == 0) == (pattern == 0) &&
    load<u32>(image, S_HOST_LENGTH) == length &&
    sameBytes(image + S_HEADER_SIZE, host, length)
  );
}

/** The slot of the shard with this pattern (both kinds of wildcard are one), or of the free slot where it would go. */
function findSlot(table: usize, hash: u32, pattern: u32, host: usize, length: u32): u32 {
  let slots: usize = load<u32>(table, T_SHARDS);
  let mask = load<u32>(table, T_MASK);
  let slot = hash & mask;
  while (true) {
    let handle: usize = load<u32>(slots + ((<usize>slot) << 3), 4);
    if (!handle) return slot;
    if (load<u32>(slots + ((<usize>slot) << 3)) == hash && samePattern(imageOf(handle), pattern, host, length)) {
      return slot;
    }
    slot = (slot + 1) & mask;
  }
}

/** The record of upstream `index` of a shard. */
export function upstreamOf(handle: usize, index: u32): usize {
  return load<u32>(handle - 4 - ((<usize>index) << 2));
}

/** The address of header `index` of a shard: u32 length, lower-case name. */
export function headerOf(handle: usize, index: u32): usize {
  return upstreamOf(handle, load<u32>(handle, H_UPSTREAM_COUNT) + index);
}

function setWord(handle: usize, index: u32, value: usize): void {
  store<u32>(handle - 4 - ((<usize>index) << 2), <u32>value);
}

function freeHandle(table: usize, handle: usize): void {
  let count = load<u32>(handle, H_UPSTREAM_COUNT);
  for (let i: u32 = 0; i < count; i++) {
    let record = upstreamOf(handle, i);
    if (record) releaseUpstream(table, record);
  }
  free(load<u32>(handle, H_ALLOCATION));
}

/** Frees what has been replaced and is read by nobody any more, and takes `handle` (0: none) out of use. */
function retire(table: usize, handle: usize): void {
  if (handle) {
    store<u32>(handle, load<u32>(table, T_RETIRED), H_NEXT);
    store<u32>(table, <u32>handle, T_RETIRED);
  }
  let link = table + T_RETIRED;
  while (true) {
    let retired: usize = load<u32>(link);
    if (!retired) break;
    if (isPinned(table, imageOf(retired))) {
      link = retired + H_NEXT;
      continue;
    }
    store<u32>(link, load<u32>(retired, H_NEXT));
    freeHandle(table, retired);
  }
}

/** Where a text list of an image begins or ends: skips `count` texts. */
function nextText(at: usize): usize {
  return at + 4 + pad4(load<u32>(at));
}

/** Makes a handle for a valid image: a copy of it with its upstreams and headers looked up. 0 if memory is short. */
function newHandle(table: usize, source: usize): usize {
  let size = load<u32>(source, S_SIZE);
  let upstreams = load<u32>(source, S_UPSTREAM_COUNT);
  let headers = load<u32>(source, S_HEADER_COUNT);
  let before = (upstreams + headers) << 2;
  let allocation = alloc(before + HANDLE_SIZE * 2 + size);
  if (!allocation) return 0;
  let handle = (allocation + before + 63) & ~63;
  let image = imageOf(handle);
  memory.fill(handle - before, 0, before + HANDLE_SIZE);
  memory.copy(image, source, size);
  store<u32>(handle, load<u32>(image, S_HOST_LENGTH), H_HOST_LENGTH);
  store<u32>(handle, load<u32>(image, S_PATTERN), H_PATTERN);
  store<u32>(handle, <u32>image + load<u32>(image, S_MATCH), H_TRIE);
  store<u32>(handle, <u32>image + load<u32>(image, S_ROUTES), H_ROUTES);
  store<u32>(handle, load<u32>(image, S_FIRST_REGEX), H_FIRST_REGEX);
  store<u32>(handle, load<u32>(image, S_FIRST_PREFIX), H_FIRST_PREFIX);
  store<u32>(handle, load<u32>(image, S_GUARD_COUNT), H_GUARD_COUNT);
  store<u32>(handle, upstreams, H_UPSTREAM_COUNT);
  store<u32>(handle, <u32>allocation, H_ALLOCATION);
  let at = image + load<u32>(image, S_UPSTREAMS);
  for (let i: u32 = 0; i < upstreams; i++, at = nextText(at)) {
    let record = upstreamFor(table, at + 4, load<u32>(at));
    if (!record) {
      freeHandle(table, handle);
      return 0;
    }
    setWord(handle, i, record);
  }
  at = image + load<u32>(image, S_HEADERS);
  for (let i: u32 = 0; i < headers; i++, at = nextText(at)) setWord(handle, upstreams + i, at);
  return handle;
}

function countWildcard(table: usize, image: usize, by: i32): void {
  let pattern = load<u32>(image, S_PATTERN);
  if (pattern == PATTERN_ONE_LABEL || pattern == PATTERN_ANY_LABELS) {
    store<i32>(table, load<i32>(table, T_WILDCARDS) + by, T_WILDCARDS);
  }
}

/**
 * Validates a shard image (see validateShard), copies it and puts it in the place of the one with its pattern. On an error
 * nothing changes.
 */
export function loadShard(table: usize, image: usize, length: u32, seal: bool): i32 {
  if (!isTable(table) || !inMemory(image, length)) return E_POINTER;
  let status = validateShard(image, length, seal);
  if (status != OK) return status;
  return placeShard(table, image);
}

function placeShard(table: usize, source: usize): i32 {
  if (!growAllScratch(table, load<u32>(source, S_SCRATCH))) return E_MEMORY;
  if (!roomForOne(table, T_SHARDS, T_MASK, load<u32>(table, T_SHARD_COUNT))) return E_MEMORY;
  let handle = newHandle(table, source);
  if (!handle) return E_MEMORY;
  let image = imageOf(handle);
  let pattern = load<u32>(image, S_PATTERN);
  if (pattern >= PATTERN_ANY_HOST) {
    let place = table + (pattern == PATTERN_DEFAULT ? T_DEFAULT : T_ANY);
    let old: usize = load<u32>(place);
    store<u32>(place, <u32>handle);
    changed(table);
    retire(table, old);
    return OK;
  }
  let host = image + S_HEADER_SIZE;
  let length = load<u32>(image, S_HOST_LENGTH);
  let hash = patternHash(pattern, host, length);
  store<u32>(handle, hash);
  let slots: usize = load<u32>(table, T_SHARDS);
  let slot = findSlot(table, hash, pattern, host, length);
  let old: usize = load<u32>(slots + ((<usize>slot) << 3), 4);
  if (old) countWildcard(table, imageOf(old), -1);
  else store<u32>(table, load<u32>(table, T_SHARD_COUNT) + 1, T_SHARD_COUNT);
  countWildcard(table, image, 1);
  store<u32>(slots + ((<usize>slot) << 3), hash);
  store<u32>(slots + ((<usize>slot) << 3), <u32>handle, 4);
  changed(table);
  retire(table, old);
  return OK;
}

/** Takes the shard of a pattern out. OK also if there is none. */
export function unloadShard(table: usize, pattern: u32, host: usize, length: u32): i32 {
  if (!isTable(table) || !inMemory(host, length)) return E_POINTER;
  if (pattern > PATTERN_DEFAULT) return E_SOURCE;
  let old: usize = 0;
  if (pattern >= PATTERN_ANY_HOST) {
    let place = table + (pattern == PATTERN_DEFAULT ? T_DEFAULT : T_ANY);
    old = load<u32>(place);
    store<u32>(place, 0);
  } else {
    let slots: usize = load<u32>(table, T_SHARDS);
    let slot = findSlot(table, patternHash(pattern, host, length), pattern, host, length);
    old = load<u32>(slots + ((<usize>slot) << 3), 4);
    if (old) {
      closeSlot(slots, load<u32>(table, T_MASK), slot);
      store<u32>(table, load<u32>(table, T_SHARD_COUNT) - 1, T_SHARD_COUNT);
      countWildcard(table, imageOf(old), -1);
    }
  }
  if (old) changed(table);
  retire(table, old);
  return OK;
}

/** Frees every shard. Contexts must be gone. */
export function clearShards(table: usize): void {
  let slots: usize = load<u32>(table, T_SHARDS);
  for (let i: u32 = 0; i <= load<u32>(table, T_MASK); i++) {
    let handle: usize = load<u32>(slots + ((<usize>i) << 3), 4);
    if (handle) freeHandle(table, handle);
  }
  if (load<u32>(table, T_ANY)) freeHandle(table, load<u32>(table, T_ANY));
  if (load<u32>(table, T_DEFAULT)) freeHandle(table, load<u32>(table, T_DEFAULT));
  retire(table, 0);
  free(slots);
}
