import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BalanceMethod } from "../../core-wasm/binding/source.js";
import { sharedCore as core } from "../support/core.js";
import { header } from "../support/rules.js";
import { randomNumbers } from "./core-instance.js";
import { chiSquareDeviation, nameOf, type PeerPart, TestUpstream, tally } from "./upstream.js";

function peersOf(weights: readonly number[]): PeerPart[] {
  return weights.map((weight, i) => ({ name: i + 1, weight }));
}

const weightLists = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 });

/** NGINX's ngx_http_upstream_get_peer, without failures: indices of the peers chosen, in order. */
function smoothRoundRobin(weights: readonly number[], usable: (i: number) => boolean, count: number): number[] {
  const current = weights.map(() => 0);
  return Array.from({ length: count }, () => {
    let best = -1;
    let total = 0;
    for (const [i, weight] of weights.entries()) {
      if (!usable(i)) continue;
      current[i] += weight;
      total += weight;
      if (best < 0 || current[i] > current[best]) best = i;
    }
    current[best] -= total;
    return best;
  });
}

describe("round robin", () => {
  it("is NGINX's smooth one for any weights", () => {
    fc.assert(
      fc.property(weightLists, (weights) => {
        const upstream = new TestUpstream(core, { kind: "round-robin" }, peersOf(weights));
        const count = weights.reduce((sum, weight) => sum + weight, 0) * 2;
        const chosen = Array.from({ length: count }, () => upstream.once() - 1);
        upstream.table.free();
        expect(chosen).toEqual(smoothRoundRobin(weights, () => true, count));
      }),
    );
  });

  it("spreads the turns of a peer that is down over all the others", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, peersOf([1, 1, 1, 1, 1]));
    upstream.state(3, "down");
    const counts = tally(Array.from({ length: 100 }, () => upstream.once()));
    expect([...counts].sort()).toEqual([1, 2, 4, 5].map((name) => [name, 25]));
  });

  it("begins at a place of chance in each context, for weighted peers too", () => {
    for (const weights of [new Array<number>(10).fill(1), [5, 4, 5, 4, 5, 4]]) {
      const random = randomNumbers(7);
      const firsts = Array.from({ length: 60 }, () => {
        const upstream = new TestUpstream(core, { kind: "round-robin" }, peersOf(weights));
        const first = upstream.once(random());
        upstream.table.free();
        return first;
      });
      expect(tally(firsts).size).toBe(weights.length);
    }
  });

  it("goes on where it was when peers change, and does not begin again at the first", () => {
    const upstream = new TestUpstream(core, { kind: "round-robin" }, peersOf([1, 1, 1, 1]));
    for (let i = 0; i < 6; i++) upstream.once();
    upstream.change({ peers: peersOf([1, 1, 1, 1, 1, 1]) });
    expect([upstream.once(), upstream.once(), upstream.once()]).toEqual([3, 4, 5]);
  });
});

describe("least connections", () => {
  it("keeps requests under way in proportion to the weights", () => {
    fc.assert(
      fc.property(weightLists, fc.integer({ min: 1, max: 300 }), (weights, requests) => {
        const upstream = new TestUpstream(core, { kind: "least-conn" }, peersOf(weights));
        const conns = weights.map(() => 0);
        for (let i = 0; i < requests; i++) {
          const chosen = nameOf(upstream.proxy().peer) - 1;
          // Nobody has fewer by weight.
          for (const [other, weight] of weights.entries()) {
            expect(conns[chosen] * weight).toBeLessThanOrEqual(conns[other] * weights[chosen]);
          }
          conns[chosen]++;
        }
        expect(upstream.table.peersOf(upstream.key).map((peer) => peer.conns)).toEqual(conns);
        upstream.table.free();
      }),
    );
  });

  it("goes smoothly round among peers that have the same number", () => {
    const weights = [3, 1, 2];
    const upstream = new TestUpstream(core, { kind: "least-conn" }, peersOf(weights));
    const chosen = Array.from({ length: 12 }, () => upstream.once() - 1);
    expect(chosen).toEqual(smoothRoundRobin(weights, () => true, 12));
  });
});

