/** The numeric exports of the health machine. Every pointer is checked; ABI.md, "Health checks", documents each. */
import { inMemory } from "../memory/heap";
import { E_POINTER, E_SOURCE, E_STATE, OK } from "../status";
import { inUse, isTracker, newTracker, report, setSlot, slotAt, slotWord } from "./tracker";

/** A tracker with `slots` free slots; with `old`, its slots move there and `old` ends. 0 if memory is short or `old` is none. */
export function health_new(slots: u32, old: usize): usize {
  return !old || isTracker(old) ? newTracker(slots, old) : 0;
}

/** Gives a slot its settings and state, or frees it (`rule` 0). E_SOURCE: `rule` or `state` is none. */
export function health_set(tracker: usize, slot: u32, rule: u32, slowStart: u32, state: u32, since: u32): i32 {
  let at = slotAt(tracker, slot);
  if (!at) return E_POINTER;
  return setSlot(at, rule, slowStart, state, since) ? OK : E_SOURCE;
}

/** State and streak of a slot; E_STATE where it is free. */
export function health_state(tracker: usize, slot: u32): i32 {
  let at = slotAt(tracker, slot);
  if (!at) return E_POINTER;
  return inUse(at) ? slotWord(at) : E_STATE;
}

/** Takes a batch of results in; the number of transitions. */
export function health_report(tracker: usize, results: usize, count: u32, now: u32, out: usize): i32 {
  if (!isTracker(tracker) || count >> 28 || !inMemory(results, count << 2) || !inMemory(out, count << 2))
    return E_POINTER;
  return report(tracker, results, count, now, out);
}
