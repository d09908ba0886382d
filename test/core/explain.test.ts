import { describe, expect, it } from "vitest";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { makeRoutingTable } from "../support/core.js";
import { Random } from "../support/random.js";
import {
  answer,
  equals,
  exact,
  header,
  hostRules,
  prefix,
  type RequestParts,
  regex,
  request,
  route,
} from "../support/rules.js";
import { absoluteForm, randomHost, randomTable, randomTarget } from "./matching-cases.js";

/** The steps of an explanation in short: what was tried, and what became of it. */
function explained(rules: HostRules[], target: string, parts: RequestParts = {}): string[] {
  const table = makeRoutingTable();
  for (const one of rules) table.setHost(one);
  const { steps } = table.explain(request(target, parts), 0);
  table.free();
  return steps.map(({ step, rule, result, resource }) => [step, rule, result, resource].filter(Boolean).join(" "));
}

const DEFAULT: HostRules = {
  pattern: { kind: "default" },
  guards: [],
  routes: [],
  unmatched: { resource: "Ingress/default/fallback", outcome: answer("fallback") },
};

describe("an explanation", () => {
  it("agrees with the decision on random tables and requests", () => {
    const random = new Random(41);
    const different: object[] = [];
    for (let i = 0; i < 100; i++) {
      const rules = randomTable(random);
      const table = makeRoutingTable();
      for (const one of rules) table.setHost(one);
      for (let k = 0; k < 50; k++) {
        const host = randomHost(random, rules);
        let target = randomTarget(random, rules);
        if (random.onceIn(10)) target = absoluteForm(random, host, target);
        const input = request(target, { host: random.onceIn(20) ? "" : host });
        const decision = table.decide(input, 0);
        const { decision: again, steps } = table.explain(input, 0);
        if (JSON.stringify(decision) !== JSON.stringify(again) || steps.length === 0) different.push({ host, target });
        // The route that decides is the last one of which it is said that it covers the path.
        const covering = steps.filter(({ step, reason }) => step === "route" && reason === "covers the path");
        const deciding = decision.origin?.path;
        if (deciding && covering.at(-1)?.rule !== deciding) different.push({ host, target, steps });
      }
      table.free();
    }
    expect(different.slice(0, 3)).toEqual([]);
  });

  it("lists every route in the order of trial up to the one that decides", () => {
    const routes = [
      route(prefix("/"), answer("root")),
      route(prefix("/a"), answer("a")),
      route(regex("x$"), answer("x")),
      route(regex("b$"), answer("b")),
      route(exact("/other"), answer("other")),
    ];
    expect(explained([hostRules(routes)], "/a/b")).toEqual([
      "host host taken",
      "route /other passed VirtualServer/default//other",
      "route x$ passed VirtualServer/default/x$",
      "route b$ taken VirtualServer/default/b$",
    ]);
  });

  it("says that regexes are left out because of the longest prefix", () => {
    const rules = hostRules([route(prefix("/a", true), answer("a")), route(regex("b$"), answer("b"))]);
    const table = makeRoutingTable();
    table.setHost(rules);
    const { steps } = table.explain(request("/a/b"), 0);
    expect(steps[1]).toMatchObject({ rule: "b$", result: "passed", reason: expect.stringContaining("^~") });
    expect(steps[2]).toMatchObject({ rule: "/a", result: "taken" });
    table.free();
  });

  it("shows each condition with the value that the request has", () => {
    const conditions = [equals(header("x-a"), "1"), equals({ kind: "argument", name: "b" }, "2", true)];
    const rules = hostRules([route(prefix("/"), answer("no"), { matches: [{ conditions, outcome: answer("yes") }] })]);
    const table = makeRoutingTable();
    table.setHost(rules);
    const { steps } = table.explain(request("/?b=2", { headers: { "x-a": "1" } }), 0);
    expect(steps.filter(({ step }) => step === "condition")).toEqual([
      { step: "condition", rule: 'header x-a is "1"', result: "taken", reason: 'the request has "1"' },
      { step: "condition", rule: 'argument b is not "2"', result: "passed", reason: 'the request has "2"' },
    ]);
    table.free();
  });

  it("shows the request line that a condition was compared with, not what was written after it", () => {
    const conditions = [equals({ kind: "variable", name: "request" }, "GET /a HTTP/1.1")];
    const outcome = answer("a body that is longer than the request line");
    const table = makeRoutingTable();
    table.setHost(hostRules([route(prefix("/"), answer("no"), { matches: [{ conditions, outcome }] })]));
    const { steps } = table.explain(request("/a"), 0);
    expect(steps.find(({ step }) => step === "condition")?.reason).toBe('the request has "GET /a HTTP/1.1"');
    table.free();
  });

  it("names the routes of the host that do not cover the path when the answer is 404", () => {
    expect(explained([hostRules([route(exact("/a"), answer("a"))])], "/b")).toEqual([
      "host host taken",
      "route /a passed VirtualServer/default//a",
      "unmatched default of the host's objects passed",
      "unmatched nothing taken",
    ]);
  });

  it("names the routes of the host when the default backend decides", () => {
    const match = { conditions: [equals(header("x-a"), "1")], outcome: answer("a") };
    const rules = [hostRules([route(exact("/a"), undefined, { matches: [match] })]), DEFAULT];
    expect(explained(rules, "/a")).toEqual([
      "host host taken",
      "route /a taken VirtualServer/default//a",
      'condition header x-a is "1" passed',
      "route match 0 passed",
      "route /a passed VirtualServer/default//a",
      "unmatched default of the host's objects passed",
      "unmatched default backend taken Ingress/default/fallback",
    ]);
  });

  it("tells each kind of host pattern that was tried once", () => {
    const wildcard: HostRules = { ...hostRules([]), pattern: { kind: "wildcard", suffix: "org", labels: "any" } };
    expect(explained([wildcard], "/", { host: "example.com" }).slice(0, 3)).toEqual([
      "host host passed",
      "host wildcard host passed",
      "host rules without host passed",
    ]);
  });

  it("names the guard that decides", () => {
    const guard = (name: string) => ({
      resource: `VirtualServer/default/${name}`,
      match: { conditions: [equals(header(name), "1")], outcome: answer(name) },
    });
    const table = makeRoutingTable();
    table.setHost(hostRules([], { guards: [guard("x-a"), guard("x-b")] }));
    const { decision, steps } = table.explain(request("/", { headers: { "x-b": "1" } }), 0);
    expect(decision.origin).toMatchObject({ resource: "VirtualServer/default/x-b" });
    expect(steps.at(-1)).toMatchObject({ step: "guard", resource: "VirtualServer/default/x-b", result: "taken" });
    table.free();
  });
});
