/**
 * Chooses a peer. The common case, a method that knows its peer at once and nothing that speaks against it, reads no
 * more than the image and the cursor. Else the order of mercy says what is forgiven, and the method chooses among the
 * peers that are usable then.
 */
import {
  I_FLAGS,
  I_METHOD,
  I_PEER_COUNT,
  I_POINT_COUNT,
  METHOD_IP_HASH,
  METHOD_LEAST_CONN,
  METHOD_RANDOM,
  METHOD_RANDOM_TWO,
  NONE,
  P_SESSION,
  P_WEIGHT,
  peerAt,
  positionsOf,
  SET_BOUNDED,
} from "../balance/peer-set-layout";
import { peerSetOwner, peerSetPosition } from "../balance/peer-set-pick";
import { mix32 } from "../memory/bytes";
import { OK } from "../status";
import {
  D_PEER,
  D_PEERS,
  D_POSITION,
  D_UPSTREAM,
  X_CURSOR,
  X_FORGIVEN,
  X_NOW,
  X_RANDOM,
  X_TABLE,
  X_TRIED,
  X_TRIED_COUNT,
} from "../table/context";
import {
  COUNT_CHECKED,
  COUNT_CONNS,
  COUNT_FAILS,
  COUNT_PROBED,
  CURSOR_FAILING,
  CURSOR_UNDER_WAY,
  countsOf,
  cursorOf,
  slotOf,
  tokenOf,
} from "../table/peer-slots";
import {
  TROUBLE_CAPPED,
  TROUBLE_COUNTED,
  TROUBLE_RAMPS,
  TROUBLE_STATES,
  TROUBLE_WEIGHTS,
  U_TROUBLE,
  U_WEIGHT,
} from "../table/upstream-record";
import { EASY, failuresAreOld, keepsSessions, showMercy, usable } from "./usable";
import { chooseSmoothly, drawPeer, fewerUnderWay } from "./weighted";

/** Attempts of ip_hash before it goes round robin, as NGINX has them. */
const IP_HASH_TRIES: u32 = 20;

/** The peer at `position`, or after it, that is usable and, with `bounded`, not above its share; NONE after a whole turn. */
function walk(ctx: usize, position: u32, bounded: bool): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let count = positionsOf(image);
  let total: u64 = bounded ? usableWeight(ctx) : 0;
  for (let left = count; left; left--) {
    let peer = peerSetOwner(image, position);
    if (usable(ctx, peer) && (!bounded || withinShare(ctx, peer, total))) {
      store<u32>(ctx, position, D_POSITION);
      return peer;
    }
    if (++position == count) position = 0;
  }
  return NONE;
}

/** Sum of the weights of the usable peers. */
function usableWeight(ctx: usize): u32 {
  if (load<u32>(ctx, X_FORGIVEN) == EASY) return load<u32>(<usize>load<u32>(ctx, D_UPSTREAM), U_WEIGHT);
  let image: usize = load<u32>(ctx, D_PEERS);
  let total: u32 = 0;
  for (let i: u32 = 0; i < load<u32>(image, I_PEER_COUNT); i++) {
    if (usable(ctx, i)) total += load<u16>(peerAt(image, i), P_WEIGHT);
  }
  return total;
}

/**
 * True if one request more leaves a peer with at most 1.25 times its share by weight, rounded up, of those under way
 * (Mirrokni, Thorup and Zadimoghaddam: Consistent Hashing with Bounded Loads, 2016). Some peer is always below that.
 */
function withinShare(ctx: usize, peer: u32, total: u64): bool {
  let image: usize = load<u32>(ctx, D_PEERS);
  let cursor: usize = load<u32>(ctx, X_CURSOR);
  let conns: u64 = load<u32>(countsOf(ctx, tokenOf(image, peer)), COUNT_CONNS);
  let all: u64 = load<u32>(cursor, CURSOR_UNDER_WAY) + 1;
  return conns * 4 * total < all * 5 * <u64>load<u16>(peerAt(image, peer), P_WEIGHT);
}

