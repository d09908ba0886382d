/** Checks an image before it is used: whatever passes can be looked up, walked and merged without reading outside. */
import { E_CHECKSUM, E_CORRUPT, E_MAGIC, E_TRUNCATED, E_VERSION, OK } from "../status";
import { checksum64 } from "./checksum";
import { crc32 } from "./crc32";
import {
  bucketBits,
  compareAddresses,
  compareIds,
  flagsFit,
  hasRing,
  I_BITS,
  I_BUCKETS,
  I_CHECKSUM,
  I_DISPLAY_LENGTH,
  I_FLAGS,
  I_HASHES,
  I_IDS,
  I_IDS_LENGTH,
  I_KEY_LENGTH,
  I_METHOD,
  I_OWNERS,
  I_PEER_COUNT,
  I_POINT_COUNT,
  I_SIZE,
  I_TEMPLATE,
  I_TEMPLATE_LENGTH,
  I_VERSION,
  IMAGE_HEADER,
  IMAGE_MAGIC,
  IMAGE_VERSION,
  layOut,
  MAX_ID,
  MAX_PEERS,
  MAX_POINTS,
  MAX_TEXT,
  P_ADDRESS,
  P_FAMILY,
  P_FLAGS,
  P_ID,
  P_ID_LENGTH,
  P_PORT,
  P_SESSION,
  P_WEIGHT,
  PEER_DRAINING,
  POINTS_PER_WEIGHT,
  peerAt,
  placesOf,
  separatorOf,
} from "./peer-set-layout";

/**
 * Status of the header of an image of which `length` bytes are there: magic, version, and every offset, which the counts
 * decide. Constant time; with it alone, the sections lie inside the image, but their contents may be anything.
 */
export function peerSetHeader(image: usize, length: u32): i32 {
  if (length < IMAGE_HEADER) return E_TRUNCATED;
  if (load<u32>(image) != IMAGE_MAGIC) return E_MAGIC;
  if (load<u32>(image, I_VERSION) != IMAGE_VERSION) return E_VERSION;
  let method: u32 = load<u8>(image, I_METHOD);
  let peers = load<u32>(image, I_PEER_COUNT);
  let points = load<u32>(image, I_POINT_COUNT);
  let template = load<u32>(image, I_TEMPLATE_LENGTH);
  let ids = load<u32>(image, I_IDS_LENGTH);
  let key = load<u32>(image, I_KEY_LENGTH);
  let display = load<u32>(image, I_DISPLAY_LENGTH);
  if (!flagsFit(method, load<u16>(image, I_FLAGS)) || peers > MAX_PEERS || points > MAX_POINTS) return E_CORRUPT;
  let ring = hasRing(method);
  if (ring ? (points != 0) != (peers != 0) : points != placesOf(method, peers)) return E_CORRUPT;
  if (max(max(template, key), display) > MAX_TEXT || ids > peers * MAX_ID) return E_CORRUPT;
  if (<u32>load<u8>(image, I_BITS) != (ring ? bucketBits(points) : 0) || layOut(image, false)) return E_CORRUPT;
  return load<u32>(image, I_SIZE) > length ? E_TRUNCATED : OK;
}

/** True if an id is made of the characters of addresses and ports only: it is shown and sent on as it stands. */
function plainId(id: usize, length: u32): bool {
  for (let i: u32 = 0; i < length; i++) {
    let c: u32 = load<u8>(id + i);
    // 0-9 and `:`, a-f, `.`, `[`, `]`.
    if (c - 0x30 > 10 && c - 0x61 > 5 && c != 0x2e && c != 0x5b && c != 0x5d) return false;
  }
  return true;
}

