import { describe, expect, it } from "vitest";
import type { Probe } from "../../controller/health/attempt.js";
import { HealthBoard, type PeerHealth } from "../../controller/health/board.js";
import { Prober } from "../../controller/health/prober.js";
import { Probes } from "../../controller/health/probes.js";
import type { Outcome } from "../../controller/health/target.js";
import { HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import { sharedCore } from "../support/core.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { httpPeer, tcpPeer } from "../support/peers.js";
import { checkedUpstream, until } from "./health-support.js";

cleanUpAfterEach();

/** A board and a prober at work; `seen` gathers the transitions. */
function working(probe: Probe, limit = 1000, now = () => performance.now()) {
  const seen: PeerHealth[] = [];
  const board: HealthBoard = new HealthBoard({
    tracker: new HealthTracker(sharedCore),
    random: () => 0,
    onDropped: (target) => prober.drop(target),
  });
  const prober = new Prober(board, probe, { limit, now, onTransitions: (changed) => seen.push(...changed) });
  cleanup(() => prober.close());
  return { board, prober, seen, now };
}

/** A probe whose outcomes are told by hand. */
function byHand() {
  const asked: { address: string; tell: (outcome: Outcome) => void; cancelled: boolean }[] = [];
  const probe: Probe = ({ address }, done) => {
    const entry = { address, tell: done, cancelled: false };
    asked.push(entry);
    return () => {
      entry.cancelled = true;
    };
  };
  return { asked, probe, open: () => asked.filter(({ cancelled }) => !cancelled) };
}

const PASS = { passed: true, reason: "fine" };

describe("the prober", () => {
  it("is not held up by peers that hang: the others are probed on, and those that hang are down", async () => {
    const probes = new Probes(0);
    let answered = 0;
    const good = closing(await httpPeer((_request, response) => response.end(`${answered++}`)));
    const hung = closing(await tcpPeer(() => undefined));
    const { board, prober, seen, now } = working(probes.probe);
    for (let i = 0; i < 20; i++)
      board.set(checkedUpstream(`hung${i}`, [`127.0.0.1:${hung.port}`], { path: `/${i}` }), now());
    board.set(checkedUpstream("hung-too", [`127.0.0.1:${hung.port}`], { interval: 20, readTimeout: 60_000 }), now());
    board.set(checkedUpstream("slow", [`127.0.0.1:${hung.port}`], { interval: 20, readTimeout: 50 }), now());
    board.set(checkedUpstream("good", [`127.0.0.1:${good.port}`], { interval: 20 }), now());
    prober.wake();
    await until("the peer that hangs is down", () =>
      seen.some(({ upstream, state }) => upstream === "slow" && state === "down"),
    );
    const before = answered;
    await until("the good one is probed on", () => answered > before + 10);
    expect(seen.filter(({ upstream }) => upstream === "good").map(({ state }) => state)).toEqual(["up"]);
    // One at a time, however many intervals went by.
    expect(seen.some(({ upstream }) => upstream === "hung-too")).toBe(false);
    expect(seen.find(({ upstream }) => upstream === "slow")?.reason).toBe("timed out waiting for the answer");
  });

  it("has no more probes under way than its limit, and starts the next ones as others end", async () => {
    const { asked, probe } = byHand();
    const { board, prober, now } = working(probe, 2);
    board.set(
      checkedUpstream("u", ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"], { interval: 1000 }),
      now(),
    );
    prober.wake();
    await until("all are due", () => prober.counts.waiting === 2);
    expect(prober.counts).toMatchObject({ underWay: 2, ended: 0 });
    asked[0].tell(PASS);
    asked[1].tell(PASS);
    await until("the others are started", () => asked.length >= 4);
    const first = new Set(asked.slice(0, 4).map(({ address }) => address));
    expect(first.size).toBe(4);
  });

  it("at its limit ends the oldest probe once that has had its interval, as a failure", async () => {
    const { asked, probe } = byHand();
    let clock = 0;
    const { board, prober, seen } = working(probe, 1, () => clock);
    board.set(checkedUpstream("u", ["10.0.0.1:80", "10.0.0.2:80"], { interval: 50 }), 0);
    prober.wake();
    clock = 49;
    await until("both are due", () => prober.counts.underWay + prober.counts.waiting === 2);
    expect(asked).toHaveLength(1);
    clock = 200;
    await until("the oldest was ended", () => asked[0].cancelled);
    expect(asked[1]?.address).not.toBe(asked[0].address);
    await until("it counts as failed", () => seen.length > 0);
    expect(seen[0]).toMatchObject({
      address: asked[0].address,
      state: "down",
      reason: "no answer within the interval",
    });
    // Told too late.
    asked[0].tell(PASS);
    expect(prober.counts.ended).toBe(1);
  });

  it("ends the probe of a peer that is gone, and everything when it is closed", async () => {
    const { asked, probe, open } = byHand();
    const { board, prober, now } = working(probe);
    board.set(checkedUpstream("u", ["10.0.0.1:80"], { interval: 20 }), now());
    board.set(checkedUpstream("v", ["10.0.0.2:80"], { interval: 20 }), now());
    prober.wake();
    await until("both are probed", () => asked.length === 2);
    board.remove("u");
    expect(open().map(({ address }) => address)).toEqual(["10.0.0.2"]);
    prober.close();
    expect(open()).toEqual([]);
  });
});
