/**
 * The numeric exports of peer sets and rings. Each answers with a value of zero and above or a status below zero, and
 * reads or writes nothing outside the memory, whatever it is given: pointers and lengths are checked here, and an image
 * by its header. That what stands behind the header is sound is for `peer_set_validate` to say, once, on load.
 */
import { inMemory } from "../memory/heap";
import { E_POINTER, E_STATE } from "../status";
import { crc32 } from "./crc32";
import { peerSetCompile } from "./peer-set-compile";
import {
  I_METHOD,
  I_PEER_COUNT,
  I_POINT_COUNT,
  I_SIZE,
  IMAGE_HEADER,
  NONE,
  P_ADDRESS_LENGTH,
  P_FAMILY,
  P_ID,
  P_ID_LENGTH,
  P_PORT,
  P_WEIGHT,
  peerAt,
} from "./peer-set-layout";
import { peerSetLookup, peerSetOwner, peerSetPosition, peerSetWalk, roundRobin } from "./peer-set-pick";
import { peerSetImageBound, peerSetWorkSize } from "./peer-set-sizes";
import { peerSetHeader, peerSetValidate } from "./peer-set-validate";

/** Status of a pointer that is to be an image. */
function imageStatus(image: usize): i32 {
  if (!inMemory(image, IMAGE_HEADER)) return E_POINTER;
  let size = load<u32>(image, I_SIZE);
  return inMemory(image, size) ? peerSetHeader(image, size) : E_POINTER;
}

/** As `imageStatus`; 0 stands for no image. */
function oldStatus(old: usize): i32 {
  return old ? imageStatus(old) : 0;
}

function sourceStatus(source: usize, length: u32, old: usize): i32 {
  return inMemory(source, length) ? oldStatus(old) : E_POINTER;
}

function overlaps(a: usize, aLength: u32, b: usize, bLength: u32): bool {
  return a < b + bLength && b < a + aLength;
}

/** CRC-32 of what gave `crc` (0 to begin with), followed by `length` bytes at `pointer`. Only a wrong pointer gives `crc` back. */
export function ring_crc32(crc: u32, pointer: usize, length: u32): u32 {
  return inMemory(pointer, length) ? crc32(crc, pointer, length) : crc;
}

/** Bytes that the image of a source may take, with `old` (0 or an image) as `peer_set_compile` will get it. */
export function peer_set_image_bound(source: usize, length: u32, old: usize): i32 {
  let status = sourceStatus(source, length, old);
  return status < 0 ? status : peerSetImageBound(source, length, old);
}

/** Bytes of working memory that compiling a source may take. */
export function peer_set_work_size(source: usize, length: u32, old: usize): i32 {
  let status = sourceStatus(source, length, old);
  return status < 0 ? status : peerSetWorkSize(source, length, old);
}

/** Compiles a source; see `peerSetCompile`. Returns the size of the image. Blocks that overlap are refused. */
export function peer_set_compile(
  source: usize,
  length: u32,
  old: usize,
  out: usize,
  capacity: u32,
  work: usize,
  workCapacity: u32,
): i32 {
  let status = sourceStatus(source, length, old);
  if (status < 0) return status;
  if (!inMemory(out, capacity) || !inMemory(work, workCapacity)) return E_POINTER;
  let oldSize = old ? load<u32>(old, I_SIZE) : 0;
  if (
    overlaps(out, capacity, work, workCapacity) ||
    overlaps(out, capacity, source, length) ||
    overlaps(work, workCapacity, source, length) ||
    overlaps(out, capacity, old, oldSize) ||
    overlaps(work, workCapacity, old, oldSize)
  ) {
    return E_POINTER;
  }
  return peerSetCompile(source, length, old, out, capacity, work, workCapacity);
}

/** Status of an image of `length` bytes. */
export function peer_set_validate(image: usize, length: u32): i32 {
  return inMemory(image, length) ? peerSetValidate(image, length) : E_POINTER;
}

/** Number of peers. */
export function peer_set_count(image: usize): i32 {
  let status = imageStatus(image);
  return status < 0 ? status : load<u32>(image, I_PEER_COUNT);
}

/** Number of points of the ring, 0 without one. */
export function peer_set_points(image: usize): i32 {
  let status = imageStatus(image);
  return status < 0 ? status : load<u32>(image, I_POINT_COUNT);
}

