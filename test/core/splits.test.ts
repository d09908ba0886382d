import { describe, expect, it } from "vitest";
import { CoreError } from "../../core-wasm/binding/errors.js";
import type { Split } from "../../core-wasm/binding/source.js";
import { makeRoutingTable } from "../support/core.js";
import { Random } from "../support/random.js";
import { answer, exact, hostRules, peers, prefix, request, route } from "../support/rules.js";

const WORDS = 2 ** 32;

function splitOf(...weights: number[]): Split {
  return { kind: "split", entries: weights.map((weight, index) => ({ weight, action: answer(`${index}`) })) };
}

/** Which entry each random number falls on. */
function chosen(weights: number[], numbers: number[]): number[] {
  const table = makeRoutingTable();
  table.setHost(hostRules([route(prefix("/"), splitOf(...weights))]));
  const entries = numbers.map((number) => {
    const decision = table.decide(request("/"), number);
    return decision.action === "return" ? Number(decision.body) : Number.NaN;
  });
  table.free();
  return entries;
}

/** The first random number that belongs to the entry after `before` of `total`. */
function boundary(before: number, total: number): number {
  return Number((BigInt(before) * BigInt(WORDS) + BigInt(total) - 1n) / BigInt(total));
}

describe("a split", () => {
  it.each([
    [[80, 20]],
    [[1, 99]],
    [[50, 50]],
    [[1, 1, 1]],
    [[33, 33, 34]],
    [[1, 999_999]],
    [[7, 0, 13, 1]],
    [[500_000, 250_000, 250_000]],
  ])("gives each entry of %j exactly its part of all random numbers", (weights) => {
    const total = weights.reduce((sum, weight) => sum + weight);
    let before = 0;
    for (const [index, weight] of weights.entries()) {
      if (weight > 0) {
        const [first, last] = [boundary(before, total), boundary(before + weight, total) - 1];
        expect(chosen(weights, [first, last])).toEqual([index, index]);
      }
      before += weight;
    }
  });

  it.each([
    [[0, 100], 1],
    [[100, 0], 0],
    [[0, 0, 1, 0], 2],
  ])("never chooses an entry of weight 0 in %j", (weights, only) => {
    const random = new Random(5);
    const numbers = [0, 1, WORDS / 2, WORDS - 1, ...Array.from({ length: 1000 }, () => random.word())];
    expect(new Set(chosen(weights, numbers))).toEqual(new Set([only]));
  });

  it("keeps its proportions over random numbers", () => {
    const random = new Random(6);
    const draws = 40_000;
    const counts = [0, 0, 0];
    for (const entry of chosen(
      [60, 30, 10],
      Array.from({ length: draws }, () => random.word()),
    ))
      counts[entry]++;
    // Chi-square with two degrees of freedom: 13.8 is passed by chance once in a thousand.
    const square = [0.6, 0.3, 0.1].reduce((sum, p, i) => sum + (counts[i] - p * draws) ** 2 / (p * draws), 0);
    expect(square).toBeLessThan(13.8);
  });

  it("can stand in a match, in a guard and for what is unmatched", () => {
    const match = { conditions: [], outcome: splitOf(1, 1) };
    const table = makeRoutingTable();
    table.setHost(
      hostRules([route(exact("/m"), undefined, { matches: [match] })], {
        unmatched: { resource: "u", outcome: splitOf(1, 1) },
      }),
    );
    const answers = (target: string) => [0, WORDS - 1].map((number) => table.decide(request(target), number));
    expect(answers("/m")).toMatchObject([{ body: "0" }, { body: "1" }]);
    expect(answers("/u")).toMatchObject([{ body: "0" }, { body: "1" }]);
    table.setHost(hostRules([], { guards: [{ resource: "g", match }] }));
    expect(answers("/")).toMatchObject([{ body: "0" }, { body: "1" }]);
    table.free();
  });

  it("chooses among upstreams with rewrites of their own", () => {
    const table = makeRoutingTable();
    for (const key of ["a", "b"]) table.setPeers(peers(key, [80]));
    const entry = (upstream: string) => {
      return {
        weight: 1,
        action: { kind: "proxy", upstream, rewrite: { kind: "prefix", text: `/${upstream}/` } },
      } as const;
    };
    table.setHost(hostRules([route(prefix("/"), { kind: "split", entries: [entry("a"), entry("b")] })]));
    expect(table.decide(request("/x?q"), 0)).toMatchObject({ upstreamKey: "a", target: "/a/x?q" });
    expect(table.decide(request("/x?q"), WORDS - 1)).toMatchObject({ upstreamKey: "b", target: "/b/x?q" });
    table.free();
  });

  it("says in an explanation which entry it was", () => {
    const table = makeRoutingTable();
    table.setHost(hostRules([route(prefix("/"), splitOf(1, 1))]));
    const { steps } = table.explain(request("/"), WORDS - 1);
    expect(steps.at(-1)).toMatchObject({ step: "split", rule: "entry 1", result: "taken" });
    table.free();
  });

  it.each([[[0, 0]], [[1_000_000, 1]], [[0xffffffff, 2]]])("with the weights %j is refused", (weights) => {
    const table = makeRoutingTable();
    expect(() => table.setHost(hostRules([route(prefix("/"), splitOf(...weights))]))).toThrow(CoreError);
    table.free();
  });
});
