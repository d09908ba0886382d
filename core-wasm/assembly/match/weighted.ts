/** Methods that look at every peer: smooth round robin, fewest requests under way, drawing by lot. All go by weight. */
import {
  I_METHOD,
  I_PEER_COUNT,
  I_SLOW_START,
  METHOD_LEAST_CONN,
  METHOD_ROUND_ROBIN,
  NONE,
  P_WEIGHT,
  peerAt,
} from "../balance/peer-set-layout";
import { mix32 } from "../memory/bytes";
import { D_PEERS, D_UPSTREAM, X_CURSOR, X_NOW, X_RANDOM, X_TABLE } from "../table/context";
import {
  COUNT_CONNS,
  CURSOR_BEGUN,
  countsOf,
  SLOT_RAMPS,
  SLOT_SINCE,
  SLOT_STATE,
  slotOf,
  tokenOf,
} from "../table/peer-slots";
import { TROUBLE_RAMPS, TROUBLE_WEIGHTS, U_TROUBLE } from "../table/upstream-record";
import { usable } from "./usable";

/** Weights of smooth round robin are in 1/256, and slow start begins at 8/256. */
const WHOLE: u32 = 256;
const FIRST_SHARE: u32 = 8;

/** Weight of a peer in 1/256, as far as its slow start has come. */
function weightOf(ctx: usize, index: u32, ramps: bool): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let weight: u32 = load<u16>(peerAt(image, index), P_WEIGHT);
  if (ramps) {
    let slot = slotOf(load<u32>(ctx, X_TABLE), tokenOf(image, index));
    let whole = load<u32>(image, I_SLOW_START);
    let passed = slot ? load<u32>(ctx, X_NOW) - load<u32>(slot, SLOT_SINCE) : whole;
    if (passed < whole && load<u32>(slot, SLOT_STATE) & SLOT_RAMPS) {
      return weight * (FIRST_SHARE + <u32>((<u64>(WHOLE - FIRST_SHARE) * <u64>passed) / <u64>whole));
    }
  }
  return weight * WHOLE;
}

/**
 * Smooth weighted round robin, as NGINX has it: each usable peer gathers its weight, the one that has most is chosen and
 * gives up what all have gathered. With `least` it is done among the peers with the fewest requests under way by weight.
 * NONE if no peer is usable.
 */
export function chooseSmoothly(ctx: usize, least: bool): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let record: usize = load<u32>(ctx, D_UPSTREAM);
  let cursor: usize = load<u32>(ctx, X_CURSOR);
  let method: u32 = load<u8>(image, I_METHOD);
  // As with NGINX Plus, slow start is for these two only.
  let ramps =
    (load<u32>(record, U_TROUBLE) & TROUBLE_RAMPS) != 0 &&
    (method == METHOD_ROUND_ROBIN || method == METHOD_LEAST_CONN);
  let count = load<u32>(image, I_PEER_COUNT);
  let begun = load<u32>(cursor, CURSOR_BEGUN) != 0;
  store<u32>(cursor, 1, CURSOR_BEGUN);
  let fewest: u64 = 0;
  let fewestWeight: u64 = 0;
  for (let i: u32 = 0; i < count && least; i++) {
    if (!usable(ctx, i)) continue;
    let conns: u64 = load<u32>(countsOf(ctx, tokenOf(image, i)), COUNT_CONNS);
    let weight: u64 = weightOf(ctx, i, ramps);
    if (!fewestWeight || conns * fewestWeight < fewest * weight) {
      fewest = conns;
      fewestWeight = weight;
    }
  }
  let best = NONE;
  let most: i64 = 0;
  let total: i64 = 0;
  for (let i: u32 = 0; i < count; i++) {
    let counts = countsOf(ctx, tokenOf(image, i));
    let weight = weightOf(ctx, i, ramps);
    // What a context begins with depends on chance, so that many do not move in step.
    if (!begun) store<i64>(counts, (<u64>mix32(load<u32>(ctx, X_RANDOM) * (2 * i + 1)) * <u64>weight) >> 32);
    if (!usable(ctx, i)) continue;
    if (least && <u64>load<u32>(counts, COUNT_CONNS) * fewestWeight != fewest * <u64>weight) continue;
    let gathered = load<i64>(counts) + weight;
    store<i64>(counts, gathered);
    total += weight;
    if (best == NONE || gathered > most) {
      best = i;
      most = gathered;
    }
  }
  if (best != NONE) store<i64>(countsOf(ctx, tokenOf(image, best)), most - total);
  return best;
}

/** A usable peer other than `but`, drawn by weight with an evenly spread number; NONE if there is none. */
export function drawPeer(ctx: usize, random: u32, but: u32): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let count = load<u32>(image, I_PEER_COUNT);
  let total: u64 = 0;
  if (!(load<u32>(<usize>load<u32>(ctx, D_UPSTREAM), U_TROUBLE) & TROUBLE_WEIGHTS)) {
    let lots = but == NONE ? count : count - 1;
    let drawn = <u32>((<u64>lots * <u64>random) >> 32);
    if (drawn >= but) drawn++;
    if (drawn < count && usable(ctx, drawn)) return drawn;
    // Another number: this one stands for a peer that can't be had, and would always give the same other one.
    random = mix32(random + 0x7f4a7c15);
  }
  for (let i: u32 = 0; i < count; i++) {
    if (i != but && usable(ctx, i)) total += load<u16>(peerAt(image, i), P_WEIGHT);
  }
  let point = (total * <u64>random) >> 32;
  for (let i: u32 = 0; i < count; i++) {
    if (i == but || !usable(ctx, i)) continue;
    let weight: u64 = load<u16>(peerAt(image, i), P_WEIGHT);
    if (point < weight) return i;
    point -= weight;
  }
  return NONE;
}

/** Of two peers, the second of which may be NONE, the one with fewer requests under way by weight, or the first. */
export function fewerUnderWay(ctx: usize, a: u32, b: u32): u32 {
  if (b == NONE) return a;
  let image: usize = load<u32>(ctx, D_PEERS);
  let first: u64 = load<u32>(countsOf(ctx, tokenOf(image, a)), COUNT_CONNS);
  let second: u64 = load<u32>(countsOf(ctx, tokenOf(image, b)), COUNT_CONNS);
  return second * <u64>load<u16>(peerAt(image, a), P_WEIGHT) < first * <u64>load<u16>(peerAt(image, b), P_WEIGHT)
    ? b
    : a;
}
