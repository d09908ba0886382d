/**
 * The rise/fall machine of active health checks: one slot for each peer that is checked.
 *
 * Tracker, one block: 0 u32 magic "NJHT" | 4 u32 slots | 8, 12 zero | from 16 on the slots, 16 bytes each.
 * Slot: 0 u8 state | 1 u8 drains, 0 or 1 | 2 i16 streak: passes in a row, below zero failures in a row
 *   | 4 u16 passes | 6 u16 fails, 0 where the slot is free | 8 u32 slow start ms | 12 u32 since: `now` of the last change
 */
import { alloc, free, give, isGiven } from "../memory/heap";

const TRACKER_MAGIC: u32 = 0x54484a4e;
const HEADER: u32 = 16;
const H_SLOTS: usize = 4;
/** A slot number shares a word of a transition with a state. */
const MOST_SLOTS: u32 = 1 << 22;

const S_DRAINS: usize = 1;
const S_STREAK: usize = 2;
const S_PASSES: usize = 4;
const S_FAILS: usize = 6;
const S_SLOW_START: usize = 8;
const S_SINCE: usize = 12;

const UNCHECKED: u32 = 0;
const UP: u32 = 1;
const DOWN: u32 = 2;
const DRAINING: u32 = 3;
const SLOW_START: u32 = 4;

/** Bits of the word that `setSlot` takes beside a state. */
const DRAINS: u32 = 8;
const KEEP: u32 = 16;

function bytesOf(slots: u32): u32 {
  return HEADER + (slots << 4);
}

/** True if `tracker` is a live tracker, whatever its header says. */
export function isTracker(tracker: usize): bool {
  if (!isGiven(tracker, 0) || load<u32>(tracker) != TRACKER_MAGIC) return false;
  let slots = load<u32>(tracker, H_SLOTS);
  return slots <= MOST_SLOTS && isGiven(tracker, bytesOf(slots));
}

/** A tracker with `slots` slots, the first of them as in `old` (a tracker, which ends; or 0); 0 if it can't be had. */
export function newTracker(slots: u32, old: usize): usize {
  let tracker: usize = 0;
  if (slots <= MOST_SLOTS) tracker = give(alloc(bytesOf(slots)));
  if (!tracker) return 0;
  memory.fill(tracker, 0, bytesOf(slots));
  if (old) {
    memory.copy(tracker, old, bytesOf(min(slots, load<u32>(old, H_SLOTS))));
    free(old);
  }
  store<u32>(tracker, TRACKER_MAGIC);
  store<u32>(tracker, slots, H_SLOTS);
  return tracker;
}

/** Address of a slot of a tracker; 0 if there is none. */
export function slotAt(tracker: usize, slot: u32): usize {
  return isTracker(tracker) && slot < load<u32>(tracker, H_SLOTS) ? tracker + bytesOf(slot) : 0;
}

/** Bits 0 to 7: state; above them the streak plus 32,768. */
export function slotWord(at: usize): i32 {
  return ((<i32>load<i16>(at, S_STREAK) + 0x8000) << 8) | <i32>load<u8>(at);
}

/** True if the slot is somebody's. */
export function inUse(at: usize): bool {
  return load<u16>(at, S_FAILS) != 0;
}

/**
 * Gives a slot its rule (u16 passes, u16 fails) and a state, or with KEEP lets it keep what it has (a free slot is
 * unchecked). The rule 0 frees it. False for no rule or state.
 */
export function setSlot(at: usize, rule: u32, slowStart: u32, word: u32, since: u32): bool {
  if (!rule) {
    memory.fill(at, 0, 16);
    return true;
  }
  let state = word & 7;
  if (!(rule << 16) || !(rule >> 16) || state > SLOW_START || word >= KEEP << 1) return false;
  if (word & KEEP) state = load<u8>(at);
  else {
    store<u16>(at, 0, S_STREAK);
    store<u32>(at, since, S_SINCE);
  }
  // Who drains is known from the peer, not from its checks: these tell only whether it is down.
  if (word & DRAINS) {
    if (state != DOWN) state = DRAINING;
  } else if (state == DRAINING) state = UNCHECKED;
  store<u16>(at, state | ((word & DRAINS) << 5));
  store<u32>(at, rule, S_PASSES);
  store<u32>(at, slowStart, S_SLOW_START);
  return true;
}

/**
 * Takes `count` results (u32 slot * 2 + passed) in order and writes the transitions (u32 slot * 8 + new state) to `out`,
 * which may be `results`. Results of slots that are free or not there are passed over. Returns the number of transitions.
 */
export function report(tracker: usize, results: usize, count: u32, now: u32, out: usize): u32 {
  let slots = load<u32>(tracker, H_SLOTS);
  let begin = out;
  for (let end = results + ((<usize>count) << 2); results < end; results += 4) {
    let result = load<u32>(results);
    let slot = result >> 1;
    if (slot >= slots) continue;
    let at = tracker + bytesOf(slot);
    let fails = <i32>load<u16>(at, S_FAILS);
    if (!fails) continue;
    let before: u32 = load<u8>(at);
    let state = before;
    let streak = <i32>load<i16>(at, S_STREAK);
    if (state == SLOW_START && now - load<u32>(at, S_SINCE) >= load<u32>(at, S_SLOW_START)) state = UP;
    if (result & 1) {
      streak = max(streak, 0) + 1;
      // Only who is unchecked or down can come up.
      if (!(state & ~DOWN) && streak >= <i32>load<u16>(at, S_PASSES)) {
        state = load<u8>(at, S_DRAINS) ? DRAINING : state && load<u32>(at, S_SLOW_START) ? SLOW_START : UP;
      }
    } else {
      streak = min(streak, 0) - 1;
      if (streak + fails <= 0) state = DOWN;
    }
    // Saturates one below the ends of an i16.
    if (streak << 16 != i32.MIN_VALUE) store<u16>(at, streak, S_STREAK);
    if (state == before) continue;
    store<u8>(at, state);
    store<u32>(at, now, S_SINCE);
    store<u32>(out, (slot << 3) | state);
    out += 4;
  }
  return <u32>(out - begin) >> 2;
}
