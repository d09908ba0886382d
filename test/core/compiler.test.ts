import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import { CoreError } from "../../core-wasm/binding/errors.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { Action, HostRules, Match, Route, TemplatePart } from "../../core-wasm/binding/source.js";
import { sharedCore } from "../support/core.js";
import { Random } from "../support/random.js";
import {
  answer,
  argument,
  cookie,
  equals,
  exact,
  header,
  hostRules,
  prefix,
  regex,
  request,
  route,
  segments,
} from "../support/rules.js";
import { RandomRules } from "./random-rules.js";

const table = new RouteTable(sharedCore);
const REFUSALS = new Set(["CORE_SOURCE_INVALID", "CORE_LIMIT"]);

/** The image of rules, or the error that they are refused with. Throws everything else. */
function compiled(rules: HostRules, into = table): Uint8Array | CoreError {
  try {
    return into.compileHost(rules);
  } catch (error) {
    if (error instanceof CoreError && REFUSALS.has(error.code)) return error;
    throw error;
  }
}

const imageOf = (rules: HostRules): Uint8Array => {
  const image = compiled(rules);
  if (image instanceof CoreError) throw image;
  return image;
};
const refusalOf = (rules: HostRules): string => {
  const error = compiled(rules);
  return error instanceof CoreError ? `${error.code} ${error.message}` : "no error";
};
const withAction = (action: Action) => hostRules([route(prefix("/p"), action)]);
const withBody = (...body: TemplatePart[]) => withAction(answer(...body));
const withMatches = (matches: Match[]) => hostRules([route(prefix("/p"), answer("a"), { matches })]);
const routes = (count: number, make: (i: number) => Route) =>
  hostRules(Array.from({ length: count }, (_, i) => make(i)));

describe("the compiler of shards", () => {
  it("gives an image that the core takes, or an error that names the host, for all that the types allow", async () => {
    const makers = [new RandomRules(new Random(1)), new RandomRules(new Random(2), 40)];
    // Compiled anew by an instance that has seen nothing else, to find what one host leaves behind for the next.
    const fresh = new RouteTable(await loadCore());
    let refused = 0;
    for (let i = 0; i < 4000; i++) {
      const rules = makers[i & 1].next();
      // compileHost has the core validate the image: one that is not sound is another error than the two.
      const outcome = compiled(rules);
      if (outcome instanceof CoreError) {
        expect(outcome.message).toMatch(/^rules of host ".*?(?<!\\)"/);
        expect(i & 1).toBe(1);
        refused++;
        expect(() => table.setHost(rules)).toThrow(expect.objectContaining({ code: outcome.code }));
        continue;
      }
      if (i % 7 === 0 && Buffer.compare(outcome, compiled(rules, fresh) as Uint8Array)) expect.fail(`rules ${i}`);
    }
    expect(refused).toBeGreaterThan(500);
    expect(refused).toBeLessThan(2000);
    fresh.free();
  });

  it("gives the bytes that it always gave", () => {
    // Whoever changes the format on purpose raises SHARD_VERSION where old images can't be read, and puts the new hash here.
    const maker = new RandomRules(new Random(3));
    const hash = createHash("sha256");
    for (let i = 0; i < 500; i++) hash.update(imageOf(maker.next()));
    expect(hash.digest("hex")).toBe("3a5e4a038fab81d163ab3980ade1f54b42491de84141b62852f16615d6b719e4");
  });

  it("leaves the table as it was when it refuses rules", () => {
    const own = new RouteTable(sharedCore);
    own.setHost(withBody("first"));
    expect(() => own.setHost(withBody("second", header("")))).toThrow(CoreError);
    expect(own.decide(request("/p"), 0)).toMatchObject({ body: "first" });
    own.free();
  });

  it("takes texts of any length", () => {
    for (const length of [0, 1, 3, 4, 63, 64, 65, 100_000, 3_000_000]) {
      for (const character of ["a", "é", "😀"]) {
        const own = new RouteTable(sharedCore);
        const body = character.repeat(length / character.length);
        own.setHost(hostRules([], { unmatched: { resource: body, outcome: { kind: "proxy", upstream: `u${body}` } } }));
        expect(own.decide(request("/"), 0)).toMatchObject({ status: 503 });
        own.free();
      }
    }
  });

  it("takes thousands of routes, whatever their order", () => {
    const paths = Array.from({ length: 3000 }, (_, i) => `/${(i * 7919) % 3001}/${"x".repeat(i % 40)}`);
    const sorted = [...paths].sort();
    const [one, other] = [paths, sorted].map((list) =>
      imageOf(hostRules(list.map((path) => route(segments(path), answer(path))))),
    );
    expect(Buffer.compare(one, other)).toBe(0);
    const own = new RouteTable(sharedCore);
    own.loadHost(one);
    for (const path of paths.slice(0, 200)) expect(own.decide(request(`${path}/y`), 0)).toMatchObject({ body: path });
    own.free();
  });

  it("keeps hosts with different texts apart, however many it has seen", () => {
    const own = new RouteTable(sharedCore);
    for (let i = 0; i < 6000; i++) {
      own.setHost({ ...withAction({ kind: "proxy", upstream: `u${i}` }), pattern: { kind: "exact", host: `h${i}` } });
    }
    for (const i of [0, 1, 4095, 4096, 4097, 5999]) {
      own.setPeers({
        key: `u${i}`,
        display: `d${i}`,
        method: { kind: "round-robin" },
        peers: [{ address: "10.0.0.1", port: 80, weight: 1 }],
      });
      expect(own.decide(request("/p", { host: `h${i}` }), 0)).toMatchObject({ upstream: `d${i}` });
    }
    own.free();
  });
});

