import { describe, expect, it } from "vitest";
import type { BalanceMethod, PeerSetSource } from "../../core-wasm/binding/source.js";
import { sharedCore as core } from "../support/core.js";
import { argument } from "../support/rules.js";
import { nameOf, type PeerPart, TestUpstream } from "./upstream.js";

const THREE: PeerPart[] = [{ name: 1 }, { name: 2 }, { name: 3 }];
const ROUND_ROBIN: BalanceMethod = { kind: "round-robin" };
const METHODS: BalanceMethod[] = [
  ...(["round-robin", "least-conn", "random", "random-two", "ip-hash"] as const).map((kind) => ({ kind })),
  ...(["ring", "nginx-ring", "maglev"] as const).flatMap((kind) => [
    { kind, key: [argument("k")] },
    { kind, key: [argument("k")], bounded: true },
  ]),
];

function upstream(limits: PeerSetSource["limits"] = {}, peers = THREE, method = ROUND_ROBIN): TestUpstream {
  return new TestUpstream(core, method, peers, { limits });
}

/** Peers that requests get, in ascending order, each once. */
function reached(set: TestUpstream, requests = 12): number[] {
  const met = new Set<number>();
  for (let i = 0; i < requests; i++) met.add(set.once(i * 0x1357_9bdf));
  return [...met].sort();
}

describe("a peer", () => {
  it("is not picked while it is down, and is again once it is up", () => {
    const set = upstream();
    set.state(2, "down");
    expect(reached(set)).toEqual([1, 3]);
    set.state(2, "up");
    expect(reached(set)).toEqual([1, 2, 3]);
  });

  it("is not picked while it drains, by its state or by its endpoint", () => {
    const set = upstream({}, [...THREE.slice(0, 2), { name: 3, draining: true }]);
    expect(reached(set)).toEqual([1, 2]);
    set.state(1, "draining");
    expect(reached(set)).toEqual([2]);
  });

  it("gets traffic before its first check, unless checks are mandatory", () => {
    expect(reached(upstream())).toEqual([1, 2, 3]);
    const set = upstream({ mandatory: true });
    expect(set.decide()).toMatchObject({ action: "return", status: 503, upstream: "default/tea:80" });
    set.state(2, "up");
    expect(reached(set)).toEqual([2]);
  });

  it("is out for failTimeout after maxFails failures, then gets one request, whose success brings it back", () => {
    const set = upstream({ maxFails: 2, failTimeout: 1_000 });
    set.fail(1);
    expect(reached(set)).toEqual([1, 2, 3]);
    set.fail(1);
    expect(reached(set)).toEqual([2, 3]);
    expect(set.table.peersOf(set.key).map(({ out }) => out)).toEqual([true, false, false]);
    set.now += 1_000;
    expect(reached(set)).toEqual([2, 3]);
    set.now += 1;
    const probes = Array.from({ length: 6 }, () => set.proxy().peer);
    expect(probes.filter((peer) => nameOf(peer) === 1)).toHaveLength(1);
    for (const peer of probes) set.done(peer);
    expect(reached(set)).toEqual([1, 2, 3]);
    set.fail(1);
    expect(reached(set), "failures of before are forgotten").toEqual([1, 2, 3]);
  });

  it("is out again for failTimeout where that one request fails", () => {
    const set = upstream({ maxFails: 1, failTimeout: 1_000 });
    set.fail(1);
    set.now += 1_001;
    set.fail(1);
    expect(reached(set)).toEqual([2, 3]);
    set.now += 1_001;
    expect(reached(set)).toEqual([1, 2, 3]);
  });

  it("has its failures counted within failTimeout only", () => {
    const set = upstream({ maxFails: 2, failTimeout: 1_000 });
    set.fail(1);
    set.now += 1_500;
    expect(reached(set)).toEqual([1, 2, 3]);
    set.fail(1);
    expect(reached(set)).toEqual([1, 2, 3]);
  });

  it("never goes out by failures where maxFails is 0", () => {
    const set = upstream({ maxFails: 0, failTimeout: 1_000 });
    for (let i = 0; i < 5; i++) set.fail(1);
    expect(reached(set)).toEqual([1, 2, 3]);
  });

  it("is out by the clock also where that wraps", () => {
    const set = upstream({ maxFails: 1, failTimeout: 1_000 });
    set.now = 2 ** 32 - 500;
    set.fail(1);
    set.now = 2 ** 32 + 499;
    expect(reached(set)).toEqual([2, 3]);
    set.now += 2;
    expect(reached(set)).toEqual([1, 2, 3]);
  });

  it("has no more than maxConns requests under way, and its place is free when one ends", () => {
    const set = upstream({ maxConns: 2 });
    const peers = Array.from({ length: 6 }, () => set.proxy().peer);
    expect(peers.map(nameOf).sort()).toEqual([1, 1, 2, 2, 3, 3]);
    set.done(peers[4]);
    expect(set.once()).toBe(nameOf(peers[4]));
  });
});

