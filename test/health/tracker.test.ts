import { describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import { HEALTH_STATES, type HealthRule, HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import { Random } from "../support/random.js";
import { ReferenceTracker } from "./tracker-reference.js";

const E_POINTER = -10;
const E_SOURCE = -7;
const E_STATE = -11;

/** An instance of its own, so that its memory can be looked at. */
const core = await loadCore();

/** A tracker with one peer; `feed` takes results as `+` and `-` and gives the states that the peer went through. */
function onePeer(rule: HealthRule, state?: (typeof HEALTH_STATES)[number]) {
  const tracker = new HealthTracker(core);
  const slot = tracker.add(rule, 0, state);
  const feed = (results: string, now = 0) =>
    [...results].flatMap((r) => tracker.report([slot * 2 + Number(r === "+")], now).map((t) => t.state));
  return { tracker, slot, feed, state: () => tracker.state(slot) };
}

describe("a peer", () => {
  it("is unchecked until it has passed `passes` times in a row", () => {
    const { feed, state } = onePeer({ fails: 5, passes: 3 });
    expect(feed("++-++")).toEqual([]);
    expect(state()).toBe("unchecked");
    expect(feed("+")).toEqual(["up"]);
  });

  it("that was never up goes down after `fails` failures in a row", () => {
    expect(onePeer({ fails: 3, passes: 1 }).feed("---")).toEqual(["down"]);
  });

  it("goes down after `fails` failures in a row, and not before, and comes back after `passes` passes", () => {
    const { feed } = onePeer({ fails: 3, passes: 2 }, "up");
    expect(feed("--+--+--")).toEqual([]);
    expect(feed("-")).toEqual(["down"]);
    expect(feed("-+-+-")).toEqual([]);
    expect(feed("++")).toEqual(["up"]);
  });

  it("that comes back starts slowly, and is up with the first result after that time", () => {
    const { feed } = onePeer({ fails: 1, passes: 1, slowStart: 1000 }, "down");
    expect(feed("+", 5000)).toEqual(["slow-start"]);
    expect(feed("+", 5999)).toEqual([]);
    expect(feed("+", 6000)).toEqual(["up"]);
  });

  it("goes down from a slow start too, and is up at once at its first start", () => {
    expect(onePeer({ fails: 2, passes: 1, slowStart: 1000 }, "slow-start").feed("--", 10)).toEqual(["down"]);
    expect(onePeer({ fails: 2, passes: 1, slowStart: 1000 }).feed("+", 10)).toEqual(["up"]);
  });

  it("measures its slow start over the end of the clock", () => {
    const { feed } = onePeer({ fails: 1, passes: 1, slowStart: 1000 }, "down");
    expect(feed("+", 2 ** 32 - 500)).toEqual(["slow-start"]);
    expect(feed("+", 499)).toEqual([]);
    expect(feed("+", 500)).toEqual(["up"]);
  });

  it("that drains stays draining, goes down after `fails` failures and comes back to draining", () => {
    const { feed } = onePeer({ fails: 2, passes: 1, drains: true });
    expect(feed("+-+-+++")).toEqual([]);
    expect(feed("--")).toEqual(["down"]);
    expect(feed("+")).toEqual(["draining"]);
  });

  it("keeps state and streak when its rule changes, and loses them when a state is given", () => {
    const { tracker, slot, feed, state } = onePeer({ fails: 3, passes: 1 }, "up");
    feed("--");
    tracker.change(slot, { fails: 4, passes: 1 }, 0);
    expect(tracker.streak(slot)).toBe(-2);
    expect(feed("--")).toEqual(["down"]);
    tracker.change(slot, { fails: 4, passes: 1 }, 0, "unchecked");
    expect([state(), tracker.streak(slot)]).toEqual(["unchecked", 0]);
  });

  it("has a streak that stays within its range, however long it lives", () => {
    const { tracker, slot } = onePeer({ fails: 32_767, passes: 1 }, "up");
    tracker.report(new Array(70_000).fill(slot * 2 + 1), 0);
    expect(tracker.streak(slot)).toBe(32_767);
    expect(tracker.report(new Array(32_766).fill(slot * 2), 0)).toEqual([]);
    expect(tracker.report([slot * 2], 0)).toEqual([{ slot, state: "down" }]);
    tracker.report(new Array(70_000).fill(slot * 2), 0);
    expect(tracker.streak(slot)).toBe(-32_767);
  });
});

describe("a batch", () => {
  it("is taken in order: a peer that changes twice comes twice", () => {
    const { tracker, slot } = onePeer({ fails: 1, passes: 1 });
    expect(tracker.report([1, 0, 0, 1], 0)).toEqual(["up", "down", "up"].map((state) => ({ slot, state })));
  });

  it("passes over results of slots that are free or were never there", () => {
    const { tracker } = onePeer({ fails: 1, passes: 1 });
    expect(tracker.report([3, 31, 2 ** 22 * 2, 0xffff_ffff, 0xffff_fffe], 0)).toEqual([]);
  });
});

describe("the tracker", () => {
  it("decides as the plain reference does, over 200,000 random events", { timeout: 120_000 }, () => {
    const random = new Random(4);
    const tracker = new HealthTracker(core);
    const reference = new ReferenceTracker();
    const slots: number[] = [];
    const rule = (): HealthRule => ({
      fails: 1 + random.below(4),
      passes: 1 + random.below(4),
      slowStart: random.pick([0, 0, 50, 300]),
      drains: random.onceIn(8),
    });
    let now = 2 ** 32 - 100_000;
    const seen = new Map<string, number>();
    for (let events = 0; events < 200_000; ) {
      now = (now + random.below(40)) % 2 ** 32;
      if (slots.length < 300 && random.onceIn(4)) {
        const [fresh, state] = [rule(), random.onceIn(3) ? random.pick(HEALTH_STATES) : "unchecked"];
        const slot = tracker.add(fresh, now, state);
        reference.set(slot, fresh, now, state);
        slots.push(slot);
      } else if (slots.length > 0 && random.onceIn(8)) {
        const [slot] = slots.splice(random.below(slots.length), 1);
        tracker.remove(slot);
        reference.slots.delete(slot);
      } else if (slots.length > 0 && random.onceIn(6)) {
        const [slot, changed] = [random.pick(slots), rule()];
        tracker.change(slot, changed, now);
        reference.change(slot, changed);
      }
      const batch = Array.from({ length: random.below(60) }, () =>
        // Slots that are free, too; some peers mostly fail, some mostly pass.
        ((slot) => slot * 2 + Number(random.below(8) < (slot % 2 ? 6 : 2)))(random.below(320)),
      );
      const expected = batch.flatMap((word) => {
        const state = reference.report(word >> 1, (word & 1) === 1, now);
        return state === undefined ? [] : [{ slot: word >> 1, state }];
      });
      const found = tracker.report(batch, now);
      if (JSON.stringify(found) !== JSON.stringify(expected)) expect(found).toEqual(expected);
      for (const { state } of found) seen.set(state, (seen.get(state) ?? 0) + 1);
      events += batch.length;
    }
    for (const slot of slots) expect(tracker.state(slot)).toBe(reference.slots.get(slot)?.state);
    // Every kind of transition was among them, many times.
    for (const state of ["up", "down", "draining", "slow-start"]) expect(seen.get(state)).toBeGreaterThan(500);
    tracker.free();
  });

  it("keeps the states of all others when peers come and go", () => {
    const tracker = new HealthTracker(core);
    const slots = Array.from({ length: 1000 }, (_, i) => tracker.add({ fails: 2, passes: 1 }, 0, HEALTH_STATES[i % 3]));
    for (let i = 0; i < 1000; i += 2) tracker.remove(slots[i]);
    for (let i = 0; i < 3000; i++) tracker.add({ fails: 1, passes: 1 }, 0);
    for (let i = 1; i < 1000; i += 2) expect(tracker.state(slots[i])).toBe(HEALTH_STATES[i % 3]);
    tracker.free();
  });

  it("gives a slot back clean", () => {
    const { tracker, slot, feed } = onePeer({ fails: 2, passes: 1, slowStart: 9 }, "up");
    feed("-");
    tracker.remove(slot);
    expect(() => tracker.state(slot)).toThrow("no peer has the slot");
    expect(tracker.add({ fails: 2, passes: 1 }, 0)).toBe(slot);
    expect([tracker.state(slot), tracker.streak(slot)]).toEqual(["unchecked", 0]);
  });

  it("refuses rules out of range and slots that are free", () => {
    const tracker = new HealthTracker(core);
    for (const rule of [
      { fails: 0, passes: 1 },
      { fails: 1, passes: 32_768 },
      { fails: 1.5, passes: 1 },
      { fails: 1, passes: 1, slowStart: -1 },
    ]) {
      expect(() => tracker.add(rule, 0)).toThrow(expect.objectContaining({ code: "CORE_SOURCE_INVALID" }));
    }
    expect(tracker.size).toBe(0);
    expect(() => tracker.remove(0)).toThrow(expect.objectContaining({ code: "CORE_STATE" }));
    expect(() => tracker.change(5, { fails: 1, passes: 1 }, 0)).toThrow();
    tracker.free();
    expect(() => tracker.report([1], 0)).toThrow("freed");
  });

  it("leaves the core's memory as it was", () => {
    const before = core.memoryUsed;
    const cycle = () => {
      const tracker = new HealthTracker(core);
      const slots = Array.from({ length: 500 }, () => tracker.add({ fails: 1, passes: 1 }, 0));
      tracker.report(slots, 0);
      tracker.free();
    };
    for (let i = 0; i < 20; i++) cycle();
    const size = core.exports.memory.buffer.byteLength;
    for (let i = 0; i < 2000; i++) cycle();
    expect(core.memoryUsed).toBe(before);
    expect(core.exports.memory.buffer.byteLength).toBe(size);
  });

  it("stays as large as it is over any number of results and of peers that come and go", () => {
    const tracker = new HealthTracker(core);
    const slots = Array.from({ length: 100 }, () => tracker.add({ fails: 1, passes: 1 }, 0));
    tracker.report(slots, 0);
    const used = core.memoryUsed;
    for (let i = 0; i < 20_000; i++) {
      tracker.remove(slots[i % 100]);
      slots[i % 100] = tracker.add({ fails: 1, passes: 1 }, i);
      tracker.report(slots, i);
    }
    expect(core.memoryUsed).toBe(used);
    tracker.free();
  });
});

describe("the exports, whatever they are given,", () => {
  const { exports } = core;
  const tracker = exports.health_new(4, 0);
  const block = exports.alloc(64);

  it("refuse what is no tracker", () => {
    const end = exports.memory.buffer.byteLength;
    for (const wrong of [0, 1, 7, block, tracker + 16, tracker - 16, end - 8, end, 0xffff_ffff]) {
      expect(exports.health_set(wrong, 0, 0x10001, 0, 0, 0)).toBe(E_POINTER);
      expect(exports.health_state(wrong, 0)).toBe(E_POINTER);
      expect(exports.health_report(wrong, block, 1, 0, block)).toBe(E_POINTER);
      if (wrong) expect(exports.health_new(8, wrong)).toBe(0);
    }
  });

  it("refuse slots and numbers of slots that there are none of", () => {
    for (const slot of [4, 5, 2 ** 22, 2 ** 28, 0x7fff_ffff, 0xffff_ffff]) {
      expect(exports.health_set(tracker, slot, 0x10001, 0, 0, 0)).toBe(E_POINTER);
      expect(exports.health_state(tracker, slot)).toBe(E_POINTER);
    }
    for (const slots of [2 ** 22 + 1, 2 ** 28, 0xffff_ffff]) expect(exports.health_new(slots, 0)).toBe(0);
  });

  it("refuse rules and states that are none, and leave the slot alone", () => {
    expect(exports.health_set(tracker, 1, 0x20003, 0, 1, 0)).toBe(0);
    for (const [rule, state] of [
      [1, 0],
      [0x10000, 0],
      [0x10001, 5],
      [0x10001, 7],
      [0x10001, 32],
      [0x10001, 0xffff_ffff],
    ]) {
      expect(exports.health_set(tracker, 1, rule, 0, state, 0)).toBe(E_SOURCE);
    }
    expect(exports.health_state(tracker, 1)).toBe(1 + 0x8000 * 256);
    expect(exports.health_state(tracker, 2)).toBe(E_STATE);
  });

  it("refuse batches that do not lie in the memory", () => {
    const end = exports.memory.buffer.byteLength;
    for (const [at, count] of [
      [block, 0xffff_ffff],
      [block, 0x4000_0000],
      [end - 4, 2],
      [end, 1],
      [0xffff_fffc, 1],
      [0xffff_ffff, 0x1000_0000],
    ]) {
      expect(exports.health_report(tracker, at, count, 0, block)).toBe(E_POINTER);
      expect(exports.health_report(tracker, block, count, 0, at)).toBe(E_POINTER);
    }
    expect(exports.health_report(tracker, end, 0, 0, end)).toBe(0);
  });

  it("survive a tracker whose own memory is written over", () => {
    const random = new Random(5);
    for (let i = 0; i < 20_000; i++) {
      const broken = exports.health_new(3, 0);
      const words = new Uint32Array(exports.memory.buffer, broken, 16);
      for (let w = random.below(2); w < 16; w++) if (random.onceIn(2)) words[w] = random.word();
      exports.health_report(broken, block, 16, random.word(), block);
      exports.health_set(broken, random.below(5), random.word(), random.word(), random.below(32), 0);
      exports.health_state(broken, random.below(5));
      expect(exports.free(broken)).toBe(0);
    }
  });
});
