/**
 * The allocator of the core: segregated fits with boundary tags and immediate coalescing, after TLSF (Masmano et
 * al., 2004), in linear memory. Its whole state lives in memory, none in globals.
 *
 * Arena, at the first 16-byte boundary after the static data:
 *   0  u32 magic      12  u32 bitmap of second levels [FIRST_LEVELS]
 *   4  u32 end        (after that) u32 head of free list [FIRST_LEVELS * SECOND_LEVELS]
 *   8  u32 used bytes
 *
 * Block: 16 bytes of header, then the payload (16-byte aligned).
 *   0  u32 size of the payload, a multiple of 16; bit 0 set while in use
 *   4  u32 address of the block before in memory, 0 for the first
 *   8  u32 next free block of the list   (guard word while in use: GUARD, or GIVEN where the caller of the core owns it)
 *  12  u32 previous free block of the list
 * The arena ends with a block of size 0 that is always in use.
 */
const ARENA_MAGIC: u32 = 0x504e4a31;
const GUARD: u32 = 0x55534544;
const GIVEN: u32 = GUARD | 1;

const FIRST_LEVELS: u32 = 26;
const SECOND_LEVELS: u32 = 16;
const SECOND_BITS: u32 = 4;

const A_END: usize = 4;
const A_USED: usize = 8;
const A_BITMAPS: usize = 12;
const A_HEADS: usize = 12 + 26 * 4;
const A_SIZE: usize = 12 + 26 * 4 + 26 * 16 * 4;

const B_PREVIOUS: usize = 4;
const B_NEXT_FREE: usize = 8;
const B_PREVIOUS_FREE: usize = 12;
const HEADER: u32 = 16;

const MOST_PAGES: i32 = 256;

/** Largest single allocation: 1 GiB. */
const MAX_REQUEST: u32 = 1 << 30;

function arena(): usize {
  return (__heap_base + 15) & ~15;
}

function sizeOf(block: usize): u32 {
  return load<u32>(block) & ~1;
}

function nextBlock(block: usize): usize {
  return block + HEADER + sizeOf(block);
}

/** List index of a size: size classes of 1/16 of each power of two; sizes below 256 have one class each 16 bytes. */
function listOf(size: u32): u32 {
  if (size < 256) return size >> 4;
  let first: u32 = 31 - clz(size);
  return ((first - 7) << SECOND_BITS) | ((size >> (first - SECOND_BITS)) & (SECOND_LEVELS - 1));
}

function headAddress(base: usize, list: u32): usize {
  return base + A_HEADS + ((<usize>list) << 2);
}

/** Address of the bitmap that says whether a list and its neighbours hold blocks. */
function bitmapAddress(base: usize, list: u32): usize {
  return base + A_BITMAPS + ((<usize>(list >> SECOND_BITS)) << 2);
}

function insertFree(base: usize, block: usize): void {
  let list = listOf(sizeOf(block));
  let head = headAddress(base, list);
  let old = load<u32>(head);
  store<u32>(block, old, B_NEXT_FREE);
  store<u32>(block, 0, B_PREVIOUS_FREE);
  if (old) store<u32>(old, <u32>block, B_PREVIOUS_FREE);
  store<u32>(head, <u32>block);
  let second = bitmapAddress(base, list);
  store<u32>(second, load<u32>(second) | (1 << (list & (SECOND_LEVELS - 1))));
}

function removeFree(base: usize, block: usize): void {
  let list = listOf(sizeOf(block));
  let next = load<u32>(block, B_NEXT_FREE);
  let previous = load<u32>(block, B_PREVIOUS_FREE);
  if (next) store<u32>(next, previous, B_PREVIOUS_FREE);
  if (previous) {
    store<u32>(previous, next, B_NEXT_FREE);
    return;
  }
  store<u32>(headAddress(base, list), next);
  if (next) return;
  let second = bitmapAddress(base, list);
  store<u32>(second, load<u32>(second) & ~(1 << (list & (SECOND_LEVELS - 1))));
}

/** Makes the memory from `start` to `end` one free block, closed by an end block; joins a free block before it. */
function addRegion(base: usize, start: usize, end: usize, previous: usize): void {
  let last = end - HEADER;
  store<u32>(start, <u32>(last - start - HEADER));
  store<u32>(start, <u32>previous, B_PREVIOUS);
  store<u32>(last, 1);
  store<u32>(last, <u32>start, B_PREVIOUS);
  store<u32>(base, <u32>end, A_END);
  release(base, start);
}

/** Joins a block with its free neighbours and puts it on its list. */
function release(base: usize, block: usize): void {
  let next = nextBlock(block);
  if (!(load<u32>(next) & 1)) {
    removeFree(base, next);
    store<u32>(block, sizeOf(block) + HEADER + sizeOf(next));
    next = nextBlock(block);
  }
  let previous: usize = load<u32>(block, B_PREVIOUS);
  if (previous && !(load<u32>(previous) & 1)) {
    removeFree(base, previous);
    store<u32>(previous, sizeOf(previous) + HEADER + sizeOf(block));
    block = previous;
  }
  store<u32>(nextBlock(block), <u32>block, B_PREVIOUS);
  insertFree(base, block);
}

