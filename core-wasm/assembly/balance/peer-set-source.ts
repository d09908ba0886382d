/**
 * What a peer set is compiled from. Little-endian, written by `encodePeerSet` of the binding.
 *
 *   0  u32 magic `NJPS`       12  u32 key length
 *   4  u16 format version     16  u32 display length
 *   6  u8  method             20  u32 template length
 *   7  u8  flags              24  u32 max fails, fail timeout, max conns, slow start, as in the image
 *   8  u32 peer count         40  key, display, template
 *                                 then the peers, packed, 24 bytes and the id
 *
 * Peer: 0 u16 port | 2 u16 weight | 4 u8 length of the id | 5 u8 length of the address within it | 6 u8 family, 4 or 6
 * | 7 u8 flags, as in the image | 8 u64 upper and u64 lower half of the address (of IPv4: the upper 32 bits) | 24 the id, `ip:port` or
 * `[ip]:port`. Two peers are one if family, address and port are the same.
 *
 * Flag 1 (*changes*): the peers are changes to those of an older image, a weight of 0 takes a peer out, and all others
 * stay. Without the flag they are all the peers there are, and a weight of 0 is an error. The other flags are those of
 * the set, shifted left by one.
 */

import { BY_ADDRESS, mergeSort } from "../memory/merge-sort";
import { E_LIMIT, E_SOURCE } from "../status";
import {
  compareAddresses,
  flagsFit,
  hasRing,
  MAX_ID,
  MAX_PEERS,
  MAX_TEXT,
  MAX_WEIGHT,
  P_ADDRESS,
  P_FLAGS,
  P_ID,
  P_ID_LENGTH,
  P_PORT,
  P_WEIGHT,
  PEER_DRAINING,
  PEER_SIZE,
} from "./peer-set-layout";

const SOURCE_MAGIC: u32 = 0x53504a4e;
const SOURCE_VERSION: u32 = 2;
const SOURCE_HEADER: u32 = 40;
const PEER_HEAD: usize = 24;

const S_VERSION: usize = 4;
const S_METHOD: usize = 6;
const S_FLAGS: usize = 7;
const S_PEER_COUNT: usize = 8;
const S_KEY_LENGTH: usize = 12;
const S_DISPLAY_LENGTH: usize = 16;
const S_TEMPLATE_LENGTH: usize = 20;
const S_LIMITS: usize = 24;

export function sourceMethod(source: usize): u32 {
  return load<u8>(source, S_METHOD);
}

export function sourceIsChanges(source: usize): bool {
  return (load<u8>(source, S_FLAGS) & 1) != 0;
}

/** Flags of the set. */
export function sourceFlags(source: usize): u32 {
  return load<u8>(source, S_FLAGS) >> 1;
}

/** Address of the four words of limits. */
export function sourceLimits(source: usize): usize {
  return source + S_LIMITS;
}

export function sourcePeerCount(source: usize): u32 {
  return load<u32>(source, S_PEER_COUNT);
}

export function sourceKeyLength(source: usize): u32 {
  return load<u32>(source, S_KEY_LENGTH);
}

export function sourceDisplayLength(source: usize): u32 {
  return load<u32>(source, S_DISPLAY_LENGTH);
}

export function sourceTemplateLength(source: usize): u32 {
  return load<u32>(source, S_TEMPLATE_LENGTH);
}

/** Bytes of key, display and template together. */
export function sourceTextsLength(source: usize): u32 {
  return sourceKeyLength(source) + sourceDisplayLength(source) + sourceTemplateLength(source);
}

/** Key, display and template, one after another. */
export function sourceTexts(source: usize): usize {
  return source + SOURCE_HEADER;
}

/**
 * Checks everything of a source but the spelling of its addresses. Returns the weight of its peers (0 without a ring),
 * before duplicates are merged, or a status.
 */
export function checkSource(source: usize, length: u32): i32 {
  if (length < SOURCE_HEADER || load<u32>(source) != SOURCE_MAGIC || load<u16>(source, S_VERSION) != SOURCE_VERSION) {
    return E_SOURCE;
  }
  if (!flagsFit(sourceMethod(source), sourceFlags(source))) return E_SOURCE;
  let peers = sourcePeerCount(source);
  if (
    peers > MAX_PEERS ||
    max(max(sourceKeyLength(source), sourceDisplayLength(source)), sourceTemplateLength(source)) > MAX_TEXT
  ) {
    return E_LIMIT;
  }
  let p = sourcePeers(source);
  let end = source + length;
  let lightest: u32 = sourceIsChanges(source) ? 0 : 1;
  let weights: u32 = 0;
  for (; peers; peers--) {
    if (p + PEER_HEAD > end) return E_SOURCE;
    let weight = <u32>load<u16>(p, 2);
    if (!load<u16>(p) || weight < lightest) return E_SOURCE;
    weights += weight;
    let id = load<u8>(p, 4);
    let six = load<u8>(p, 6) == 6;
    if ((!six && load<u8>(p, 6) != 4) || <u32>id > MAX_ID || load<u8>(p, 7) > <u8>PEER_DRAINING) return E_SOURCE;
    // An id has at least a colon and a digit behind its address.
    if (<u32>load<u8>(p, 5) + (six ? 4 : 2) > <u32>id) return E_SOURCE;
    p += PEER_HEAD + id;
  }
  if (p != end) return E_SOURCE;
  if (!hasRing(sourceMethod(source))) return 0;
  return weights > MAX_WEIGHT ? E_LIMIT : <i32>weights;
}

function sourcePeers(source: usize): usize {
  return sourceTexts(source) + sourceTextsLength(source);
}

/**
 * Reads the peers of a checked source into `records` (Peer[count], unordered) and their canonical order, without
 * duplicates, into `order` (u32[count]); `spare` is u32[count] of work. Returns how many there are, or a status.
 */
export function readPeers(source: usize, records: usize, order: usize, spare: usize): i32 {
  let count = sourcePeerCount(source);
  let p = sourcePeers(source);
  for (let i: u32 = 0; i < count; i++) {
    let record = records + i * PEER_SIZE;
    store<u32>(record, <u32>(p + PEER_HEAD), P_ID);
    store<u32>(record, load<u32>(p), P_PORT);
    store<u32>(record, load<u32>(p, 4), P_ID_LENGTH);
    memory.copy(record + P_ADDRESS, p + 8, 16);
    store<u32>(order + ((<usize>i) << 2), i);
    p += PEER_HEAD + load<u8>(p, 4);
  }
  let sorted = mergeSort(order, spare, count, BY_ADDRESS, records);
  // Of duplicates the greatest weight stays, since "the first one" would depend on the order of the list, and they drain
  // if all of them do.
  let kept: u32 = 0;
  let last: usize = 0;
  for (let i: u32 = 0; i < count; i++) {
    let index = load<u32>(sorted + ((<usize>i) << 2));
    let record = records + index * PEER_SIZE;
    if (kept && compareAddresses(last, record) == 0) {
      store<u16>(last, <u16>max<u32>(load<u16>(last, P_WEIGHT), load<u16>(record, P_WEIGHT)), P_WEIGHT);
      store<u8>(last, load<u8>(last, P_FLAGS) & load<u8>(record, P_FLAGS), P_FLAGS);
      continue;
    }
    store<u32>(order + ((<usize>kept) << 2), index);
    kept++;
    last = record;
  }
  return <i32>kept;
}
