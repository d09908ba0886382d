/**
 * The plugin configuration, read a part at a time and from its beginning to its end: a bundle may be large, and need not be in
 * memory as a whole. It is a bundle as it is, or a packed one (packing.ts).
 */
import { alloc, free } from "../../../assembly/memory/heap";
import { getBuffer, givenBytes, givenLength, PLUGIN_CONFIGURATION } from "./host";
import { landAt, takeBack } from "./scratch";
import { unpack } from "./unpacking";

const PACKED: u32 = 0x5a4b4a4e;
const PACKED_HEADER: u32 = 8;
/** Bytes of the bundle in a block of a packed one, and those of one that is not which are read at once. */
const BLOCK: u32 = 1 << 18;

/** Bytes of the bundle, of the configuration, and what of each is read. */
let total: u32 = 0;
let given: u32 = 0;
let read: u32 = 0;
let givenRead: u32 = 0;
let packed = false;
/** A block before it is unpacked. */
let block: usize = 0;
/** What is in memory: `length` bytes from `start` on, in a room of `roomSize`. */
let room: usize = 0;
let roomSize: u32 = 0;
let start: u32 = 0;
let length: u32 = 0;
/** True once a block was not what it has to be. */
export let isDamaged = false;

/** Begins to read a configuration of `size` bytes. Answers the size of the bundle in it; 0: there is none. */
export function openConfiguration(size: u32): u32 {
  total = given = size;
  read = givenRead = start = length = 0;
  packed = isDamaged = false;
  if (size < PACKED_HEADER || !fetch(0, PACKED_HEADER, 0) || load<u32>(givenBytes()) != PACKED) return total;
  packed = true;
  total = load<u32>(givenBytes(), 4);
  givenRead = PACKED_HEADER;
  return total;
}

export function closeConfiguration(): void {
  free(room);
  free(block);
  room = block = 0;
  roomSize = 0;
}

/** True if nothing follows the bundle in the configuration. */
export function isAllRead(): bool {
  return read == total && (!packed || givenRead == given);
}

/**
 * Address of `size` bytes from `at` on, until the next call; 0 if they are not there, or memory is short. What lies before `at`
 * can't be had any more.
 */
export function configurationAt(at: u32, size: u32): usize {
  if (at < start || at - start > length || size > total - at) return 0;
  if (size > length - (at - start) && !readOn(at, size)) return 0;
  return room + (at - start);
}

/** Drops what lies before `at`, and reads until there are `size` bytes. */
function readOn(at: u32, size: u32): bool {
  length -= at - start;
  memory.copy(room, room + (at - start), length);
  start = at;
  // Room comes with what is read, not with what a record says of itself.
  while (length < size) if (!makeRoom() || !readBlock()) return false;
  return true;
}

/** Makes room for one more block. */
function makeRoom(): bool {
  if (roomSize - length >= BLOCK) return true;
  let wanted = max(<u64>length + <u64>BLOCK, (<u64>roomSize) << 1);
  if (wanted > <u64>i32.MAX_VALUE) return false;
  let moved = alloc(<u32>wanted);
  if (!moved) return false;
  memory.copy(moved, room, length);
  free(room);
  room = moved;
  roomSize = <u32>wanted;
  return true;
}

/** Reads the next block behind what is there. */
function readBlock(): bool {
  let size = min(total - read, BLOCK);
  if (!packed) {
    if (!fetch(read, size, room + length)) return false;
  } else if (!unpackBlock(size, room + length)) return false;
  read += size;
  length += size;
  return true;
}

function unpackBlock(size: u32, to: usize): bool {
  if (!block) block = alloc(BLOCK);
  if (!block) return false;
  isDamaged = true;
  if (given - givenRead < 4 || !fetch(givenRead, 4, block)) return false;
  let follow = load<u32>(block);
  givenRead += 4;
  if (follow > size || follow > given - givenRead || !fetch(givenRead, follow, block)) return false;
  givenRead += follow;
  if (follow == size) memory.copy(to, block, size);
  else if (!unpack(block, follow, to, size)) return false;
  isDamaged = false;
  return true;
}

/** Has the host write a part of the configuration to `to`, or to where it has room if that is 0. */
function fetch(at: u32, size: u32, to: usize): bool {
  takeBack();
  if (to) landAt(to, size);
  if (!getBuffer(PLUGIN_CONFIGURATION, at, size) || givenLength() < size) return false;
  // Where a host asks for memory more than once, or not at all.
  if (to && givenBytes() != to) memory.copy(to, givenBytes(), size);
  return true;
}