describe("by lot", () => {
  it.each<[BalanceMethod["kind"], number[]]>([
    ["random", [1, 1, 1, 1, 1, 1]],
    ["random", [1, 7, 2, 30, 10]],
  ])("%s follows the weights %j", (kind, weights) => {
    const upstream = new TestUpstream(core, { kind } as BalanceMethod, peersOf(weights));
    const random = randomNumbers(11);
    const draws = 40_000;
    const counts = tally(Array.from({ length: draws }, () => upstream.once(random())));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const expected = weights.map((weight) => (draws * weight) / total);
    expect(
      chiSquareDeviation(
        weights.map((_, i) => counts.get(i + 1) ?? 0),
        expected,
      ),
    ).toBeLessThan(4);
  });

  it("spreads what a peer that is down would get over all the others", () => {
    const upstream = new TestUpstream(core, { kind: "random" }, peersOf([1, 1, 1, 1, 1]));
    upstream.state(2, "down");
    const random = randomNumbers(3);
    const counts = tally(Array.from({ length: 20_000 }, () => upstream.once(random())));
    expect(counts.has(2)).toBe(false);
    const found = [1, 3, 4, 5].map((name) => counts.get(name) ?? 0);
    expect(chiSquareDeviation(found, [5000, 5000, 5000, 5000])).toBeLessThan(4);
  });

  it("of two takes the one with fewer requests under way by weight", () => {
    const upstream = new TestUpstream(core, { kind: "random-two" }, peersOf([1, 4]));
    const random = randomNumbers(5);
    for (let i = 0; i < 100; i++) upstream.proxy(random());
    expect(upstream.table.peersOf(upstream.key).map(({ conns }) => conns)).toEqual([20, 80]);
  });

  it("of two keeps the fullest of 100 peers far nearer to the mean than one draw does", () => {
    const peak = (kind: "random" | "random-two") => {
      const limits = { maxConns: 1000 };
      const upstream = new TestUpstream(core, { kind }, peersOf(new Array<number>(100).fill(1)), { limits });
      const random = randomNumbers(17);
      for (let i = 0; i < 5_000; i++) upstream.proxy(random());
      const conns = upstream.table.peersOf(upstream.key).map((peer) => peer.conns);
      upstream.table.free();
      return Math.max(...conns);
    };
    expect(peak("random")).toBeGreaterThan(62);
    expect(peak("random-two")).toBeLessThan(56);
  });

  it("does not depend on which entry of a split the same number chose", () => {
    const upstream = new TestUpstream(core, { kind: "random" }, peersOf([1, 1, 1, 1]));
    const random = randomNumbers(23);
    const half = Array.from({ length: 4_000 }, () => upstream.once(random() >>> 1));
    const found = [1, 2, 3, 4].map((name) => tally(half).get(name) ?? 0);
    expect(chiSquareDeviation(found, [1000, 1000, 1000, 1000])).toBeLessThan(4);
  });
});

/** NGINX's ngx_http_upstream_get_ip_hash_peer for peers in their order; -1 where it goes round robin. */
function ipHash(address: string, weights: readonly number[], usable: (i: number) => boolean): number {
  const octets = address.split(".").slice(0, 3).map(Number);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let hash = 89;
  for (let tries = 0; tries <= 20; tries++) {
    for (const octet of octets) hash = (hash * 113 + octet) % 6271;
    let left = hash % total;
    let index = 0;
    while (left >= weights[index]) left -= weights[index++];
    if (usable(index)) return index;
  }
  return -1;
}

describe("ip_hash", () => {
  const octet = fc.nat(255);
  const addresses = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join("."));

  it("is NGINX's, also where peers are down", () => {
    fc.assert(
      fc.property(
        weightLists,
        fc.array(addresses, { minLength: 5, maxLength: 5 }),
        fc.nat(),
        (weights, clients, down) => {
          const upstream = new TestUpstream(core, { kind: "ip-hash" }, peersOf(weights));
          const usable = (i: number) => weights.length === 1 || i !== down % weights.length;
          weights.forEach((_, i) => {
            if (!usable(i)) upstream.state(i + 1, "down");
          });
          for (const clientAddress of clients) {
            const expected = ipHash(clientAddress, weights, usable);
            const chosen = upstream.once(0, { clientAddress }) - 1;
            if (expected >= 0) expect(chosen).toBe(expected);
            else expect(usable(chosen)).toBe(true);
          }
          upstream.table.free();
        },
      ),
    );
  });

  it("keeps the clients of one /24 together, and those of one IPv6 address", () => {
    const upstream = new TestUpstream(core, { kind: "ip-hash" }, peersOf([1, 1, 1, 1, 1, 1, 1]));
    const of = (clientAddress: string) => upstream.once(0, { clientAddress });
    expect(new Set(["192.0.2.1", "192.0.2.99", "192.0.2.255"].map(of)).size).toBe(1);
    expect(new Set(Array.from({ length: 40 }, (_, i) => of(`2001:db8::${i}`))).size).toBe(7);
    expect(of("2001:db8::5")).toBe(of("2001:db8::5"));
  });
});

