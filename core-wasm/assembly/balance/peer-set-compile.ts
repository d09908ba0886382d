/** Compiles a source, and what is left of an older image, into the image of a peer set. */
import { alloc, free, give, inMemory } from "../memory/heap";
import { E_CORRUPT, E_LIMIT, E_MEMORY, E_SOURCE, OK } from "../status";
import { checksum64 } from "./checksum";
import { crc32 } from "./crc32";
import { placeMaglev } from "./maglev";
import {
  bucketBits,
  bucketBytes,
  compareAddresses,
  hasRing,
  I_BITS,
  I_CHECKSUM,
  I_DISPLAY,
  I_DISPLAY_LENGTH,
  I_FLAGS,
  I_IDS,
  I_IDS_LENGTH,
  I_KEY,
  I_KEY_LENGTH,
  I_LIMITS,
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
  LIMITS_SIZE,
  layOut,
  MAX_ID,
  MAX_PEERS,
  MAX_WEIGHT,
  NONE,
  P_ID,
  P_ID_LENGTH,
  P_SESSION,
  P_WEIGHT,
  PEER_SIZE,
  POINTS_PER_WEIGHT,
  peerAt,
  peersOf,
  placesOf,
  separatorOf,
} from "./peer-set-layout";
import {
  checkSource,
  readPeers,
  sourceDisplayLength,
  sourceFlags,
  sourceIsChanges,
  sourceKeyLength,
  sourceLimits,
  sourceMethod,
  sourcePeerCount,
  sourceTemplateLength,
  sourceTexts,
  sourceTextsLength,
} from "./peer-set-source";
import { peersAreSound } from "./peer-set-validate";
import { HISTOGRAM_BYTES } from "./radix-sort";
import { mergePoints } from "./ring-merge";
import { freshPoints, LEAP_BYTES } from "./ring-points";

/** True if the points of `old` are those of the ring that `source` asks for. */
function sameRing(source: usize, old: usize): bool {
  return old != 0 && hasRing(sourceMethod(source)) && load<u8>(old, I_METHOD) == sourceMethod(source);
}

/**
 * Writes the peers of the new image, in order, from the `count` records that `order` lists and the peers of `old`.
 * Fills `remap` (u32[peers of old]) with the new index of each old peer whose points stay, else NONE, and `fresh` with
 * the indices of peers whose points are to be made. Counts go into the header of `out`; returns the number of fresh ones.
 */
function placePeers(
  source: usize,
  old: usize,
  records: usize,
  order: usize,
  count: u32,
  remap: usize,
  fresh: usize,
  out: usize,
): u32 {
  let stay = sourceIsChanges(source);
  let reuse = sameRing(source, old);
  let oldCount = peersOf(old);
  let i: u32 = 0;
  let j: u32 = 0;
  let placed: u32 = 0;
  let made: u32 = 0;
  let weights: u32 = 0;
  while (i < count || j < oldCount) {
    let next = i < count ? records + load<u32>(order + ((<usize>i) << 2)) * PEER_SIZE : 0;
    let before = j < oldCount ? peerAt(old, j) : 0;
    let side = !next ? 1 : !before ? -1 : compareAddresses(next, before);
    let from = side <= 0 ? next : before;
    let weight: u32 = load<u16>(from, P_WEIGHT);
    let present = side <= 0 ? weight > 0 : stay;
    let kept = present && reuse && side >= 0 && load<u16>(before, P_WEIGHT) == weight;
    if (side >= 0) {
      store<u32>(remap + ((<usize>j) << 2), kept ? placed : NONE);
      j++;
    }
    if (side <= 0) i++;
    if (!present) continue;
    if (!kept) {
      store<u32>(fresh + ((<usize>made) << 2), placed);
      made++;
    }
    let to = peerAt(out, placed);
    memory.copy(to, from, PEER_SIZE);
    // Until `writeIds` the id is named by its address: in the source, or in the old image.
    if (side > 0) store<u32>(to, <u32>old + load<u32>(to, P_ID), P_ID);
    else store<u32>(to, crc32(0, <usize>load<u32>(to, P_ID), load<u8>(to, P_ID_LENGTH)), P_SESSION);
    placed++;
    weights += weight;
  }
  store<u32>(out, placed, I_PEER_COUNT);
  let method = sourceMethod(source);
  store<u32>(out, hasRing(method) ? weights * POINTS_PER_WEIGHT : placesOf(method, placed), I_POINT_COUNT);
  return made;
}

/**
 * Copies the id of every peer to `ids` (an offset that `layOut` gave); returns the length of all, or NONE where an id
 * can't be one: an old image need not have been validated.
 */
function writeIds(image: usize, ids: u32): u32 {
  let at = ids;
  for (let i: u32 = 0; i < load<u32>(image, I_PEER_COUNT); i++) {
    let peer = peerAt(image, i);
    let length: u32 = load<u8>(peer, P_ID_LENGTH);
    let id: usize = load<u32>(peer, P_ID);
    if (length > MAX_ID || separatorOf(peer) + 2 > length || !inMemory(id, length)) return NONE;
    memory.copy(image + at, id, length);
    store<u32>(peer, at, P_ID);
    at += length;
  }
  return at - ids;
}

/** Weight of the ring of `source` at most, or a status, where its peers have `own`: a list of changes is joined by old peers. */
function weightBound(source: usize, old: usize, own: u32): i32 {
  if (!hasRing(sourceMethod(source)) || !sourceIsChanges(source)) return own;
  for (let i: u32 = 0; i < peersOf(old); i++) own += load<u16>(peerAt(old, i), P_WEIGHT);
  return own > MAX_WEIGHT ? E_LIMIT : <i32>own;
}

