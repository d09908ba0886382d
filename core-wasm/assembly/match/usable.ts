/** Which peers may be picked, and what is overlooked where none may. */
import {
  I_FAIL_TIMEOUT,
  I_FLAGS,
  I_MAX_CONNS,
  I_MAX_FAILS,
  I_PEER_COUNT,
  NONE,
  P_FLAGS,
  peerAt,
  SET_MANDATORY,
  SET_PANIC,
} from "../balance/peer-set-layout";
import { BUSY, E_STATE, OK } from "../status";
import { D_PEERS, X_FORGIVEN, X_NOW, X_TABLE, X_TRIED, X_TRIED_COUNT } from "../table/context";
import {
  COUNT_CHECKED,
  COUNT_CONNS,
  COUNT_FAILS,
  COUNT_PROBED,
  countsOf,
  SLOT_STATE,
  STATE_DOWN,
  STATE_DRAINING,
  STATE_MASK,
  slotOf,
  tokenOf,
} from "../table/peer-slots";

/** What speaks against a peer. Out by failures of requests. */
const OUT: u32 = 1;
/** Takes no new clients, or has left its upstream since the request began. */
const DRAINS: u32 = 2;
/** Down by active checks, or never checked where that is mandatory. */
const DOWN: u32 = 4;
/** Has as many requests under way as it may. */
const FULL: u32 = 8;
const TRIED: u32 = 16;
/** X_FORGIVEN: nothing speaks against anybody, and nobody need be looked at. */
export const EASY: u32 = 31;

/** True once the fail timeout has passed since the last failure, or since the try after it. */
export function failuresAreOld(image: usize, counts: usize, now: u32): bool {
  return now - load<u32>(counts, COUNT_CHECKED) > load<u32>(image, I_FAIL_TIMEOUT);
}

/** True if the peer with these counts is out by failures of requests. */
export function isOut(ctx: usize, image: usize, counts: usize): bool {
  let most = load<u32>(image, I_MAX_FAILS);
  if (!most || (load<u32>(counts, COUNT_FAILS) & ~COUNT_PROBED) < most) return false;
  return !failuresAreOld(image, counts, load<u32>(ctx, X_NOW));
}

/** What speaks against peer `index` of the set at hand. */
function against(ctx: usize, index: u32): u32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let token = tokenOf(image, index);
  let slot = slotOf(load<u32>(ctx, X_TABLE), token);
  let found: u32 = load<u8>(peerAt(image, index), P_FLAGS) || !slot ? DRAINS : 0;
  if (slot) {
    let state = load<u32>(slot, SLOT_STATE) & STATE_MASK;
    if (state == STATE_DRAINING) found = DRAINS;
    else if (state == STATE_DOWN || (!state && load<u8>(image, I_FLAGS) & <u8>SET_MANDATORY)) found |= DOWN;
    let counts = countsOf(ctx, token);
    let most = load<u32>(image, I_MAX_CONNS);
    if (most && load<u32>(counts, COUNT_CONNS) >= most) found |= FULL;
    if (isOut(ctx, image, counts)) found |= OUT;
  }
  let tried: usize = load<u32>(ctx, X_TRIED);
  for (let end = tried + ((<usize>load<u32>(ctx, X_TRIED_COUNT)) << 2); tried < end; tried += 4) {
    if (load<u32>(tried) == token) found |= TRIED;
  }
  return found;
}

/** True if peer `index` of the set at hand may be picked, as far as things are forgiven. */
export function usable(ctx: usize, index: u32): bool {
  let forgiven = load<u32>(ctx, X_FORGIVEN);
  return forgiven == EASY || !(against(ctx, index) & ~forgiven);
}

/** True if nothing but draining speaks against a peer: it keeps the clients whose session it has. */
export function keepsSessions(ctx: usize, index: u32): bool {
  return load<u32>(ctx, X_FORGIVEN) == EASY || !(against(ctx, index) & ~DRAINS);
}

/**
 * The order of mercy: finds the least that has to be forgiven (X_FORGIVEN) for some peer to be usable. First failures of
 * requests, which alone never empty an upstream; then draining; then, where all peers are down and the set says so, that.
 * OK; BUSY where some peer has nothing against it but the requests under way; E_STATE where nobody is left.
 */
export function showMercy(ctx: usize): i32 {
  let image: usize = load<u32>(ctx, D_PEERS);
  let all: u32 = DOWN;
  let least: u32 = NONE;
  let leastFull: u32 = NONE;
  for (let i: u32 = 0; i < load<u32>(image, I_PEER_COUNT); i++) {
    let found = against(ctx, i);
    all &= found;
    // Each thing comes with all that is lighter.
    let needed: u32 = (1 << (32 - clz(found & (OUT | DRAINS | DOWN)))) - 1;
    if (found & TRIED) continue;
    if (found & FULL) leastFull = min(leastFull, needed);
    else least = min(least, needed);
  }
  // Panic is for an upstream that is down as a whole, tried peers included.
  let most = all && load<u8>(image, I_FLAGS) & <u8>SET_PANIC ? OUT | DRAINS | DOWN : OUT | DRAINS;
  store<u32>(ctx, least, X_FORGIVEN);
  return least <= most ? OK : leastFull <= most ? BUSY : E_STATE;
}
