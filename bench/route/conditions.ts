/** What conditions cost: a route with one on a header and one on a cookie, against the same route without. */
import type { RequestInput } from "../../core-wasm/binding/decision.js";
import type { HostRules, Match } from "../../core-wasm/binding/source.js";
import { FreshStrings } from "../fresh-strings.js";
import { measure } from "../measure.js";
import type { Row } from "../report.js";
import { CoreRoutes } from "./core-adapter.js";
import { UPSTREAMS } from "./host-rules.js";

const TABLE = "route";
const REQUESTS = 10_000;
const HOST = "tenant-00001.shop.example.com";
const PATH = "/api-1/orders";
const [PLAIN, CHOSEN] = UPSTREAMS;

/** One host, one route; with conditions, a match that holds for the requests below leads elsewhere. */
function rules(conditions: boolean): HostRules {
  const match: Match = {
    conditions: [
      { source: { kind: "header", name: "x-version" }, test: { kind: "equals", value: "canary" }, negated: false },
      { source: { kind: "cookie", name: "user" }, test: { kind: "equals", value: "tester" }, negated: false },
    ],
    outcome: { kind: "proxy", upstream: CHOSEN },
  };
  return {
    pattern: { kind: "exact", host: HOST },
    guards: [],
    routes: [
      {
        path: { kind: "segments", path: PATH },
        label: PATH,
        resource: "VirtualServer/bench/conditions",
        matches: conditions ? [match] : [],
        outcome: { kind: "proxy", upstream: PLAIN },
      },
    ],
  };
}

function open(conditions: boolean): CoreRoutes {
  const core = new CoreRoutes();
  core.setHost(rules(conditions));
  return core;
}

/** A request whose headers are the fields of an object, as Node's are. */
class PlainRequest implements RequestInput {
  readonly method = "GET";
  readonly scheme = "http";
  readonly protocol = "HTTP/1.1";
  readonly clientAddress = "192.0.2.1";
  readonly clientPort = 50_000;
  host = "";
  target = "";
  headers: Record<string, string> = {};

  header(name: string): string | undefined {
    return this.headers[name];
  }
}

export function conditionRows(): Row[] {
  const [without, withTwo] = [open(false), open(true)];
  const repeat = (text: string) => new FreshStrings(Array.from({ length: REQUESTS }, () => text));
  const [hosts, targets, versions, cookies] = [HOST, `${PATH}/1234`, "canary", "theme=dark; user=tester; lang=en"].map(
    repeat,
  );
  const requests = Array.from({ length: REQUESTS }, () => new PlainRequest());
  const prepare = () => {
    for (const fresh of [hosts, targets, versions, cookies]) fresh.renew();
    for (const [i, request] of requests.entries()) {
      request.host = hosts.strings[i];
      request.target = targets.strings[i];
      request.headers = { "x-version": versions.strings[i], cookie: cookies.strings[i] };
    }
  };
  const pass = (core: CoreRoutes) => () => {
    let sum = 0;
    for (let i = 0; i < REQUESTS; i++) sum += core.decide(requests[i]);
    return sum;
  };
  prepare();
  if (without.upstreamOf(requests[0]) !== PLAIN) throw new Error("the route without conditions was not taken");
  if (withTwo.upstreamOf(requests[0]) !== CHOSEN) throw new Error("the conditions did not hold");
  const names = ["a route without conditions", "a route with a header and a cookie condition"];
  const times = measure([
    { name: names[0], operations: REQUESTS, prepare, pass: pass(without) },
    { name: names[1], operations: REQUESTS, prepare, pass: pass(withTwo) },
  ]);
  without.close();
  withTwo.close();
  const [plain, conditional] = names.map((name) => times.get(name) ?? Number.NaN);
  return [
    { table: TABLE, name: names[0], ns: plain, ratio: 1 },
    { table: TABLE, name: names[1], ns: conditional, ratio: conditional / plain, goal: { of: "ratio", atMost: 2.5 } },
  ];
}