/**
 * NGINX's ip_hash. `key` is the first three octets of an IPv4 address as one number, or the CRC-32 of another address.
 * NONE where it finds nobody in its tries.
 */
function ipHash(ctx: usize, key: u32): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let record: usize = load<u32>(ctx, D_UPSTREAM);
  let last = load<u32>(image, I_PEER_COUNT) - 1;
  let total = load<u32>(record, U_WEIGHT);
  let hash: u32 = 89;
  for (let left = IP_HASH_TRIES + 1; left; left--) {
    for (let shift: i32 = key >> 24 ? 24 : 16; shift >= 0; shift -= 8)
      hash = (hash * 113 + ((key >> shift) & 255)) % 6271;
    let at = hash % max(total, 1);
    let peer: u32 = 0;
    for (; peer < last; peer++) {
      let weight: u32 = load<u16>(peerAt(image, peer), P_WEIGHT);
      if (at < weight) break;
      at -= weight;
    }
    if (usable(ctx, peer)) return peer;
  }
  return NONE;
}

/**
 * Plain round robin, which smooth round robin is with equal weights. A context begins anywhere, so that many do not move in
 * step.
 */
function nextTurn(ctx: usize, cursor: usize, count: u32): u32 {
  let turn = load<u32>(cursor);
  if (!turn) turn = <u32>((<u64>mix32(load<u32>(ctx, X_RANDOM)) * <u64>count) >> 32) + 1;
  // The cursor is beyond the peers only after a change; a division for every request would be felt.
  else if (turn > count) turn = turn == count + 1 ? 1 : ((turn - 1) % count) + 1;
  store<u32>(cursor, turn + 1);
  return turn - 1;
}

/**
 * The peer that a method names at once; NONE where it has to look at all of them. `plain`: a first try, with equal weights.
 * A retry leaves the cursor where it is, so that it takes nobody's turn.
 */
function firstChoice(ctx: usize, method: u32, hashed: bool, hash: u32, plain: bool): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let count = load<u32>(image, I_PEER_COUNT);
  if (hashed) {
    if (method == METHOD_IP_HASH) return NONE;
    let position = peerSetPosition(image, hash);
    store<u32>(ctx, position, D_POSITION);
    let peer = peerSetOwner(image, position);
    return load<u8>(image, I_FLAGS) & <u8>SET_BOUNDED ? NONE : peer;
  }
  if (!plain || (method >= METHOD_LEAST_CONN && method <= METHOD_RANDOM_TWO)) return NONE;
  return nextTurn(ctx, load<u32>(ctx, X_CURSOR), count);
}

/** The choice of a method among the usable peers, of which there is one. */
function chooseAmong(ctx: usize, method: u32, hashed: bool, hash: u32): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let peer = NONE;
  if (hashed) {
    if (method == METHOD_IP_HASH) {
      peer = ipHash(ctx, hash);
    } else {
      let position = load<u32>(ctx, D_POSITION);
      if (load<u8>(image, I_FLAGS) & <u8>SET_BOUNDED) peer = walk(ctx, position, true);
      return peer == NONE ? walk(ctx, position, false) : peer;
    }
  } else if (method == METHOD_RANDOM || method == METHOD_RANDOM_TWO) {
    let random = mix32(load<u32>(ctx, X_RANDOM));
    peer = drawPeer(ctx, random, NONE);
    if (method == METHOD_RANDOM_TWO) peer = fewerUnderWay(ctx, peer, drawPeer(ctx, mix32(random + 0x9e3779b9), peer));
    return peer;
  }
  return peer == NONE ? chooseSmoothly(ctx, method == METHOD_LEAST_CONN) : peer;
}

