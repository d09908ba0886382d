/**
 * The shards of a table, each loaded from an image into a block of its own.
 *
 * Shard handle, 64 bytes at a multiple of 64 (one cache line, with all that most requests need to know of a shard), then
 * the image. In front of the handle, going down: one u32 for each upstream (its record), then one for each header (its
 * address).
 *   0 zero | 4 host length | 8 pattern kind | 12 trie | 16 routes | 20 first regex route | 24 first prefix route
 *   | 28 guard count | 32 zero | 48 upstream count | 52 next retired | 56 address of the allocation | 60 zero
 * A loaded peer set has the last 16 bytes of a handle in front of it, so that both retire in the same way.
 */
import {
  PATTERN_ANY_HOST,
  PATTERN_DEFAULT,
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
import { hashBytes } from "../memory/bytes";
import { alloc, free, inMemory } from "../memory/heap";
import { E_MEMORY, E_POINTER, E_SOURCE, OK } from "../status";
import { ENTRY_LENGTH, findSlot, putEntry, roomForOne } from "./slot-array";
import {
  growAllScratch,
  isPinned,
  isTable,
  T_ANY,
  T_DEFAULT,
  T_GENERATION,
  T_RETIRED,
  T_SHARDS,
  T_WILDCARDS,
} from "./table";
import { releaseUpstream, upstreamFor } from "./upstreams";

export const H_HOST_LENGTH: usize = ENTRY_LENGTH;
export const H_PATTERN: usize = 8;
export const H_TRIE: usize = 12;
export const H_ROUTES: usize = 16;
export const H_FIRST_REGEX: usize = 20;
export const H_FIRST_PREFIX: usize = 24;
export const H_GUARD_COUNT: usize = 28;
export const H_UPSTREAM_COUNT: usize = 48;
const H_NEXT: usize = 52;
export const H_ALLOCATION: usize = 56;
export const HANDLE_SIZE: u32 = 64;
export function imageOf(handle: usize): usize {
  return handle + HANDLE_SIZE;
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

/** Frees a handle (0: none) that nobody reads, and what it refers to. */
export function freeHandle(table: usize, handle: usize): void {
  if (!handle) return;
  let count = load<u32>(handle, H_UPSTREAM_COUNT);
  for (let i: u32 = 0; i < count; i++) {
    let record = upstreamOf(handle, i);
    if (record) releaseUpstream(table, record);
  }
  free(load<u32>(handle, H_ALLOCATION));
}

/** Counts a change, takes `handle` (0: none) out of use, and frees what is out of use and read by nobody any more. */
export function retire(table: usize, handle: usize): void {
  if (handle) {
    store<u32>(handle, load<u32>(table, T_RETIRED), H_NEXT);
    store<u32>(table, <u32>handle, T_RETIRED);
  }
  store<u32>(table, load<u32>(table, T_GENERATION) + 1, T_GENERATION);
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

/** Puts `handle` (0: none) in the place of the shard with this pattern; both kinds of wildcard are one. */
function replace(table: usize, pattern: u32, host: usize, length: u32, handle: usize): void {
  let old: usize;
  if (pattern >= PATTERN_ANY_HOST) {
    let place = table + (pattern == PATTERN_DEFAULT ? T_DEFAULT : T_ANY);
    old = load<u32>(place);
    store<u32>(place, <u32>handle);
  } else {
    // The hash of a wildcard differs from that of the same text as an exact host, so it tells one from the other.
    let hash = hashBytes(host, length);
    if (pattern) hash = ~hash;
    let index = table + T_SHARDS;
    old = putEntry(index, findSlot(index, hash, host, length, HANDLE_SIZE + S_HEADER_SIZE), hash, handle);
    if (pattern) {
      store<u32>(table, load<u32>(table, T_WILDCARDS) + <u32>(handle != 0) - <u32>(old != 0), T_WILDCARDS);
    }
  }
  if (handle || old) retire(table, old);
}

/**
 * Validates a shard image (see validateShard), copies it and puts it in the place of the one with its pattern. On an error
 * nothing changes.
 */
export function loadShard(table: usize, image: usize, length: u32, seal: bool): i32 {
  if (!isTable(table) || !inMemory(image, length)) return E_POINTER;
  let status = validateShard(image, length, seal);
  if (status != OK) return status;
  if (!growAllScratch(table, load<u32>(image, S_SCRATCH)) || !roomForOne(table + T_SHARDS)) return E_MEMORY;
  let handle = newHandle(table, image);
  if (!handle) return E_MEMORY;
  let copy = imageOf(handle);
  replace(table, load<u32>(copy, S_PATTERN), copy + S_HEADER_SIZE, load<u32>(copy, S_HOST_LENGTH), handle);
  return OK;
}

/** Takes the shard of a pattern out. OK also if there is none. */
export function unloadShard(table: usize, pattern: u32, host: usize, length: u32): i32 {
  if (!isTable(table) || !inMemory(host, length)) return E_POINTER;
  if (pattern > PATTERN_DEFAULT) return E_SOURCE;
  replace(table, pattern, host, length, 0);
  return OK;
}