/**
 * Compiles `source` and stores the address of the image, a new block, and its length in bytes at `result`, u32 each.
 * Returns OK or a status. `old` is 0 or the valid image of an older state of the same upstream: what did not change is
 * taken from there, and the result is the same, byte for byte, as without it (for a list of changes: as of the full list).
 */
export function peerSetCompile(source: usize, length: u32, old: usize, result: usize): i32 {
  let own = checkSource(source, length);
  if (own < 0) return own;
  let weights = weightBound(source, old, own);
  if (weights < 0) return weights;
  // Of a ring that goes on, only the points of the peers named in the source may have to be made.
  let made: u32 = (sameRing(source, old) ? own : weights) * POINTS_PER_WEIGHT;
  let points: u32 = weights * POINTS_PER_WEIGHT;
  let read = sourcePeerCount(source);
  let peers = read + peersOf(old);
  let out = alloc(
    IMAGE_HEADER +
      peers * (PEER_SIZE + MAX_ID) +
      points * 6 +
      bucketBytes(points) +
      3 +
      sourceTextsLength(source) +
      (placesOf(sourceMethod(source), peers) << 1),
  );
  let work = alloc(HISTOGRAM_BYTES + LEAP_BYTES + read * (PEER_SIZE + 4) + peers * 28 + 8 + made * 16);
  let status = out && work ? writeImage(source, old, out, work, made) : E_MEMORY;
  free(work);
  if (status < 0) {
    free(out);
    return status;
  }
  store<u32>(result, <u32>give(out));
  store<u32>(result, status, 4);
  return OK;
}

/**
 * Writes the image of a checked source to `out` and returns its size, or a status. `work` holds a histogram, leaps,
 * Peer[read] records, u32[read] order, u32[peers] each of fresh, spare and remap, and twice u64[made] points, or the
 * work of Maglev.
 */
function writeImage(source: usize, old: usize, out: usize, work: usize, most: u32): i32 {
  let read = sourcePeerCount(source);
  let peers = (<usize>(read + peersOf(old))) << 2;
  let leaps = work + HISTOGRAM_BYTES;
  let records = leaps + LEAP_BYTES;
  let order = records + read * PEER_SIZE;
  let fresh = order + ((<usize>read) << 2);
  let spare = fresh + peers;
  let remap = spare + peers;
  let points = (remap + peers + 7) & ~7;
  let sorted = points + ((<usize>most) << 3);

  let count = readPeers(source, records, order, spare);
  if (count < 0) return count;
  memory.fill(out, 0, IMAGE_HEADER);
  let made = placePeers(source, old, records, order, <u32>count, remap, fresh, out);
  if (load<u32>(out, I_PEER_COUNT) > MAX_PEERS) return E_LIMIT;
  store<u32>(out, IMAGE_MAGIC);
  store<u32>(out, IMAGE_VERSION, I_VERSION);
  store<u8>(out, <u8>sourceMethod(source), I_METHOD);
  store<u16>(out, <u16>sourceFlags(source), I_FLAGS);
  let ring = hasRing(sourceMethod(source));
  if (ring) store<u8>(out, <u8>bucketBits(load<u32>(out, I_POINT_COUNT)), I_BITS);
  memory.copy(out + I_LIMITS, sourceLimits(source), LIMITS_SIZE);
  store<u32>(out, sourceTemplateLength(source), I_TEMPLATE_LENGTH);
  store<u32>(out, sourceKeyLength(source), I_KEY_LENGTH);
  store<u32>(out, sourceDisplayLength(source), I_DISPLAY_LENGTH);
  // Twice: the ids begin where the first says, and what follows them is placed once their length is known.
  layOut(out, true);
  let ids = writeIds(out, load<u32>(out, I_IDS));
  if (ids == NONE) return E_CORRUPT;
  store<u32>(out, ids, I_IDS_LENGTH);
  layOut(out, true);
  copyTexts(source, out);
  if (!peersAreSound(out)) return old ? E_CORRUPT : E_SOURCE;
  if (!ring) {
    if (load<u32>(out, I_POINT_COUNT)) placeMaglev(out, points);
  } else if (load<u32>(out, I_POINT_COUNT)) {
    let end = freshPoints(out, fresh, spare, made, points, sorted, work, leaps);
    if (!mergePoints(out, sorted, end, sameRing(source, old) ? old : 0, peersOf(old), remap)) return E_CORRUPT;
  }
  let size = load<u32>(out, I_SIZE);
  store<u64>(out, checksum64(out + I_SIZE, size - <u32>I_SIZE), I_CHECKSUM);
  return <i32>size;
}

function copyTexts(source: usize, out: usize): void {
  let from = sourceTexts(source);
  let template = load<u32>(out, I_TEMPLATE);
  let owners = load<u32>(out, I_OWNERS) + (load<u32>(out, I_POINT_COUNT) << 1);
  memory.fill(out + owners, 0, template - owners);
  memory.copy(out + load<u32>(out, I_KEY), from, sourceKeyLength(source));
  from += sourceKeyLength(source);
  memory.copy(out + load<u32>(out, I_DISPLAY), from, sourceDisplayLength(source));
  from += sourceDisplayLength(source);
  memory.copy(out + template, from, sourceTemplateLength(source));
}
