import { describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import type { ChosenPeer } from "../../core-wasm/binding/decision.js";
import { sharedCore as core } from "../support/core.js";
import { RawTable } from "../support/raw-core.js";
import { cookie } from "../support/rules.js";
import { randomNumbers } from "./core-instance.js";
import { nameOf, type PeerPart, TestUpstream, tally } from "./upstream.js";

const names = (...list: number[]): PeerPart[] => list.map((name) => ({ name }));

describe("what is known of a peer", () => {
  it("stays when other peers come and go, in any order of the list", () => {
    const upstream = new TestUpstream(core, { kind: "least-conn" }, names(1, 2, 3, 4), {
      limits: { maxFails: 1, failTimeout: 1000 },
    });
    upstream.state(2, "down");
    upstream.state(4, "up");
    upstream.fail(3);
    const held = upstream.proxy().peer;
    const before = new Map(upstream.table.peersOf(upstream.key).map((peer) => [nameOf(peer), peer]));
    const random = randomNumbers(9);
    for (let i = 0; i < 200; i++) {
      const others = Array.from({ length: random() % 20 }, () => 10 + (random() % 50));
      const list = [1, 2, 3, 4, ...others].sort(() => (random() % 2) - 0.5);
      upstream.change({ peers: names(...list) });
    }
    const after = new Map(upstream.table.peersOf(upstream.key).map((peer) => [nameOf(peer), peer]));
    for (const name of [1, 2, 3, 4]) expect(after.get(name)).toEqual(before.get(name));
    expect(upstream.table.peersOf(upstream.key).every((p) => nameOf(p) < 5 || p.state === "unchecked")).toBe(true);
    upstream.done(held);
    expect(upstream.table.peersOf(upstream.key).reduce((sum, { conns }) => sum + conns, 0)).toBe(0);
  });

  it("is forgotten when it goes: a last peer removed and added again is usable", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, names(1));
    upstream.state(1, "down");
    expect(upstream.decide()).toMatchObject({ status: 503 });
    upstream.change({ peers: [] });
    upstream.change({ peers: names(1) });
    expect(upstream.once()).toBe(1);
  });

  it("is not touched by the end of a request to a peer that has left since", () => {
    const limits = { maxFails: 1, failTimeout: 1000 };
    const upstream = new TestUpstream(core, { kind: "least-conn" }, names(1), { limits });
    const old = [upstream.proxy().peer, upstream.proxy().peer];
    upstream.change({ peers: names(2) });
    upstream.change({ peers: names(1) });
    const fresh = upstream.proxy().peer;
    for (const peer of old) upstream.done(peer, true);
    expect(upstream.table.peersOf(upstream.key)).toEqual([
      expect.objectContaining({ conns: 1, out: false, state: "unchecked" }),
    ]);
    upstream.done(fresh);
    upstream.done(fresh);
    expect(upstream.table.peersOf(upstream.key)[0].conns).toBe(0);
  });

  it("belongs to one upstream, though another has the same peer", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, names(1, 2));
    const other = { key: "other", display: "o", method: { kind: "round-robin" as const } };
    upstream.table.setPeers({ ...other, peers: [{ address: "10.0.0.1", port: 80, weight: 1 }] });
    upstream.state(1, "down");
    expect(upstream.table.peersOf("other")[0].state).toBe("unchecked");
    expect(upstream.table.peersOf(upstream.key)[0].state).toBe("down");
  });

  it("is set by any spelling of the address, and unknown peers and upstreams are ignored", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, []);
    upstream.table.setPeers({
      key: "six",
      display: "s",
      method: { kind: "round-robin" },
      peers: [{ address: "2001:db8::1", port: 80, weight: 1 }],
    });
    upstream.table.setPeerState("six", { address: "2001:DB8:0::1", port: 80 }, "draining", 0);
    expect(upstream.table.peersOf("six")[0].state).toBe("draining");
    upstream.table.setPeerState("six", { address: "2001:db8::2", port: 80 }, "down", 0);
    upstream.table.setPeerState("six", { address: "nonsense", port: 80 }, "down", 0);
    upstream.table.setPeerState("nobody", { address: "2001:db8::1", port: 80 }, "down", 0);
    expect(upstream.table.peersOf("six")[0].state).toBe("draining");
    expect(upstream.table.peersOf("nobody")).toEqual([]);
  });

  it("does not change by explaining a decision", () => {
    const upstream = new TestUpstream(core, { kind: "least-conn" }, names(1, 2, 3));
    upstream.state(2, "down");
    upstream.state(3, "draining");
    const { table } = upstream;
    const request = { ...blank, target: "/" };
    const { steps, decision } = table.explain(request, 0, 0);
    expect(decision).toMatchObject({ action: "proxy", peer: { address: "10.0.0.1" } });
    expect(steps.filter(({ step }) => step === "upstream").map(({ rule, reason }) => [rule, reason])).toEqual([
      ["default/tea:80", "peer 10.0.0.1:80"],
      ["peer 10.0.0.2:80", "it is down by its checks"],
      ["peer 10.0.0.3:80", "it drains"],
    ]);
    expect(table.peersOf(upstream.key).map(({ conns }) => conns)).toEqual([0, 0, 0]);
  });
});

