/** The exports about peers of a table: picking another one, the end of a try, what checks have found out. */
import { I_MAX_FAILS, I_PEER_COUNT } from "../balance/peer-set-layout";
import { inMemory } from "../memory/heap";
import { E_POINTER, E_STATE, OK } from "../status";
import { D_PEERS, D_UPSTREAM, isContext, X_NEED_COUNT, X_NOW, X_RANDOM, X_TABLE } from "../table/context";
import {
  COUNT_CHECKED,
  COUNT_CONNS,
  COUNT_FAILS,
  COUNT_PROBED,
  CURSOR_FAILING,
  CURSOR_UNDER_WAY,
  countsOf,
  cursorOf,
  SLOT_STATE,
  SLOT_UPSTREAM,
  STATE_MASK,
  setState,
  slotOf,
} from "../table/peer-slots";
import { isTable } from "../table/table";
import { U_PEERS } from "../table/upstream-record";
import { findUpstream } from "../table/upstreams";
import { choosePeer } from "./choose-peer";
import { isOut } from "./usable";

/**
 * Picks a peer of an upstream as it is now: for a retry, or for a request that waited. `hashed` 1: `hash` counts. `tried`
 * are `count` tokens of peers that must not be met again. OK: the context tells set, peer and position, as after `route`.
 * BUSY; E_STATE if nobody is left. What the last decision referred to is no longer held.
 */
export function peer_pick(
  ctx: usize,
  key: usize,
  length: u32,
  hashed: u32,
  hash: u32,
  tried: usize,
  count: u32,
  random: u32,
): i32 {
  if (!isContext(ctx) || !inMemory(key, length) || count >> 28 || !inMemory(tried, count << 2)) return E_POINTER;
  let record = findUpstream(load<u32>(ctx, X_TABLE), key, length);
  let image: usize = record ? <usize>load<u32>(record, U_PEERS) : 0;
  store<u32>(ctx, 0, X_NEED_COUNT);
  store<u32>(ctx, random, X_RANDOM);
  store<u32>(ctx, <u32>record, D_UPSTREAM);
  store<u32>(ctx, <u32>image, D_PEERS);
  if (!image || !load<u32>(image, I_PEER_COUNT)) return E_STATE;
  return choosePeer(ctx, hashed != 0, hash, 0, tried, count);
}

/**
 * A try with the peer of `token` is over: its place is free again, and a failure counts, as NGINX counts it. Nothing happens
 * for a peer that has left. OK or E_POINTER.
 */
export function peer_done(ctx: usize, token: u32, failed: u32): i32 {
  if (!isContext(ctx)) return E_POINTER;
  let slot = slotOf(load<u32>(ctx, X_TABLE), token);
  if (!slot) return OK;
  let record: usize = load<u32>(slot, SLOT_UPSTREAM);
  let cursor = cursorOf(ctx, record);
  let counts = countsOf(ctx, token);
  // Of a request that began before its upstream was counted, there is nothing to take back.
  let conns = load<u32>(counts, COUNT_CONNS);
  if (conns) {
    store<u32>(counts, conns - 1, COUNT_CONNS);
    store<u32>(cursor, load<u32>(cursor, CURSOR_UNDER_WAY) - 1, CURSOR_UNDER_WAY);
  }
  let fails = load<u32>(counts, COUNT_FAILS);
  let failing = load<u32>(cursor, CURSOR_FAILING);
  if (failed) {
    if (!load<u32>(<usize>load<u32>(record, U_PEERS), I_MAX_FAILS)) return OK;
    if (!fails) failing++;
    fails = (fails & ~COUNT_PROBED) + 1;
    store<u32>(counts, load<u32>(ctx, X_NOW), COUNT_CHECKED);
  } else if (fails & COUNT_PROBED) {
    fails = 0;
    failing--;
  }
  store<u32>(counts, fails, COUNT_FAILS);
  store<u32>(cursor, failing, CURSOR_FAILING);
  return OK;
}

/** Sets the state (0 unchecked, 1 up, 2 down, 3 draining) of the peer of `token` at the time `now`, in ms. */
export function peer_state(table: usize, token: u32, state: u32, now: u32): i32 {
  if (!isTable(table) || state > STATE_MASK) return E_POINTER;
  setState(table, token, state, now);
  return OK;
}

/** State | 4 if the peer is out by failures | requests under way << 3; E_STATE for a peer that has left. */
export function peer_status(ctx: usize, token: u32): i32 {
  if (!isContext(ctx)) return E_POINTER;
  let slot = slotOf(load<u32>(ctx, X_TABLE), token);
  if (!slot) return E_STATE;
  let counts = countsOf(ctx, token);
  let out: u32 = isOut(ctx, load<u32>(<usize>load<u32>(slot, SLOT_UPSTREAM), U_PEERS), counts) ? 4 : 0;
  return (load<u32>(slot, SLOT_STATE) & STATE_MASK) | out | ((load<u32>(counts, COUNT_CONNS) & 0xfffffff) << 3);
}