describe("a hashed method", () => {
  const methods = ["ring", "nginx-ring", "maglev"] as const;

  it.each(methods)("%s: goes round where the key is absent or empty, and says so by no hash", (kind) => {
    const upstream = new TestUpstream(core, { kind, key: [header("x-user")] }, peersOf([1, 1, 1]));
    expect(Array.from({ length: 6 }, () => upstream.once())).toEqual([1, 2, 3, 1, 2, 3]);
    expect(upstream.once(0, { headers: { "x-user": "" } })).toBe(1);
    expect(upstream.proxy().hash).toBeUndefined();
    expect(upstream.proxy(0, { headers: { "x-user": "a" } }).hash).toBe(3904355907);
  });

  it.each(methods)("%s: a retry meets each other peer once, and the only one left wherever it stands", (kind) => {
    const names = Array.from({ length: 9 }, (_, i) => i + 1);
    const upstream = new TestUpstream(core, { kind, key: [header("x-user")] }, peersOf(names.map(() => 1)));
    for (const user of ["a", "b", "c", "d"]) {
      const { peer, hash } = upstream.proxy(0, { headers: { "x-user": user } });
      const met = upstream.retries([peer], hash);
      expect(met.pop()).toBe("none");
      expect([nameOf(peer), ...met].map(Number).sort((a, b) => a - b)).toEqual(names);
    }
    for (const alone of names) {
      for (const name of names) upstream.state(name, name === alone ? "up" : "down");
      expect(upstream.once(0, { headers: { "x-user": `user ${alone}` } })).toBe(alone);
    }
  });

  it("follows a changed key and a changed method at once", () => {
    const upstream = new TestUpstream(core, { kind: "ring", key: [header("x-a")] }, peersOf([1, 1, 1, 1, 1]));
    const users = Array.from({ length: 50 }, (_, i) => ({ headers: { "x-a": "same", "x-b": `user ${i}` } }));
    const spread = () => new Set(users.map((parts) => upstream.once(0, parts))).size;
    expect(spread()).toBe(1);
    upstream.change({ method: { kind: "ring", key: [header("x-b")] } });
    expect(spread()).toBe(5);
    upstream.change({ method: { kind: "round-robin" } });
    expect(
      users
        .slice(0, 5)
        .map((parts) => upstream.once(0, parts))
        .sort(),
    ).toEqual([1, 2, 3, 4, 5]);
  });

  it.each(methods)("%s with bounded load has no peer above 1.25 times its share of the requests under way", (kind) => {
    fc.assert(
      fc.property(weightLists, fc.nat(9999), (weights, seed) => {
        const method: BalanceMethod = { kind, key: [header("x-user")], bounded: true };
        const upstream = new TestUpstream(core, method, peersOf(weights));
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        for (let i = 1; i <= 120; i++) {
          // A few keys get almost all requests.
          upstream.proxy(0, { headers: { "x-user": `hot ${seed % 3} ${i % 10 === 0 ? i : 0}` } });
          for (const [peer, { conns }] of upstream.table.peersOf(upstream.key).entries()) {
            expect(conns).toBeLessThanOrEqual(Math.ceil((1.25 * i * weights[peer]) / total));
          }
        }
        upstream.table.free();
      }),
      { numRuns: 25 },
    );
  });

  it("with bounded load keeps a key at its peer while that is within its share", () => {
    const key = [header("x-user")];
    const plain = new TestUpstream(core, { kind: "ring", key }, peersOf([1, 1, 1, 1, 1]));
    const bounded = new TestUpstream(core, { kind: "ring", key, bounded: true }, peersOf([1, 1, 1, 1, 1]));
    for (let i = 0; i < 100; i++) {
      const parts = { headers: { "x-user": createHash("md5").update(`${i}`).digest("hex") } };
      expect(bounded.once(0, parts)).toBe(plain.once(0, parts));
    }
  });
});