const blank = {
  method: "GET",
  scheme: "http" as const,
  host: "example.com",
  protocol: "HTTP/1.1",
  clientAddress: "192.0.2.7",
  clientPort: 1,
  header: () => undefined,
};

describe("slow start", () => {
  it.each(["round-robin", "least-conn"] as const)("%s: the weight rises from a small share to the full one", (kind) => {
    const upstream = new TestUpstream(core, { kind }, names(1, 2), { limits: { slowStart: 10_000 } });
    const share = () => tally(Array.from({ length: 264 }, () => upstream.once())).get(1) ?? 0;
    upstream.state(1, "down");
    expect(share()).toBe(0);
    upstream.now += 5_000;
    upstream.state(1, "up");
    // 8/256, then half way to the whole, of a weight of its own against 1.
    expect(Math.abs(share() - 8)).toBeLessThanOrEqual(1);
    upstream.now += 5_000;
    expect(Math.abs(share() - (264 * 132) / 388)).toBeLessThanOrEqual(1);
    upstream.now += 5_000;
    expect(Math.abs(share() - 132)).toBeLessThanOrEqual(1);
  });

  it("is only for peers that were down", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, names(1, 2), { limits: { slowStart: 10_000 } });
    upstream.state(1, "up");
    upstream.state(2, "draining");
    upstream.state(2, "up");
    expect([1, 2, 3, 4].map(() => upstream.once())).toEqual([1, 2, 1, 2]);
  });
});

describe("a session cookie", () => {
  const SESSION = { sessionCookie: "route" };
  const withCookie = (value: string) => ({ headers: { cookie: `a=b; route=${value}` } });

  it("is given to a new client, and leads an old one to its peer", () => {
    for (const method of [{ kind: "round-robin" as const }, { kind: "ring" as const, key: [cookie("a")] }]) {
      const upstream = new TestUpstream(core, method, names(1, 2, 3, 4), SESSION);
      const first = upstream.proxy();
      expect(first.session).toEqual({ value: expect.stringMatching(/^[0-9a-f]{8}$/), isNew: true });
      const value = first.session?.value ?? "";
      expect(first.peer.session).toBe(value);
      for (let i = 0; i < 5; i++) {
        const again = upstream.proxy(0, withCookie(i % 2 ? value : value.toUpperCase()));
        expect(again.peer.address).toBe(first.peer.address);
        expect(again.session).toEqual({ value, isNew: false });
      }
    }
  });

  it("is the CRC-32 of the peer's id, the same everywhere", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, names(1), SESSION);
    const hash = core.withBytes(new TextEncoder().encode("10.0.0.1:80"), (at, n) => core.exports.ring_crc32(0, at, n));
    expect(upstream.proxy().session?.value).toBe((hash >>> 0).toString(16).padStart(8, "0"));
  });

  it("keeps its peer while that drains, not while it is down, out or busy", () => {
    const limits = { maxFails: 1, failTimeout: 1000, maxConns: 2 };
    const upstream = new TestUpstream(core, { kind: "round-robin" }, names(1, 2), { ...SESSION, limits });
    const first = upstream.proxy();
    const parts = withCookie(first.session?.value ?? "");
    const kept = () => {
      const { peer, session } = upstream.proxy(0, parts);
      upstream.done(peer);
      expect(session?.isNew).toBe(peer.address !== first.peer.address);
      return peer.address === first.peer.address;
    };
    const name = nameOf(first.peer);
    expect(kept()).toBe(true);
    upstream.state(name, "draining");
    expect(kept()).toBe(true);
    upstream.state(name, "down");
    expect(kept()).toBe(false);
    upstream.state(name, "up");
    upstream.fail(name);
    expect(kept()).toBe(false);
    upstream.now += 1001;
    expect(kept()).toBe(true);
    upstream.proxy(0, parts);
    expect(kept()).toBe(false);
  });

  it.each(["", "zzzzzzzz", "0123456", "012345678", "00000000", "ffffffff", "0x123456"])(
    "that says %j is nobody's",
    (value) => {
      const upstream = new TestUpstream(core, { kind: "round-robin" }, names(1, 2, 3), SESSION);
      expect([1, 2, 3].map(() => nameOf(upstream.proxy(0, withCookie(value)).peer))).toEqual([1, 2, 3]);
      expect(upstream.proxy(0, withCookie(value)).session?.isNew).toBe(true);
    },
  );

  it("spreads new clients by the method, the key beside it", () => {
    const method = { kind: "ring" as const, key: [cookie("a")] };
    const sticky = new TestUpstream(core, method, names(1, 2, 3, 4, 5), SESSION);
    const plain = new TestUpstream(core, method, names(1, 2, 3, 4, 5));
    for (let i = 0; i < 50; i++) {
      const parts = { headers: { cookie: `a=${i}` } };
      expect(sticky.once(0, parts)).toBe(plain.once(0, parts));
      expect(sticky.proxy(0, parts).hash).toBe(plain.proxy(0, parts).hash);
    }
    expect(plain.proxy().session).toBeUndefined();
  });
});