/** Writes the choice down, takes its place and begins its probe, where those count. */
function take(ctx: usize, peer: u32, trouble: u32, failing: u32): i32 {
  store<u32>(ctx, peer, D_PEER);
  if (!(trouble & TROUBLE_COUNTED) && !failing) return OK;
  let image: usize = load<u32>(ctx, D_PEERS);
  let token = tokenOf(image, peer);
  // Of a set that was replaced while the request waited for values, peers may have left.
  if (!slotOf(load<u32>(ctx, X_TABLE), token)) return OK;
  let counts = countsOf(ctx, token);
  if (trouble & TROUBLE_COUNTED) {
    let cursor: usize = load<u32>(ctx, X_CURSOR);
    store<u32>(counts, load<u32>(counts, COUNT_CONNS) + 1, COUNT_CONNS);
    store<u32>(cursor, load<u32>(cursor, CURSOR_UNDER_WAY) + 1, CURSOR_UNDER_WAY);
  }
  let fails = load<u32>(counts, COUNT_FAILS);
  let now = load<u32>(ctx, X_NOW);
  if (fails && failuresAreOld(image, counts, now)) {
    store<u32>(counts, fails | COUNT_PROBED, COUNT_FAILS);
    store<u32>(counts, now, COUNT_CHECKED);
  }
  return OK;
}

/**
 * Chooses a peer of the set in D_PEERS, which has one, for the upstream in D_UPSTREAM: D_PEER and D_POSITION. `hashed`:
 * `hash` counts. `session` is the session id that the client brought, 0 for none. `tried` are u32[count] tokens that must
 * not be met again. OK, BUSY, or E_STATE where nobody is left.
 */
export function choosePeer(ctx: usize, hashed: bool, hash: u32, session: u32, tried: usize, count: u32): i32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let record: usize = load<u32>(ctx, D_UPSTREAM);
  let trouble = load<u32>(record, U_TROUBLE);
  let cursor = cursorOf(ctx, record);
  let failing = load<u32>(cursor, CURSOR_FAILING);
  let method: u32 = load<u8>(image, I_METHOD);
  if (!(method | trouble | failing | count | session)) {
    // Round robin with nothing to look at: most requests.
    let turn = nextTurn(ctx, cursor, load<u32>(image, I_PEER_COUNT));
    store<u32>(ctx, turn, D_PEER);
    store<u32>(ctx, turn, D_POSITION);
    return OK;
  }
  store<u32>(ctx, <u32>cursor, X_CURSOR);
  let easy = !(trouble & (TROUBLE_STATES | TROUBLE_CAPPED)) && !failing && !count;
  store<u32>(ctx, easy ? EASY : 0, X_FORGIVEN);
  if (!easy) {
    store<u32>(ctx, <u32>tried, X_TRIED);
    store<u32>(ctx, count, X_TRIED_COUNT);
  }
  store<u32>(ctx, NONE, D_POSITION);
  let peer = NONE;
  if (session) {
    peer = peerOfSession(image, session);
    if (peer != NONE && !keepsSessions(ctx, peer)) peer = NONE;
  }
  if (peer == NONE) {
    peer = firstChoice(ctx, method, hashed, hash, !(trouble & (TROUBLE_WEIGHTS | TROUBLE_RAMPS)) && !count);
    if (peer == NONE || !usable(ctx, peer)) {
      let status = easy ? OK : showMercy(ctx);
      if (status != OK) return status;
      peer = chooseAmong(ctx, method, hashed, hash);
    }
  }
  // Without a place on a ring or a table, the position is the peer's in its order.
  if (load<u32>(ctx, D_POSITION) == NONE) store<u32>(ctx, load<u32>(image, I_POINT_COUNT) ? 0 : peer, D_POSITION);
  return take(ctx, peer, trouble, failing);
}

/** The peer with this session id, or NONE. */
function peerOfSession(image: usize, session: u32): u32 {
  for (let i: u32 = 0; i < load<u32>(image, I_PEER_COUNT); i++) {
    if (load<u32>(peerAt(image, i), P_SESSION) == session) return i;
  }
  return NONE;
}
