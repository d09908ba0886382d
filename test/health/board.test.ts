import { describe, expect, it } from "vitest";
import { HealthBoard } from "../../controller/health/board.js";
import type { CheckedUpstream } from "../../controller/health/checked-upstream.js";
import { Schedule } from "../../controller/health/schedule.js";
import { newTarget, type Target } from "../../controller/health/target.js";
import { HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import { sharedCore } from "../support/core.js";
import { Random } from "../support/random.js";
import { check, checkedUpstream } from "./health-support.js";

const A = "10.0.0.1:80";
const B = "10.0.0.2:80";

/** A board with a clock and answers of its own. */
class Bench {
  now = 0;
  readonly tracker = new HealthTracker(sharedCore);
  readonly dropped: Target[] = [];
  readonly board: HealthBoard;
  /** Addresses that were probed, with the time. */
  readonly probed: { address: string; at: number }[] = [];

  constructor(random = () => 0) {
    this.board = new HealthBoard({ tracker: this.tracker, random, onDropped: (target) => this.dropped.push(target) });
  }

  set(upstream: CheckedUpstream): void {
    this.board.set(upstream, this.now);
  }

  /** Lets `ms` go by; every probe ends at once, as `passes` says. Gives the transitions. */
  run(ms: number, passes: (address: string) => boolean): string[] {
    const end = this.now + ms;
    const changed: string[] = [];
    for (;;) {
      const { nextDue } = this.board;
      if (nextDue === undefined || nextDue > end) break;
      this.now = nextDue;
      for (let target = this.board.take(this.now); target !== undefined; target = this.board.take(this.now)) {
        this.probed.push({ address: target.address, at: this.now });
        this.board.finish(target, { passed: passes(target.address), reason: "seen" }, this.now);
      }
      changed.push(...this.flush());
    }
    this.now = end;
    return changed;
  }

  flush(): string[] {
    return this.board.flush(this.now).map(({ upstream, address, state }) => `${upstream} ${address} ${state}`);
  }

  states(): Record<string, string> {
    return Object.fromEntries(this.board.states().map((peer) => [`${peer.upstream} ${peer.address}`, peer.state]));
  }
}

describe("the board", () => {
  it("probes each peer once an interval", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A, B]));
    bench.run(60_000, () => true);
    for (const address of ["10.0.0.1", "10.0.0.2"]) {
      const times = bench.probed.filter((one) => one.address === address).map(({ at }) => at);
      expect(times).toHaveLength(12);
      for (let i = 1; i < times.length; i++) expect(times[i] - times[i - 1]).toBeCloseTo(5000);
    }
  });

  it("spreads the probes over the interval, however many peers come at once", () => {
    const bench = new Bench();
    const ids = Array.from({ length: 10_000 }, (_, i) => `10.1.${i >> 8}.${i & 255}:8080`);
    bench.set(checkedUpstream("u", ids));
    bench.run(5000, () => true);
    expect(bench.probed).toHaveLength(10_000);
    const slots = new Array(100).fill(0);
    for (const { at } of bench.probed) slots[Math.min(99, Math.floor(at / 50))]++;
    // 100 expected in each; six standard deviations up and down.
    expect(Math.max(...slots)).toBeLessThan(160);
    expect(Math.min(...slots)).toBeGreaterThan(40);
  });

  it("gives a peer the same phase after a restart", () => {
    const times = [0, 0].map(() => {
      const bench = new Bench();
      bench.set(checkedUpstream("u", [A, B]));
      bench.run(5000, () => true);
      return bench.probed;
    });
    expect(times[0]).toEqual(times[1]);
  });

  it("adds up to `jitter` to each interval", () => {
    const bench = new Bench(() => 0.5);
    bench.set(checkedUpstream("u", [A], { jitter: 1000 }));
    bench.run(60_000, () => true);
    const times = bench.probed.map(({ at }) => at);
    for (let i = 1; i < times.length; i++) expect(times[i] - times[i - 1]).toBeCloseTo(5500);
  });

  it("has one probe of a peer under way at a time, and does not make up for what was missed", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A]));
    const first = bench.board.nextDue!;
    const target = bench.board.take(first)!;
    expect(bench.board.take(first + 100_000)).toBeUndefined();
    bench.board.finish(target, { passed: false, reason: "timed out" }, first + 12_000);
    expect(bench.board.nextDue).toBeCloseTo(first + 15_000);
  });

  it("tells of transitions, and only of these", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A, B], { fails: 2, passes: 2 }));
    expect(bench.run(5000, () => true)).toEqual([]);
    expect(bench.run(5000, () => true).sort()).toEqual(["u 10.0.0.1 up", "u 10.0.0.2 up"]);
    expect(bench.run(5000, (address) => address !== "10.0.0.2")).toEqual([]);
    expect(bench.run(50_000, (address) => address !== "10.0.0.2")).toEqual(["u 10.0.0.2 down"]);
  });

  it("leaves the states of the others alone when peers come and go", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A, B]));
    bench.run(5000, (address) => address !== "10.0.0.2");
    bench.set(checkedUpstream("u", [B, "10.0.0.3:80"]));
    expect(bench.states()).toEqual({ "u 10.0.0.2": "down", "u 10.0.0.3": "unchecked" });
    bench.board.change(
      "u",
      [{ address: "10.0.0.4", port: 80, draining: false }],
      [{ address: "10.0.0.3", port: 80 }],
      0,
    );
    expect(bench.states()).toEqual({ "u 10.0.0.2": "down", "u 10.0.0.4": "unchecked" });
    expect(bench.flush()).toEqual([]);
  });

  it("begins anew with a last peer that was removed and added again", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A]));
    bench.run(5000, () => false);
    bench.set(checkedUpstream("u", []));
    bench.set(checkedUpstream("u", [A]));
    expect(bench.states()).toEqual({ "u 10.0.0.1": "unchecked" });
    expect(bench.run(5000, () => true)).toEqual(["u 10.0.0.1 up"]);
  });

  it("begins anew when the check changes, and says so, unless it is persistent", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A]));
    bench.set(checkedUpstream("p", [A], { persistent: true }));
    bench.run(5000, () => true);
    bench.set(checkedUpstream("u", [A], { path: "/other" }));
    bench.set(checkedUpstream("p", [A], { path: "/other", persistent: true }));
    expect(bench.flush()).toEqual(["u 10.0.0.1 unchecked"]);
    expect(bench.states()).toEqual({ "u 10.0.0.1": "unchecked", "p 10.0.0.1": "up" });
  });

  it("keeps states when an upstream is set again as it was", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A, B]));
    bench.run(5000, (address) => address === "10.0.0.1");
    // Fields in another order are the same check.
    const again = checkedUpstream("u", [B, A]);
    again.check = Object.fromEntries(Object.entries(again.check).reverse()) as unknown as typeof again.check;
    bench.set(again);
    expect(bench.states()).toEqual({ "u 10.0.0.1": "up", "u 10.0.0.2": "down" });
  });

  it("takes a state that was known before as the starting point, and says nothing of it", () => {
    const bench = new Bench();
    const upstream = checkedUpstream("u", [A, B], { fails: 3 });
    upstream.peers[0].state = "up";
    upstream.peers[1].state = "down";
    bench.set(upstream);
    expect(bench.flush()).toEqual([]);
    expect(bench.run(10_000, () => false)).toEqual([]);
    expect(bench.run(5000, () => false)).toEqual(["u 10.0.0.1 down"]);
  });

  it("prefers what it knows itself to a state that it is given for a peer that it has", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A]));
    bench.run(5000, () => true);
    const again = checkedUpstream("u", [A]);
    again.peers[0].state = "down";
    bench.set(again);
    expect(bench.states()).toEqual({ "u 10.0.0.1": "up" });
  });

  it("tells of a peer that begins and ends to drain", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A]));
    bench.run(5000, () => true);
    const drain = (draining: boolean) => bench.board.change("u", [{ address: "10.0.0.1", port: 80, draining }], [], 0);
    drain(true);
    expect(bench.flush()).toEqual(["u 10.0.0.1 draining"]);
    expect(bench.run(20_000, () => true)).toEqual([]);
    drain(false);
    expect(bench.flush()).toEqual(["u 10.0.0.1 unchecked"]);
  });

  it("asks once for two upstreams that ask the same of the same address, and judges for each", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("one", [A], { fails: 1 }));
    bench.set(checkedUpstream("two", [A], { fails: 2 }));
    bench.set(checkedUpstream("other", [A], { path: "/other" }));
    expect(bench.board.targetCount).toBe(2);
    expect(bench.run(5000, () => false).sort()).toEqual(["one 10.0.0.1 down", "other 10.0.0.1 down"]);
    expect(bench.run(5000, () => false)).toEqual(["two 10.0.0.1 down"]);
    bench.board.remove("one");
    expect(bench.run(5000, () => true).sort()).toEqual(["other 10.0.0.1 up", "two 10.0.0.1 up"]);
    bench.board.remove("two");
    expect(bench.board.targetCount).toBe(1);
  });

  it("drops a probe under way when nobody needs its target any more, and does not count its outcome", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A]));
    const target = bench.board.take(5000)!;
    bench.board.remove("u");
    expect(bench.dropped).toEqual([target]);
    bench.set(checkedUpstream("u", [A]));
    bench.board.finish(target, { passed: false, reason: "late" }, 5000);
    expect(bench.flush()).toEqual([]);
    expect(bench.states()).toEqual({ "u 10.0.0.1": "unchecked" });
  });

  it("does not count a result for the peer that gets the slot next", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A]));
    bench.board.finish(bench.board.take(5000)!, { passed: false, reason: "refused" }, 5000);
    bench.board.remove("u");
    bench.set(checkedUpstream("v", [B]));
    expect(bench.flush()).toEqual([]);
    expect(bench.states()).toEqual({ "v 10.0.0.2": "unchecked" });
  });

  it("probes the port of the check instead of the peer's own", () => {
    const bench = new Bench();
    bench.set(checkedUpstream("u", [A], { port: 9000 }));
    expect(bench.board.take(5000)).toMatchObject({ address: "10.0.0.1", port: 9000 });
  });

  it("holds nothing of what is gone, after 2,000 random changes", () => {
    const random = new Random(6);
    const bench = new Bench(() => random.below(1000) / 1000);
    for (let i = 0; i < 2000; i++) {
      const key = `u${random.below(10)}`;
      const ids = random.picks([A, B, "10.0.0.3:80", "[::1]:80", "10.0.0.4:80"], random.below(6));
      if (random.onceIn(4)) bench.board.remove(key);
      else bench.set(checkedUpstream(key, [...new Set(ids)], { path: random.pick(["/", "/health"]) }));
      bench.run(random.below(4000), () => random.onceIn(2));
    }
    for (let i = 0; i < 10; i++) bench.board.remove(`u${i}`);
    expect([bench.board.peerCount, bench.board.targetCount, bench.board.nextDue]).toEqual([0, 0, undefined]);
  });
});

describe("the schedule", () => {
  it("gives targets in the order in which they are due, whatever is added and taken out in between", () => {
    const random = new Random(7);
    const schedule = new Schedule();
    const live = new Set<Target>();
    let now = 0;
    for (let i = 0; i < 20_000; i++) {
      if (random.onceIn(2)) {
        const target = newTarget(`${i}`, "10.0.0.1", 80, check());
        target.due = now + random.below(1000);
        schedule.add(target);
        live.add(target);
      } else if (random.onceIn(3) && live.size > 0) {
        const [target] = [...live].slice(random.below(live.size));
        schedule.remove(target);
        schedule.remove(target);
        live.delete(target);
      } else {
        now += random.below(20);
        const due = [...live].filter((target) => target.due <= now);
        const taken: Target[] = [];
        for (let target = schedule.take(now); target !== undefined; target = schedule.take(now)) taken.push(target);
        expect(taken.map((target) => target.due)).toEqual(due.map((target) => target.due).sort((a, b) => a - b));
        expect(new Set(taken)).toEqual(new Set(due));
        for (const target of taken) live.delete(target);
      }
      if (schedule.size !== live.size) expect(schedule.size).toBe(live.size);
    }
  });
});