function ready(): usize {
  let base = arena();
  if (load<u32>(base) != ARENA_MAGIC) {
    memory.fill(base, 0, A_SIZE);
    store<u32>(base, ARENA_MAGIC);
    addRegion(base, (base + A_SIZE + 15) & ~15, (<usize>memory.size()) << 16, 0);
  }
  return base;
}

function growBy(base: usize, size: u32): bool {
  let pages = <i32>((size + HEADER * 4 + 0xffff) >> 16);
  // Growing is slow in some hosts, and pages that are not touched cost nothing: four times what is there, 16 MiB at most.
  if (memory.grow(max(pages, min(memory.size() * 3, MOST_PAGES))) < 0 && memory.grow(pages) < 0) return false;
  let end: usize = load<u32>(base, A_END);
  // The old end block becomes the header of the new region.
  let start = end - HEADER;
  addRegion(base, start, (<usize>memory.size()) << 16, load<u32>(start, B_PREVIOUS));
  return true;
}

function findFree(base: usize, size: u32): usize {
  // Rounded up to the next class, so that the head of any list found is large enough.
  let rounded = size;
  if (size >= 256) rounded += (1 << (31 - clz(size) - SECOND_BITS)) - 1;
  let list = listOf(rounded);
  let first = list >> SECOND_BITS;
  let wanted: u32 = 0xffffffff << (list & (SECOND_LEVELS - 1));
  for (; first < FIRST_LEVELS; first++) {
    let map = load<u32>(base + ((<usize>first) << 2), A_BITMAPS) & wanted;
    if (map) return load<u32>(headAddress(base, (first << SECOND_BITS) | ctz(map)));
    wanted = 0xffffffff;
  }
  return 0;
}

/** Memory of at least `size` bytes, 16-byte aligned, not cleared; 0 if it can't be had. May grow (and so move) the memory. */
export function alloc(size: u32): usize {
  if (size > MAX_REQUEST) return 0;
  let base = ready();
  let wanted = size < 16 ? 16 : (size + 15) & ~15;
  let block = findFree(base, wanted);
  if (!block) {
    if (!growBy(base, wanted + (wanted >> SECOND_BITS))) return 0;
    block = findFree(base, wanted);
    if (!block) return 0;
  }
  removeFree(base, block);
  let rest = sizeOf(block) - wanted;
  if (rest >= HEADER + 16) {
    store<u32>(block, wanted);
    let tail = nextBlock(block);
    store<u32>(tail, rest - HEADER);
    store<u32>(tail, <u32>block, B_PREVIOUS);
    store<u32>(nextBlock(tail), <u32>tail, B_PREVIOUS);
    insertFree(base, tail);
  }
  store<u32>(block, sizeOf(block) | 1);
  store<u32>(block, GUARD, B_NEXT_FREE);
  store<u32>(base, load<u32>(base, A_USED) + sizeOf(block) + HEADER, A_USED);
  return block + HEADER;
}

/** Makes a block (0: none) the property of the core's caller, who may name it from now on, and free it. */
export function give(pointer: usize): usize {
  if (pointer) store<u32>(pointer - HEADER, GIVEN, B_NEXT_FREE);
  return pointer;
}

/** True if `pointer` is a block that the caller owns, with at least `size` bytes. Any number may be asked about. */
export function isGiven(pointer: usize, size: u32): bool {
  let base = arena();
  if (pointer & 15 || load<u32>(base) != ARENA_MAGIC) return false;
  if (pointer < base + A_SIZE + HEADER || pointer >= <usize>load<u32>(base, A_END)) return false;
  let block = pointer - HEADER;
  let word = load<u32>(block);
  return (word & 1) != 0 && (word & ~1) >= size && load<u32>(block, B_NEXT_FREE) == GIVEN;
}

/**
 * Gives a block back. What is none (0, the first slots of a table, which lie in the table) stays as it is. What stood at
 * its start is gone: a handle that somebody still has is none any more.
 */
export function free(pointer: usize): void {
  if (!pointer || (load<u32>(pointer - HEADER, B_NEXT_FREE) | 1) != GIVEN) return;
  let base = arena();
  let block = pointer - HEADER;
  store<u32>(pointer, 0);
  store<u32>(block, sizeOf(block));
  store<u32>(base, load<u32>(base, A_USED) - sizeOf(block) - HEADER, A_USED);
  release(base, block);
}

/** Bytes in use, headers included. */
export function usedBytes(): u32 {
  return load<u32>(ready(), A_USED);
}

/** True if `at` is a handle of a kind: a block of `size` bytes that begins with `magic`, as long as it lives. Any number may be asked about. */
export function isHandle(at: usize, size: u32, magic: u32): bool {
  return (at & 15) == 0 && inMemory(at, size) && load<u32>(at) == magic;
}

/** True if `length` bytes from `pointer` lie inside the memory. */
export function inMemory(pointer: usize, length: u32): bool {
  return <u64>pointer + <u64>length <= (<u64>memory.size()) << 16;
}
