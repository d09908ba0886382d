/**
 * Peer slots: what is known of a peer beyond its image. A peer keeps its slot over all changes of its upstream; one that is
 * given back is clean for the next peer, under a new generation.
 *
 * Token, u32: slot (20 bits) | generation (12 bits) << 20. The tokens of a loaded peer set stand behind its image in the
 * table's copy, at the next multiple of 4, u32[peers].
 *
 * An upstream has a slot of its own too, for its cursor; no token stands for it.
 *
 * Slot of a table, 16 bytes: 0 u32 generation | 4 u32 state (2 bits), SLOT_RAMPS, SLOT_USED | 8 u32 time of the change to
 * up, ms | 12 u32 upstream record; of a free one: next free slot + 1
 *
 * Counts of a slot, in each context, 24 bytes: 0 i64 weight that smooth round robin has gathered, in 1/256 | 8 u32 requests
 * under way | 12 u32 failures, COUNT_PROBED | 16 u32 time of the last failure, or of the first try after the fail timeout
 * | 20 u32 zero
 *
 * Cursor, the counts of an upstream: 0 u32 index of the peer whose turn it is, + 1 (0: not begun) | 4 u32 1 once smooth
 * round robin has begun | 8 u32 requests under way | 12 u32 peers with failures
 */
import {
  compareAddresses,
  I_FLAGS,
  I_MAX_CONNS,
  I_METHOD,
  I_SIZE,
  I_SLOW_START,
  METHOD_LEAST_CONN,
  METHOD_RANDOM_TWO,
  P_FLAGS,
  P_WEIGHT,
  peerAt,
  peersOf,
  SET_BOUNDED,
  SET_MANDATORY,
} from "../balance/peer-set-layout";
import { pad4 } from "../image/layout";
import { E_LIMIT, E_MEMORY, OK } from "../status";
import { COUNTS_SIZE, growArray, X_COUNTS, X_NEXT_CONTEXT } from "./context";
import { growContexts, T_CONTEXTS, T_FREE_PEER, T_FREE_PEERS, T_PEER_COUNT, T_PEERS } from "./table";
import {
  TROUBLE_CAPPED,
  TROUBLE_COUNTED,
  TROUBLE_RAMPS,
  TROUBLE_STATES,
  TROUBLE_WEIGHTS,
  U_CURSOR,
  U_PEERS,
  U_TROUBLE,
  U_WEIGHT,
} from "./upstream-record";

const SLOT_SIZE: u32 = 16;
const SLOT_BITS: u32 = 20;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

export const SLOT_STATE: usize = 4;
export const SLOT_SINCE: usize = 8;
export const SLOT_UPSTREAM: usize = 12;
export const STATE_MASK: u32 = 3;
export const STATE_UNCHECKED: u32 = 0;
export const STATE_UP: u32 = 1;
export const STATE_DOWN: u32 = 2;
export const STATE_DRAINING: u32 = 3;
/** Up after having been down: slow start. */
export const SLOT_RAMPS: u32 = 4;
/** Of a peer, not of an upstream. */
export const SLOT_USED: u32 = 8;

export const COUNT_CONNS: usize = 8;
export const COUNT_FAILS: usize = 12;
export const COUNT_CHECKED: usize = 16;
/** The fail timeout is over, and a try is under way: its success wipes the failures out. */
export const COUNT_PROBED: u32 = 0x80000000;

export const CURSOR_BEGUN: usize = 4;
export const CURSOR_UNDER_WAY: usize = 8;
export const CURSOR_FAILING: usize = 12;

function slotAt(table: usize, slot: u32): usize {
  return <usize>load<u32>(table, T_PEERS) + slot * SLOT_SIZE;
}

/** The slot that a token stands for; 0 if its peer has left, or for any other number. */
export function slotOf(table: usize, token: u32): usize {
  if ((token & SLOT_MASK) >= load<u32>(table, T_PEER_COUNT)) return 0;
  let slot = slotAt(table, token & SLOT_MASK);
  return load<u32>(slot) == token >> SLOT_BITS && load<u32>(slot, SLOT_STATE) & SLOT_USED ? slot : 0;
}

/** The counts of a context for the slot of a token. */
export function countsOf(ctx: usize, token: u32): usize {
  return <usize>load<u32>(ctx, X_COUNTS) + (token & SLOT_MASK) * COUNTS_SIZE;
}

/** The cursor of an upstream in a context. */
export function cursorOf(ctx: usize, record: usize): usize {
  return countsOf(ctx, load<u32>(record, U_CURSOR));
}

function tokenAt(image: usize, index: u32): usize {
  return image + pad4(load<u32>(image, I_SIZE)) + ((<usize>index) << 2);
}

/** The token of a peer of a loaded set. */
export function tokenOf(image: usize, index: u32): u32 {
  return load<u32>(tokenAt(image, index));
}

/** Bytes of a loaded set: the image and its tokens. */
export function loadedSize(image: usize): u32 {
  return <u32>(tokenAt(image, peersOf(image)) - image);
}

/** Makes room for `fresh` more slots in the table and all of its contexts. OK or a status. */
export function reserveSlots(table: usize, fresh: u32): i32 {
  let wanted =
    load<u32>(table, T_PEER_COUNT) + max(fresh, load<u32>(table, T_FREE_PEERS)) - load<u32>(table, T_FREE_PEERS);
  if (wanted > SLOT_MASK + 1) return E_LIMIT;
  return growArray(table + T_PEERS, wanted, SLOT_SIZE) && growContexts(table, X_COUNTS, wanted, COUNTS_SIZE)
    ? OK
    : E_MEMORY;
}

