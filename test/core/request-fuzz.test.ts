import { beforeAll, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import type { Core } from "../../core-wasm/binding/core.js";
import type { Decision, RequestInput } from "../../core-wasm/binding/decision.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import { Random } from "../support/random.js";
import { FEATURE_PEERS, FEATURE_RULES, FEATURE_TARGETS } from "./feature-tables.js";

const REQUESTS = 200_000;
const HOSTS = [
  "example.com",
  "a.wild.example.com",
  "a.b.wild.example.com",
  "deep.er.example.com",
  "other.test",
  "",
  "[::1]",
];
const HEADER_VALUES = [
  "yes",
  "abc",
  "session=abc",
  "a=b; session=abc; q=1",
  "AABBC",
  "",
  "\r\nX: y\r\n\r\n",
  "\0\x01\x7f\t \xff",
  "é",
];
const PIECES = [
  "/",
  "//",
  "/../",
  "/./",
  "..",
  "%2e",
  "%2F",
  "%00",
  "%",
  "%zz",
  "?",
  "#",
  "&q=",
  "=",
  ";",
  "\r\n",
  "\0",
  " ",
  "\x7f",
  "\xff",
  "@",
  ":",
  "[",
  "]",
  "http://",
];
/** Statuses of the rules themselves, and those that the core answers with on its own. */
const RETURNED = new Set([200, 400, 404, 414, 503]);

let core: Core;
/** The table of all features, and the same without a default backend. */
let tables: RouteTable[];

beforeAll(async () => {
  core = await loadCore();
  tables = [FEATURE_RULES, FEATURE_RULES.filter(({ pattern }) => pattern.kind !== "default")].map((hosts) => {
    const table = new RouteTable(core);
    for (const rules of hosts) table.setHost(rules);
    for (const set of FEATURE_PEERS) table.setPeers(set);
    return table;
  });
});

function randomBytes(random: Random, longest: number): string {
  return String.fromCharCode(...Array.from({ length: random.below(longest) }, () => random.below(256)));
}

/** A text as it is or, half of the time, with bytes changed, put in, taken out and repeated. */
function mutated(random: Random, text: string): string {
  let result = text;
  for (let changes = random.onceIn(2) ? random.below(4) : 0; changes > 0; changes--) {
    const at = random.below(result.length + 1);
    const end = at + random.below(4);
    switch (random.below(5)) {
      case 0:
        result = result.slice(0, at) + String.fromCharCode(random.below(256)) + result.slice(at + 1);
        break;
      case 1:
        result = result.slice(0, at) + random.pick(PIECES) + result.slice(at);
        break;
      case 2:
        result = result.slice(0, at) + result.slice(end);
        break;
      case 3:
        result = result.slice(0, at) + result.slice(at, end).repeat(1 + random.below(20)) + result.slice(end);
        break;
      default:
        result = result.slice(0, at) + randomBytes(random, 12) + result.slice(at);
    }
  }
  return result;
}

function randomRequest(random: Random): RequestInput {
  const values = new Map<string, string | undefined>();
  const host = random.onceIn(20)
    ? randomBytes(random, 300)
    : random.onceIn(3)
      ? mutated(random, random.pick(HOSTS))
      : random.pick(HOSTS);
  let target = random.onceIn(20) ? randomBytes(random, 200) : mutated(random, random.pick(FEATURE_TARGETS));
  if (random.onceIn(1000)) target += random.pick(["a", "/x", "%41", "xy"]).repeat(random.below(70_000));
  if (random.onceIn(10)) target = `http://${random.onceIn(2) ? mutated(random, host) : host}${target}`;
  return {
    host,
    target,
    method: random.onceIn(10) ? randomBytes(random, 20) : random.pick(["GET", "POST", "never"]),
    scheme: random.pick(["http", "https"]),
    protocol: random.onceIn(10) ? randomBytes(random, 12) : random.pick(["HTTP/1.1", "HTTP/2.0", ""]),
    clientAddress: random.pick(["192.0.2.1", "2001:db8::1", ""]),
    clientPort: random.below(65_536),
    header(name) {
      if (!values.has(name))
        values.set(name, random.onceIn(4) ? undefined : mutated(random, random.pick(HEADER_VALUES)));
      return values.get(name);
    },
  };
}

/** What is wrong with a decision, if anything. */
function problemOf(decision: Decision): string | undefined {
  for (const change of decision.headers) {
    if ("value" in change && /[\0-\x08\x0a-\x1f\x7f]/.test(change.value))
      return "a control character in a header value";
  }
  switch (decision.action) {
    case "proxy":
      if (!decision.target.startsWith("/")) return "the target does not begin with a slash";
      if (/[\0-\x20\x7f]/.test(decision.target)) return "a control character or blank in the target";
      if (!decision.peer.address || !decision.upstreamKey) return "no peer";
      return decision.origin ? undefined : "no origin";
    case "redirect":
      if (decision.status !== 308) return `redirect with ${decision.status}`;
      return /^[!-~]+$/.test(decision.location) ? undefined : "a byte in the location that no location may have";
    case "return":
      if (!RETURNED.has(decision.status)) return `status ${decision.status}`;
      if ((decision.status === 200) !== (decision.body !== undefined))
        return "a body on an error, or none on an answer";
      return (decision.status === 503) === (decision.upstream !== undefined) ? undefined : "an upstream without 503";
  }
}

it(`decides ${REQUESTS} hostile requests in one of the forms that there are`, { timeout: 240_000 }, () => {
  const random = new Random(2);
  const used = core.memoryUsed;
  const outcomes = new Map<string, number>();
  for (let i = 0; i < REQUESTS; i++) {
    const input = randomRequest(random);
    const number = random.word();
    const table = random.pick(tables);
    const decision = table.decide(input, number);
    const problem = problemOf(decision);
    if (problem) expect.fail(`request ${i}: ${problem}: ${JSON.stringify({ ...input, decision })}`);
    const outcome = decision.action === "return" ? `return ${decision.status}` : decision.action;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (i % 100 === 0) {
      const again = table.explain(input, number).decision;
      // Round robin goes on; all else is a function of the request.
      if (again.action === "proxy" && decision.action === "proxy") again.peer = decision.peer;
      if (JSON.stringify(again) !== JSON.stringify(decision)) expect.fail(`request ${i} is explained otherwise`);
    }
  }
  expect(outcomes.get("return 400")).toBeLessThan(REQUESTS / 2);
  // Whatever the requests were, nothing was kept of them but room for long header values.
  expect(core.memoryUsed - used).toBeLessThan(1 << 20);
  for (const outcome of ["proxy", "redirect", "return 200", "return 400", "return 404", "return 414", "return 503"]) {
    expect(outcomes.get(outcome) ?? 0, outcome).toBeGreaterThan(20);
  }
});
