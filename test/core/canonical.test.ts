import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { HostRules, Route } from "../../core-wasm/binding/source.js";
import { makeRoutingTable, sharedCore } from "../support/core.js";
import { Random } from "../support/random.js";
import { compileImages } from "../support/raw-core.js";
import { answer, exact, hostRules, prefix, regex, route, segments } from "../support/rules.js";
import { FEATURE_PEERS, FEATURE_RULES } from "./feature-tables.js";
import { randomTable } from "./matching-cases.js";

/** Without routes that say the same path in the same way: of those the first counts, so that their order has a meaning. */
function withoutDuplicates(routes: readonly Route[]): Route[] {
  const seen = new Set<string>();
  return routes.filter(({ path }) => {
    if (path.kind === "regex") return true;
    const stops = path.kind === "prefix" && path.stopsRegex;
    const key = `${path.kind} ${stops} ${path.kind === "segments" ? path.path.replace(/\/$/, "") : path.path}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** The routes in another order, in which only regexes keep theirs. */
function reordered(random: Random, routes: readonly Route[]): Route[] {
  const regexes = routes.filter(({ path }) => path.kind === "regex").reverse();
  return random.shuffled(routes).map((one) => (one.path.kind === "regex" ? (regexes.pop() as Route) : one));
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const compile = (rules: HostRules) => compileImages(sharedCore, [rules]).shards[0];

describe("the image of a shard", () => {
  it("is the same whatever the order of its routes", () => {
    const random = new Random(21);
    const table = makeRoutingTable();
    const tables = [FEATURE_RULES, ...Array.from({ length: 100 }, () => randomTable(random))];
    for (const rules of tables.flat()) {
      const routes = withoutDuplicates(rules.routes);
      const hash = sha256(table.compileHost({ ...rules, routes }));
      for (let i = 0; i < 4; i++) {
        expect(sha256(table.compileHost({ ...rules, routes: reordered(random, routes) }))).toBe(hash);
      }
    }
    table.free();
  });

  it("is the same in a fresh table and in one that has seen many", () => {
    const table = makeRoutingTable();
    for (const rules of FEATURE_RULES) table.setHost(rules);
    for (const rules of FEATURE_RULES) expect(sha256(table.compileHost(rules))).toBe(sha256(compile(rules)));
    table.free();
  });

  it("changes with the order of regexes, of matches and of guards", () => {
    const [a, b] = [answer("a"), answer("b")];
    const pairs: [HostRules, HostRules][] = [
      [
        hostRules([route(regex("a"), a), route(regex("b"), b)]),
        hostRules([route(regex("b"), b), route(regex("a"), a)]),
      ],
    ];
    const matches = [a, b].map((outcome) => ({ conditions: [], outcome }));
    const ofMatches = (list: typeof matches) => hostRules([route(prefix("/"), a, { matches: list })]);
    pairs.push([ofMatches(matches), ofMatches([...matches].reverse())]);
    const guards = matches.map((match) => ({ resource: "g", match }));
    pairs.push([hostRules([], { guards }), hostRules([], { guards: [...guards].reverse() })]);
    for (const [one, other] of pairs) expect(sha256(compile(one))).not.toBe(sha256(compile(other)));
  });

  it("changes with everything that is in the rules", () => {
    const base = FEATURE_RULES[0];
    const variants: HostRules[] = [
      base,
      { ...base, pattern: { kind: "exact", host: "example.org" } },
      { ...base, pattern: { kind: "any" } },
      { ...base, guards: [] },
      { ...base, unmatched: undefined },
      { ...base, routes: base.routes.slice(1) },
      { ...base, routes: [{ ...base.routes[0], label: "other" }, ...base.routes.slice(1)] },
      { ...base, routes: [{ ...base.routes[0], resource: "other" }, ...base.routes.slice(1)] },
      { ...base, routes: [{ ...base.routes[0], matches: [] }, ...base.routes.slice(1)] },
      { ...base, routes: [{ ...base.routes[0], outcome: answer("other") }, ...base.routes.slice(1)] },
      { ...base, routes: [{ ...base.routes[0], path: segments("/") }, ...base.routes.slice(1)] },
    ];
    // The first route has no matches: that variant is the base itself.
    expect(new Set(variants.map((rules) => sha256(compile(rules)))).size).toBe(variants.length - 1);
  });

  // An image outlives the core that made it: it is kept on disk and sent to workers. Whoever changes the format on
  // purpose raises SHARD_VERSION where old images can't be read any more, and puts the new hashes here.
  it.each<[string, HostRules, string]>([
    [
      "literal routes",
      hostRules([route(exact("/a"), answer("a")), route(segments("/a/b"), answer("b"))]),
      "1125156ad673dd1977d314c41c4523dc301bd7ce6cbac9bc5ba75ba7ea4fd53f",
    ],
    [
      "a regex",
      hostRules([route(regex("^/(a|b)+c?$", { ignoreCase: true }), answer("r"))]),
      "7b9c456109b4bdb306e7cd6f6e1f1d13995471138a980f84815bcf26e9a83a7d",
    ],
    ["every feature", FEATURE_RULES[0], "3b590a8f1536717af40d0464dc9fb8a575b4123fad8fba92225e7c9d19534498"],
    ["no routes", FEATURE_RULES[4], "6cc1dca328eed72e7414e94cbcd888362ea40db93cdce443494d32375d063447"],
  ])("of %s is what it was", (_, rules, hash) => {
    expect(sha256(compile(rules))).toBe(hash);
  });
});

describe("the image of a peer set", () => {
  it("is the same whatever the order of its peers", () => {
    const random = new Random(22);
    const table = makeRoutingTable();
    for (const set of FEATURE_PEERS) {
      const hash = sha256(table.compilePeers(set));
      for (let i = 0; i < 6; i++) {
        expect(sha256(table.compilePeers({ ...set, peers: random.shuffled(set.peers) }))).toBe(hash);
      }
    }
    table.free();
  });
});