/** A slot for a peer of `record` (`use` SLOT_USED) or itself (0). `reserveSlots` has made room for it. Returns the token. */
export function takeSlot(table: usize, record: usize, use: u32): u32 {
  let index = load<u32>(table, T_FREE_PEER);
  let slot: usize;
  if (index) {
    slot = slotAt(table, --index);
    store<u32>(table, load<u32>(slot, SLOT_UPSTREAM), T_FREE_PEER);
    store<u32>(table, load<u32>(table, T_FREE_PEERS) - 1, T_FREE_PEERS);
  } else {
    index = load<u32>(table, T_PEER_COUNT);
    store<u32>(table, index + 1, T_PEER_COUNT);
    slot = slotAt(table, index);
  }
  store<u32>(slot, use, SLOT_STATE);
  store<u32>(slot, <u32>record, SLOT_UPSTREAM);
  for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
    memory.fill(countsOf(ctx, index), 0, COUNTS_SIZE);
  }
  return index | (load<u32>(slot) << SLOT_BITS);
}

/** Takes a slot back. */
export function giveSlot(table: usize, token: u32): void {
  let slot = slotAt(table, token & SLOT_MASK);
  store<u32>(slot, (load<u32>(slot) + 1) & (0xffffffff >> SLOT_BITS));
  store<u32>(slot, 0, SLOT_STATE);
  store<u32>(slot, load<u32>(table, T_FREE_PEER), SLOT_UPSTREAM);
  store<u32>(table, (token & SLOT_MASK) + 1, T_FREE_PEER);
  store<u32>(table, load<u32>(table, T_FREE_PEERS) + 1, T_FREE_PEERS);
}

/**
 * Gives the peers of `image` (0: none) the slots that the same peers have in `old` (0: none), or new ones, and takes back
 * those of peers that go.
 */
function assign(table: usize, record: usize, old: usize, image: usize): void {
  let i: u32 = 0;
  let j: u32 = 0;
  while (true) {
    let next = i < peersOf(image) ? peerAt(image, i) : 0;
    let before = j < peersOf(old) ? peerAt(old, j) : 0;
    if (!next && !before) return;
    let side = !next ? 1 : !before ? -1 : compareAddresses(next, before);
    let token = side < 0 ? takeSlot(table, record, SLOT_USED) : tokenOf(old, j++);
    if (side > 0) giveSlot(table, token);
    else {
      store<u32>(tokenAt(image, i), token);
      i++;
    }
  }
}

/** Moves the slots of `record` from the set that it has to `image` (0: none), and gives up what contexts count of others. */
export function moveSlots(table: usize, record: usize, image: usize): void {
  assign(table, record, load<u32>(record, U_PEERS), image);
  for (let ctx: usize = load<u32>(table, T_CONTEXTS); ctx; ctx = load<u32>(ctx, X_NEXT_CONTEXT)) {
    let underWay: u32 = 0;
    let failing: u32 = 0;
    for (let i: u32 = 0; i < peersOf(image); i++) {
      let counts = countsOf(ctx, tokenOf(image, i));
      underWay += load<u32>(counts, COUNT_CONNS);
      if (load<u32>(counts, COUNT_FAILS)) failing++;
    }
    let cursor = cursorOf(ctx, record);
    store<u32>(cursor, underWay, CURSOR_UNDER_WAY);
    store<u32>(cursor, failing, CURSOR_FAILING);
  }
}

/** Sums up what picking a peer of `record` has to look at, so that it need not look where there is nothing. */
export function noteTrouble(table: usize, record: usize): void {
  let image: usize = load<u32>(record, U_PEERS);
  let flags: u32 = load<u16>(image, I_FLAGS);
  let method: u32 = load<u8>(image, I_METHOD);
  let trouble: u32 = 0;
  let total: u32 = 0;
  if (method == METHOD_LEAST_CONN || method == METHOD_RANDOM_TWO || flags & SET_BOUNDED) trouble = TROUBLE_COUNTED;
  if (load<u32>(image, I_MAX_CONNS)) trouble |= TROUBLE_COUNTED | TROUBLE_CAPPED;
  for (let i: u32 = 0; i < peersOf(image); i++) {
    let peer = peerAt(image, i);
    let word = load<u32>(slotOf(table, tokenOf(image, i)), SLOT_STATE);
    let state = word & STATE_MASK;
    total += load<u16>(peer, P_WEIGHT);
    if (load<u16>(peer, P_WEIGHT) != load<u16>(peerAt(image, 0), P_WEIGHT)) trouble |= TROUBLE_WEIGHTS;
    if (load<u8>(peer, P_FLAGS) || state > STATE_UP || (!state && flags & SET_MANDATORY)) trouble |= TROUBLE_STATES;
    if (word & SLOT_RAMPS && load<u32>(image, I_SLOW_START)) trouble |= TROUBLE_RAMPS;
  }
  store<u32>(record, trouble, U_TROUBLE);
  store<u32>(record, total, U_WEIGHT);
}

/** Sets the state of a peer; slow start begins where it was down and is up. A token of a peer that has left does nothing. */
export function setState(table: usize, token: u32, state: u32, now: u32): void {
  let slot = slotOf(table, token);
  if (!slot) return;
  let before = load<u32>(slot, SLOT_STATE);
  let was = before & STATE_MASK;
  if (state == was) return;
  let ramps: u32 = state == STATE_UP && was == STATE_DOWN ? SLOT_RAMPS : 0;
  store<u32>(slot, state | ramps | SLOT_USED, SLOT_STATE);
  store<u32>(slot, now, SLOT_SINCE);
  noteTrouble(table, load<u32>(slot, SLOT_UPSTREAM));
}