describe("memory", () => {
  it("stays flat over 100,000 replacements of peer sets, while requests are under way", {
    timeout: 240_000,
  }, async () => {
    const own = await loadCore();
    const upstream = new TestUpstream(own, { kind: "least-conn" }, names(1, 2, 3));
    const random = randomNumbers(77);
    const held: ChosenPeer[] = [];
    const round = (i: number) => {
      upstream.change({ peers: names(1, 2 + (i % 7), 9 + (random() % 5)) });
      if (i % 5 === 0) held.push(upstream.proxy(random()).peer);
      if (held.length > 20) for (const peer of held.splice(0)) upstream.done(peer, i % 2 === 0);
      if (i % 11 === 0) upstream.state(9 + (i % 5), "down");
      if (i % 1000 === 0) upstream.table.removePeers(upstream.key);
    };
    for (let i = 0; i < 2_000; i++) round(i);
    upstream.change({ peers: names(1, 2, 3) });
    const used = own.memoryUsed;
    const size = own.exports.memory.buffer.byteLength;
    for (let i = 0; i < 100_000; i++) round(i);
    upstream.change({ peers: names(1, 2, 3) });
    expect([own.memoryUsed, own.exports.memory.buffer.byteLength]).toEqual([used, size]);
    for (const peer of held) upstream.done(peer);
    const [first, second, third] = upstream.table.peersOf(upstream.key);
    expect([first.conns, second.conns, third.conns].every((conns) => conns === 0)).toBe(true);
  });
});

describe("the exports for peers", () => {
  it("answer wild pointers, tokens, counts and states with a status, and change nothing", () => {
    const raw = new RawTable(core);
    const { exports, table, context } = raw;
    const key = core.place(new TextEncoder().encode("nobody"));
    const end = exports.memory.buffer.byteLength;
    const wild = [0, -1, -16, 7, end - 1, end, 0x7fffffff, table + 4];
    for (const at of wild) {
      expect(exports.peer_pick(at, key, 6, 0, 0, 0, 0, 0)).toBe(-10);
      expect(exports.peer_done(at, 0, 1)).toBe(-10);
      expect(exports.peer_status(at, 0)).toBe(-10);
      expect(exports.peer_state(at, 0, 1, 0)).toBe(-10);
    }
    for (const length of [-1, end, 0x7fffffff]) {
      expect(exports.peer_pick(context, key, length, 0, 0, 0, 0, 0)).toBe(-10);
      expect(exports.peer_pick(context, key, 6, 0, 0, key, length, 0)).toBe(-10);
    }
    expect(exports.peer_pick(context, key, 6, 1, 7, 0, 0, 0)).toBe(-11);
    expect(exports.peer_state(table, 0, 4, 0)).toBe(-10);
    const random = randomNumbers(41);
    for (let i = 0; i < 10_000; i++) {
      const token = i % 2 ? random() : i;
      expect(exports.peer_done(context, token, i & 1)).toBe(0);
      expect(exports.peer_state(table, token, i & 3, i)).toBe(0);
      expect(exports.peer_status(context, token)).toBe(-11);
    }
    core.exports.free(key);
    raw.free();
  });

  it("take any number of tried tokens that stand for nobody", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, names(1, 2));
    const random = randomNumbers(43);
    const tried = Array.from({ length: 1000 }, () => ({
      address: "",
      port: 1,
      position: 0,
      token: random() | 0xf0000000,
    }));
    expect(upstream.table.pickPeer(upstream.key, { tried }, 0, 0)).toBeTypeOf("object");
  });
});