describe("the order of mercy", () => {
  it("1: failures alone never empty an upstream, and a lone peer ignores them", () => {
    const set = upstream({ maxFails: 1, failTimeout: 10_000 });
    for (const name of [1, 2, 3]) set.fail(name);
    expect(reached(set)).toEqual([1, 2, 3]);
    const lone = upstream({ maxFails: 1, failTimeout: 10_000 }, [{ name: 7 }]);
    for (let i = 0; i < 3; i++) lone.fail(7);
    expect(reached(lone)).toEqual([7]);
  });

  it("1 comes before 2: a peer that failed is taken rather than one that drains", () => {
    const set = upstream({ maxFails: 1, failTimeout: 10_000 });
    set.fail(1);
    set.state(2, "draining");
    set.state(3, "down");
    expect(reached(set)).toEqual([1]);
  });

  it("2: draining peers are taken where nobody else is left", () => {
    const set = upstream({ maxFails: 1, failTimeout: 10_000 });
    set.state(1, "draining");
    set.state(2, "down");
    set.state(3, "draining");
    expect(reached(set)).toEqual([1, 3]);
  });

  it("2 comes before 4: a draining peer is taken where the others are busy", () => {
    const set = upstream({ maxConns: 1 }, THREE.slice(0, 2));
    set.state(2, "draining");
    expect([set.proxy(), set.proxy()].map(({ peer }) => nameOf(peer))).toEqual([1, 2]);
    expect(set.decide()).toMatchObject({ action: "return", status: 502, busy: true });
  });

  it("3: with all peers down the answer is 503, and with panic all of them are used", () => {
    const set = upstream();
    for (const name of [1, 2, 3]) set.state(name, "down");
    expect(set.decide()).toMatchObject({ action: "return", status: 503, upstream: "default/tea:80" });
    expect(set.decide()).not.toHaveProperty("busy");
    set.change({ limits: { panic: true } });
    expect(reached(set)).toEqual([1, 2, 3]);
  });

  it("3: panic also covers peers that were never checked where checks are mandatory", () => {
    const set = upstream({ mandatory: true, panic: true });
    set.state(1, "down");
    expect(reached(set)).toEqual([1, 2, 3]);
  });

  it("3: is no panic while one peer is not down, even if that one was tried or is busy", () => {
    const set = upstream({ panic: true, maxConns: 1 });
    set.state(1, "down");
    set.state(2, "down");
    const { peer } = set.proxy();
    expect(nameOf(peer)).toBe(3);
    expect(set.retries([peer])).toEqual(["none"]);
    expect(set.decide()).toMatchObject({ busy: true });
  });

  it("4: where peers have nothing against them but their number of requests, the answer is 502 and busy", () => {
    const set = upstream({ maxConns: 1 });
    set.state(3, "down");
    const [first] = [set.proxy(), set.proxy()];
    expect(set.decide()).toEqual({
      action: "return",
      status: 502,
      headers: [],
      upstream: "default/tea:80",
      upstreamKey: set.key,
      busy: true,
      origin: expect.anything(),
    });
    expect(set.table.pickPeer(set.key, { tried: [] }, 0, set.now)).toBe("busy");
    set.done(first.peer);
    expect(set.table.pickPeer(set.key, { tried: [] }, 0, set.now)).toMatchObject({ address: first.peer.address });
  });

  it("4: a busy answer has the hash, so that the request can ask again", () => {
    const set = upstream({ maxConns: 1 }, [{ name: 1 }], { kind: "ring", key: [argument("k")] });
    const ask = () => set.table.decide({ ...requestOf("/?k=a") }, 0, set.now);
    ask();
    expect(ask()).toMatchObject({ busy: true, hash: 3904355907 });
  });

  it.each(METHODS)("holds for %j", (method) => {
    const parts = { target: "/?k=user-1" };
    const get = (set: TestUpstream) => set.table.decide(requestOf(parts.target), 12345, set.now);
    const peerOf = (set: TestUpstream) => {
      const decision = get(set);
      if (decision.action !== "proxy") return decision.status;
      set.done(decision.peer);
      return nameOf(decision.peer);
    };
    for (const alone of [1, 2, 3]) {
      const set = upstream({ maxFails: 1, failTimeout: 10_000, maxConns: 1 }, THREE, method);
      for (const name of [1, 2, 3]) if (name !== alone) set.state(name, "down");
      expect(peerOf(set)).toBe(alone);
      set.fail(alone);
      expect(peerOf(set)).toBe(alone);
      set.state(alone, "draining");
      expect(peerOf(set)).toBe(alone);
      expect(get(set)).toMatchObject({ action: "proxy" });
      expect(get(set)).toMatchObject({ status: 502, busy: true });
      set.state(alone, "down");
      expect(peerOf(set)).toBe(503);
    }
  });
});

function requestOf(target: string) {
  return {
    method: "GET",
    scheme: "http" as const,
    host: "example.com",
    target,
    protocol: "HTTP/1.1",
    clientAddress: "192.0.2.7",
    clientPort: 40123,
    header: () => undefined,
  };
}

describe("a retry", () => {
  it("never meets a tried peer, whatever mercy there is, and ends with none", () => {
    for (const method of METHODS) {
      const set = upstream({ maxFails: 1, failTimeout: 10_000, panic: true }, THREE, method);
      const { peer } = set.proxy();
      set.fail(2);
      const met = set.retries([peer], 5);
      expect(met.pop()).toBe("none");
      expect([nameOf(peer), ...met].map(Number).sort()).toEqual([1, 2, 3]);
      for (const name of [1, 2, 3]) set.state(name, "down");
      expect(set.retries([], 5)).toHaveLength(4);
    }
  });

  it("of an unknown upstream, or one whose peers are gone, has nobody", () => {
    const set = upstream();
    expect(set.table.pickPeer("nobody", { tried: [] }, 0, 0)).toBeUndefined();
    set.change({ peers: [] });
    expect(set.retries()).toEqual(["none"]);
    set.table.removePeers(set.key);
    expect(set.retries()).toEqual(["none"]);
  });
});
