/** How much memory compiling a source takes. Both answers are upper bounds: duplicates are not merged yet. */
import { E_LIMIT } from "../status";
import {
  bucketBytes,
  I_METHOD,
  I_PEER_COUNT,
  IMAGE_HEADER,
  MAX_ID,
  MAX_POINTS,
  METHOD_ROUND_ROBIN,
  P_WEIGHT,
  PEER_SIZE,
  POINTS_PER_WEIGHT,
  peerAt,
} from "./peer-set-layout";
import {
  checkSource,
  sourceDisplayLength,
  sourceIsChanges,
  sourceKeyLength,
  sourceMethod,
  sourcePeerCount,
  sourceTemplateLength,
} from "./peer-set-source";
import { HISTOGRAM_BYTES } from "./radix-sort";
import { LEAP_BYTES } from "./ring-points";

/** Number of peers of an image; 0 where there is none. */
export function peersOf(image: usize): u32 {
  return image ? load<u32>(image, I_PEER_COUNT) : 0;
}

function pointsAskedBy(old: usize): i64 {
  let weights: i64 = 0;
  for (let i: u32 = 0; i < peersOf(old); i++) weights += load<u16>(peerAt(old, i), P_WEIGHT);
  return weights * POINTS_PER_WEIGHT;
}

/** Points of the new ring at most, or a status. Only those of a list of changes are joined by the old ones. */
function pointBound(source: usize, length: u32, old: usize): i32 {
  let points: i64 = checkSource(source, length);
  if (points < 0 || sourceMethod(source) == METHOD_ROUND_ROBIN || !sourceIsChanges(source)) return <i32>points;
  points += pointsAskedBy(old);
  return points > <i64>MAX_POINTS ? E_LIMIT : <i32>points;
}

/** Points that may have to be made at most: if the old image has the same ring, its points are there already. */
export function freshPointBound(source: usize, length: u32, old: usize): u32 {
  let same = old != 0 && load<u8>(old, I_METHOD) == sourceMethod(source);
  return <u32>(same ? checkSource(source, length) : pointBound(source, length, old));
}

/**
 * Bytes that `peerSetCompile` needs at most for the image of `source`, or a status. `old` is 0 or the image that will be
 * given with it.
 */
export function peerSetImageBound(source: usize, length: u32, old: usize): i32 {
  let points = pointBound(source, length, old);
  if (points < 0) return points;
  let peers = sourcePeerCount(source) + (sourceIsChanges(source) ? peersOf(old) : 0);
  let texts = sourceKeyLength(source) + sourceDisplayLength(source) + sourceTemplateLength(source);
  return <i32>(IMAGE_HEADER + peers * (PEER_SIZE + MAX_ID) + <u32>points * 6 + bucketBytes(points) + 3 + texts);
}

/** Bytes of working memory that `peerSetCompile` needs for `source`, or a status. `old` as for `peerSetImageBound`. */
export function peerSetWorkSize(source: usize, length: u32, old: usize): i32 {
  let bound = peerSetImageBound(source, length, old);
  if (bound < 0) return bound;
  let read = sourcePeerCount(source);
  let perPeer = read * (PEER_SIZE + 4) + (read + peersOf(old)) * 8 + peersOf(old) * 4;
  return <i32>(HISTOGRAM_BYTES + LEAP_BYTES + perPeer + 8 + freshPointBound(source, length, old) * 16);
}
