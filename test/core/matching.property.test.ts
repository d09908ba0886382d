import { expect, it } from "vitest";
import type { Decision } from "../../core-wasm/binding/decision.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { makeRoutingTable } from "../support/core.js";
import { Random } from "../support/random.js";
import { request } from "../support/rules.js";
import { absoluteForm, randomHost, randomTable, randomTarget } from "./matching-cases.js";
import { argumentOf, candidates, rulesFor } from "./reference/matching.js";
import { type ReadRequest, readRequest } from "./reference/request.js";

const TABLES = 600;
const REQUESTS = 60;

/** The id of the rule that decides, by the reference; undefined for 404. */
function decidingRule(read: ReadRequest, table: readonly HostRules[]): string | undefined {
  const rules = rulesFor(read.host, table);
  const goes = argumentOf(read.query ?? "", "go").toLowerCase() === "yes";
  for (const { label, matches, outcome } of candidates(rules?.routes ?? [], read.path)) {
    if (goes && matches.length > 0) return `${label}!`;
    if (outcome) return label;
  }
  const usual = table.find(({ pattern }) => pattern.kind === "default");
  return (rules?.unmatched ?? usual?.unmatched)?.resource;
}

function expectedAnswer(host: string, target: string, table: readonly HostRules[]): string {
  const read = readRequest(host, target);
  if (!read) return "400";
  const rule = decidingRule(read, table);
  return rule === undefined ? "404" : [rule, read.host, read.path, read.query ?? "", read.target].join("\n");
}

function answerOf(decision: Decision): string {
  if (decision.action !== "return") return decision.action;
  return decision.body ?? String(decision.status);
}

it(`decides ${TABLES * REQUESTS} random requests as the plain reading of the rules does`, () => {
  const random = new Random(3);
  const wrong: object[] = [];
  const kinds = new Map<string, number>();
  for (let i = 0; i < TABLES; i++) {
    const table = randomTable(random);
    const routing = makeRoutingTable();
    for (const rules of random.shuffled(table)) routing.setHost(rules);
    for (let k = 0; k < REQUESTS; k++) {
      let host = randomHost(random, table);
      let target = randomTarget(random, table);
      if (random.onceIn(10)) target = absoluteForm(random, host, target);
      if (random.onceIn(30)) host = "";
      const expected = expectedAnswer(host, target, table);
      const actual = answerOf(routing.decide(request(target, { host }), 0));
      if (actual !== expected) wrong.push({ host, target, expected, actual, table });
      const kind = /^40[04]$/.test(expected) ? expected : expected.startsWith("u") ? "unmatched" : "route";
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    routing.free();
  }
  expect(wrong.slice(0, 2)).toEqual([]);
  // The cases are worth something only if they spread over all outcomes.
  for (const kind of ["route", "unmatched", "400", "404"]) {
    expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan((TABLES * REQUESTS) / 40);
  }
});
