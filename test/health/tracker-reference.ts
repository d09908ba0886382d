import type { HealthRule, HealthState } from "../../core-wasm/binding/health-tracker.js";

interface Slot {
  rule: HealthRule;
  state: HealthState;
  passes: number;
  failures: number;
  since: number;
}

/** The rise/fall machine as one reads it, without regard to speed. */
export class ReferenceTracker {
  readonly slots = new Map<number, Slot>();

  set(slot: number, rule: HealthRule, now: number, state: HealthState): void {
    this.slots.set(slot, { rule, state: settled(state, rule), passes: 0, failures: 0, since: now });
  }

  change(slot: number, rule: HealthRule): void {
    const known = this.slots.get(slot)!;
    known.rule = rule;
    known.state = settled(known.state, rule);
  }

  report(slot: number, passed: boolean, now: number): HealthState | undefined {
    const known = this.slots.get(slot);
    if (known === undefined) return undefined;
    known.passes = passed ? known.passes + 1 : 0;
    known.failures = passed ? 0 : known.failures + 1;
    const next = this.#next(known, now);
    if (next === known.state) return undefined;
    known.state = next;
    known.since = now;
    return next;
  }

  #next({ rule, state, passes, failures, since }: Slot, now: number): HealthState {
    if (failures >= rule.fails) return "down";
    const slowStart = rule.slowStart ?? 0;
    switch (state) {
      case "slow-start":
        return (now - since) >>> 0 >= slowStart ? "up" : state;
      case "unchecked":
      case "down":
        if (passes < rule.passes) return state;
        if (rule.drains) return "draining";
        return state === "down" && slowStart > 0 ? "slow-start" : "up";
      default:
        return state;
    }
  }
}

function settled(state: HealthState, rule: HealthRule): HealthState {
  if (rule.drains) return state === "down" ? state : "draining";
  return state === "draining" ? "unchecked" : state;
}
