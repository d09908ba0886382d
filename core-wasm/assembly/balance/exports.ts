/**
 * The numeric exports of peer sets and rings. Each answers with a value of zero and above or a status below zero, and
 * reads or writes nothing outside the memory, whatever it is given: pointers and lengths are checked here, and an image
 * by its header. That what stands behind the header is sound is for `peer_set_validate` to say, once, on load.
 */
import { inMemory, isGiven } from "../memory/heap";
import { E_POINTER, E_STATE } from "../status";
import { crc32 } from "./crc32";
import { peerSetCompile } from "./peer-set-compile";
import { I_PEER_COUNT, I_SIZE, IMAGE_HEADER, NONE, positionsOf } from "./peer-set-layout";
import { peerSetLookup, peerSetOwner, peerSetPosition, peerSetWalk } from "./peer-set-pick";
import { peerSetHeader, peerSetValidate } from "./peer-set-validate";

/** Status of a pointer that is to be an image. */
function imageStatus(image: usize): i32 {
  if (!inMemory(image, IMAGE_HEADER)) return E_POINTER;
  let size = load<u32>(image, I_SIZE);
  return inMemory(image, size) ? peerSetHeader(image, size) : E_POINTER;
}

/** A number that is NONE where no peer can be had, as a status. */
function orState(peer: u32): i32 {
  return peer == NONE ? E_STATE : peer;
}

/** CRC-32 of what gave `crc` (0 to begin with), followed by `length` bytes at `pointer`. Only a wrong pointer gives `crc` back. */
export function ring_crc32(crc: u32, pointer: usize, length: u32): u32 {
  return inMemory(pointer, length) ? crc32(crc, pointer, length) : crc;
}

/**
 * Compiles a source; see `peerSetCompile`. On success the words u32 image, u32 length at `result` say where the image is;
 * it is the caller's, to be given back by `free`. Source and `old` (0 or an image) must be blocks that `alloc` or a
 * compile gave: memory that nobody owns may be written to before it is read.
 */
export function peer_set_compile(source: usize, length: u32, old: usize, result: usize): i32 {
  if (!isGiven(source, length) || !inMemory(result, 8)) return E_POINTER;
  if (old) {
    let status = imageStatus(old);
    if (status < 0) return status;
    if (!isGiven(old, load<u32>(old, I_SIZE))) return E_POINTER;
  }
  return peerSetCompile(source, length, old, result);
}

/** Status of an image of `length` bytes. */
export function peer_set_validate(image: usize, length: u32): i32 {
  return inMemory(image, length) ? peerSetValidate(image, length) : E_POINTER;
}

/** Index of the peer that owns `hash`; a status (E_STATE if there is no peer). */
export function peer_set_lookup(image: usize, hash: u32): i32 {
  let status = imageStatus(image);
  return status < 0 ? status : orState(peerSetLookup(image, hash));
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
  if (out < image + load<u32>(image, I_SIZE) && image < out + (count << 2)) return E_POINTER;
  let end = hashes + ((<usize>count) << 2);
  for (; hashes < end; hashes += 4, out += 4) store<u32>(out, peerSetLookup(image, load<u32>(hashes)));
  return count;
}

/** Position that owns `hash`: where a walk begins. */
export function peer_set_position(image: usize, hash: u32): i32 {
  let status = imageStatus(image);
  return status < 0 ? status : orState(peerSetPosition(image, hash));
}

/** Peer at a position. */
export function peer_set_owner(image: usize, position: u32): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  return position < positionsOf(image) ? peerSetOwner(image, position) : E_POINTER;
}

/**
 * Next position at or after `position` whose peer is not marked in the bitmap `tried` of `triedLength` bytes (at least
 * an eighth of the number of peers); E_STATE when every peer is marked.
 */
export function peer_set_walk(image: usize, position: u32, tried: usize, triedLength: u32): i32 {
  let status = imageStatus(image);
  if (status < 0) return status;
  if (triedLength << 3 < load<u32>(image, I_PEER_COUNT) || !inMemory(tried, triedLength)) return E_POINTER;
  return orState(peerSetWalk(image, position, tried));
}