/** Method: 0 round robin, 1 ring, 2 ring of NGINX. */
export function peer_set_method(image: usize): i32 {
  let status = imageStatus(image);
  return status < 0 ? status : load<u8>(image, I_METHOD);
}

/** Index of the peer that owns `hash`; a status (E_STATE if there is no peer). */
export function peer_set_lookup(image: usize, hash: u32): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  let peer = peerSetLookup(image, hash);
  return peer == NONE ? E_STATE : peer;
}

/** Index of the peer that owns the CRC-32 of the `length` bytes at `key`. */
export function peer_set_lookup_key(image: usize, key: usize, length: u32): i32 {
  return inMemory(key, length) ? peer_set_lookup(image, crc32(0, key, length)) : E_POINTER;
}

/** Looks up `count` hashes (u32 each) at `hashes` and writes the peers' indices (u32 each) to `out`. */
export function peer_set_lookup_many(image: usize, hashes: usize, count: u32, out: usize): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  if (count > 1 << 28 || !inMemory(hashes, count << 2) || !inMemory(out, count << 2)) return E_POINTER;
  if (!load<u32>(image, I_PEER_COUNT)) return E_STATE;
  if (overlaps(out, count << 2, image, load<u32>(image, I_SIZE))) return E_POINTER;
  let end = hashes + ((<usize>count) << 2);
  for (; hashes < end; hashes += 4, out += 4) store<u32>(out, peerSetLookup(image, load<u32>(hashes)));
  return count;
}

/** Position that owns `hash`: where a walk begins. */
export function peer_set_position(image: usize, hash: u32): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  let position = peerSetPosition(image, hash);
  return position == NONE ? E_STATE : position;
}

/** Peer at a position. */
export function peer_set_owner(image: usize, position: u32): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  let points = load<u32>(image, I_POINT_COUNT);
  let positions = points ? points : load<u32>(image, I_PEER_COUNT);
  return position < positions ? peerSetOwner(image, position) : E_POINTER;
}

/**
 * Next position at or after `position` whose peer is not marked in the bitmap `tried` of `triedLength` bytes (at least
 * an eighth of the number of peers); E_STATE when every peer is marked.
 */
export function peer_set_walk(image: usize, position: u32, tried: usize, triedLength: u32): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  if (triedLength << 3 < load<u32>(image, I_PEER_COUNT) || !inMemory(tried, triedLength)) return E_POINTER;
  let next = peerSetWalk(image, position, tried);
  return next == NONE ? E_STATE : next;
}

/** Next peer by plain round robin; `cursor` points at the caller's u32. */
export function peer_set_round_robin(image: usize, cursor: usize): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  if (!inMemory(cursor, 4)) return E_POINTER;
  let peer = roundRobin(image, cursor);
  return peer == NONE ? E_STATE : peer;
}

/** Address of the record of a peer, or a status. */
function peerOf(image: usize, index: u32): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  return index < load<u32>(image, I_PEER_COUNT) ? <i32>peerAt(image, index) : E_POINTER;
}

/** Pointer to the id `ip:port` of a peer. */
export function peer_set_id(image: usize, index: u32): i32 {
  let peer = peerOf(image, index);
  return peer < 0 ? peer : <i32>(image + load<u32>(peer, P_ID));
}

/** Length of the id of a peer. */
export function peer_set_id_length(image: usize, index: u32): i32 {
  let peer = peerOf(image, index);
  return peer < 0 ? peer : load<u8>(peer, P_ID_LENGTH);
}

/** Pointer to the address of a peer, without brackets; it is a part of the id. */
export function peer_set_address(image: usize, index: u32): i32 {
  let peer = peerOf(image, index);
  return peer < 0 ? peer : <i32>(image + load<u32>(peer, P_ID) + (load<u8>(peer, P_FAMILY) == 6 ? 1 : 0));
}

/** Length of the address of a peer. */
export function peer_set_address_length(image: usize, index: u32): i32 {
  let peer = peerOf(image, index);
  return peer < 0 ? peer : load<u8>(peer, P_ADDRESS_LENGTH);
}

/** Port of a peer. */
export function peer_set_port(image: usize, index: u32): i32 {
  let peer = peerOf(image, index);
  return peer < 0 ? peer : load<u16>(peer, P_PORT);
}

/** Weight of a peer. */
export function peer_set_weight(image: usize, index: u32): i32 {
  let peer = peerOf(image, index);
  return peer < 0 ? peer : load<u16>(peer, P_WEIGHT);
}