describe("rules are refused, with host and path,", () => {
  it.each<[string, HostRules, RegExp]>([
    [
      "for a broken regex",
      hostRules([route(regex("a("), answer())]),
      /"a\(": a regex does not compile at byte 1: this par/,
    ],
    [
      "for a broken regex of a condition",
      withMatches([
        {
          conditions: [
            { source: header("x"), test: { kind: "regex", pattern: "[", ignoreCase: false }, negated: false },
          ],
          outcome: answer(),
        },
      ]),
      /path "\/p": a regex does not compile at byte 0/,
    ],
    ["for a path without a slash", hostRules([route(exact("a"), answer())]), /does not begin with a slash/],
    ["for a pattern without a host", { ...hostRules([]), pattern: { kind: "exact", host: "" } }, /without a host/],
    ["for a proxy without an upstream", withAction({ kind: "proxy", upstream: "" }), /upstream without a key/],
    ["for a header without a name", withBody(header("")), /header without a name/],
    ["for a cookie without a name", withBody(cookie("")), /cookie without a name/],
    [
      "for an argument without a name",
      withMatches([{ conditions: [equals(argument(""), "")], outcome: answer() }]),
      /argument without/,
    ],
    ["for a group above 9", withBody({ kind: "group", index: 10 }), /no group 10/],
    ["for a status that is none", withAction({ ...answer(), status: 99 }), /99 is no status/],
    [
      "for a status that is no whole number",
      withAction({ kind: "redirect", status: 301.5, location: [] }),
      /301.5 is no/,
    ],
    ["for a split without entries", hostRules([route(prefix("/p"), { kind: "split", entries: [] })]), /without weight/],
    [
      "for a negative weight",
      hostRules([
        route(prefix("/p"), {
          kind: "split",
          entries: [
            { weight: 2, action: answer() },
            { weight: -1, action: answer() },
          ],
        }),
      ]),
      /-1 is no weight/,
    ],
  ])("%s", (_, rules, message) => {
    const refusal = refusalOf(rules);
    expect(refusal).toMatch(/^CORE_SOURCE_INVALID rules of host "/);
    expect(refusal).toMatch(message);
  });

  const split = (weights: number[]) =>
    hostRules([
      route(prefix("/p"), { kind: "split", entries: weights.map((weight) => ({ weight, action: answer() })) }),
    ]);
  const headers = (count: number) => withBody(...Array.from({ length: count }, (_, i) => header(`x-${i}`)));
  const conditions = (count: number) =>
    withMatches([{ conditions: Array.from({ length: count }, () => equals(header("x"), "")), outcome: answer() }]);
  const matches = (count: number) =>
    withMatches(Array.from({ length: count }, () => ({ conditions: [], outcome: answer() })));
  const guards = (count: number) =>
    hostRules([], {
      guards: Array.from({ length: count }, () => ({ resource: "g", match: { conditions: [], outcome: answer() } })),
    });
  const host = (length: number): HostRules => ({
    ...hostRules([]),
    pattern: { kind: "exact", host: "h".repeat(length) },
  });

  it.each<[string, (count: number) => HostRules, number]>([
    ["a host of bytes", host, 255],
    ["a path of bytes", (n) => hostRules([route(exact(`/${"p".repeat(n - 1)}`), answer())]), 4096],
    ["headers", headers, 124],
    ["conditions", conditions, 4095],
    ["matches", matches, 4095],
    ["entries of a split", (n) => split(Array.from({ length: n }, () => 1)), 4095],
    ["weight of a split", (n) => split([n]), 1_000_000],
    ["bytes of a name in a template", (n) => withBody(argument("n".repeat(n))), 65_535],
    ["routes", (n) => routes(n, () => route(exact("/"), undefined)), 65_535],
    ["guards", guards, 65_535],
  ])("beyond the limit of %s, and taken at it", (_, make, most) => {
    expect(imageOf(make(most)).length).toBeGreaterThan(96);
    expect(refusalOf(make(most + 1))).toMatch(/^CORE_LIMIT rules of host "/);
  });
});