/** True if each peer is whole, its id stands where it must, and peers ascend by address and port. */
export function peersAreSound(image: usize): bool {
  let peers = load<u32>(image, I_PEER_COUNT);
  let id = load<u32>(image, I_IDS);
  let idsEnd = id + load<u32>(image, I_IDS_LENGTH);
  let weights: u32 = 0;
  for (let i: u32 = 0; i < peers; i++) {
    let peer = peerAt(image, i);
    let family: u32 = load<u8>(peer, P_FAMILY);
    let idLength: u32 = load<u8>(peer, P_ID_LENGTH);
    let separator = separatorOf(peer);
    if (family != 4 && family != 6) return false;
    if (family == 4 && load<u32>(peer, P_ADDRESS) | load<u64>(peer, P_ADDRESS + 8)) return false;
    if (!load<u16>(peer, P_PORT) || !load<u16>(peer, P_WEIGHT) || load<u8>(peer, P_FLAGS) > <u8>PEER_DRAINING)
      return false;
    if (load<u32>(peer, P_ID) != id || idLength > idsEnd - id || separator + 2 > idLength) return false;
    if (load<u8>(image + id + separator) != 0x3a || !plainId(image + id, idLength)) return false;
    if (i && compareAddresses(peerAt(image, i - 1), peer) >= 0) return false;
    id += idLength;
    weights += load<u16>(peer, P_WEIGHT);
  }
  if (id != idsEnd) return false;
  return !load<u8>(image, I_BITS) || load<u32>(image, I_POINT_COUNT) == weights * POINTS_PER_WEIGHT;
}

/** True if the session id of each peer is the CRC-32 of its id. */
function sessionsAreSound(image: usize): bool {
  for (let i: u32 = 0; i < load<u32>(image, I_PEER_COUNT); i++) {
    let peer = peerAt(image, i);
    if (load<u32>(peer, P_SESSION) != crc32(0, image + load<u32>(peer, P_ID), load<u8>(peer, P_ID_LENGTH)))
      return false;
  }
  return true;
}

/**
 * True if each owner is a peer, and, on a ring, hashes ascend, equal ones in the order of ids, and the buckets say where
 * hashes begin.
 */
function ownersAreSound(image: usize): bool {
  let peers = load<u32>(image, I_PEER_COUNT);
  let points = load<u32>(image, I_POINT_COUNT);
  let ring = load<u8>(image, I_BITS) != 0;
  let hashes = image + load<u32>(image, I_HASHES);
  let owners = image + load<u32>(image, I_OWNERS);
  let bucket = image + load<u32>(image, I_BUCKETS);
  let shift = 32 - <u32>load<u8>(image, I_BITS);
  let next: u32 = 0;
  let before: u32 = 0;
  let ownerBefore: u32 = 0;
  for (let i: u32 = 0; i < points; i++) {
    let owner: u32 = load<u16>(owners + ((<usize>i) << 1));
    if (owner >= peers) return false;
    if (!ring) continue;
    let hash = load<u32>(hashes + ((<usize>i) << 2));
    if (hash < before) return false;
    if (i && hash == before && owner != ownerBefore && compareIds(image, ownerBefore, owner) > 0) return false;
    for (let top = hash >> shift; next <= top; next++) {
      if (load<u32>(bucket + ((<usize>next) << 2)) != i) return false;
    }
    before = hash;
    ownerBefore = owner;
  }
  if (!ring) return true;
  for (let last = (<u32>1) << (32 - shift); next <= last; next++) {
    if (load<u32>(bucket + ((<usize>next) << 2)) != points) return false;
  }
  return true;
}

/**
 * Status of an image of `length` bytes: OK, or what is wrong with it. Whether each point is the hash that its peer's id
 * gives is not computed again: wrong ones would be a badly balanced ring, which the checksum guards against.
 */
export function peerSetValidate(image: usize, length: u32): i32 {
  let status = peerSetHeader(image, length);
  if (status < 0) return status;
  let size = load<u32>(image, I_SIZE);
  if (size != length) return E_CORRUPT;
  if (checksum64(image + I_SIZE, size - <u32>I_SIZE) != load<u64>(image, I_CHECKSUM)) return E_CHECKSUM;
  let padding = load<u32>(image, I_OWNERS) + (load<u32>(image, I_POINT_COUNT) << 1);
  for (; padding < load<u32>(image, I_TEMPLATE); padding++) {
    if (load<u8>(image + padding)) return E_CORRUPT;
  }
  return peersAreSound(image) && sessionsAreSound(image) && ownersAreSound(image) ? OK : E_CORRUPT;
}
