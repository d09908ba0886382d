import { describe, expect, it } from "vitest";
import type { Backend } from "../../controller/proxies/opennjet/api/index.js";
import { checkBackends } from "../../controller/proxies/opennjet/bundled-schema.js";
import { backendOf } from "../../controller/proxies/opennjet/locations/backends.js";
import { nothing } from "../../controller/proxies/opennjet/locations/carried-state.js";
import { PlannedState } from "../../controller/proxies/opennjet/locations/planned-state.js";
import type { BalancerName } from "../../controller/proxies/opennjet/parts.js";
import type { BalanceMethod } from "../../core-wasm/binding/source.js";
import { type Balancing, fullPlan, keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";

const PORTS = [8080, 8081];
const COOKIE = { name: "srv", path: "/", secure: true, httpOnly: true };
const ring = (name: string): BalanceMethod => ({ kind: "ring", key: [{ kind: "argument", name }] });

type Transport = Parameters<typeof upstreamStep>[2];

function carriedWith(balancer: BalancerName, balancing: Balancing = {}, transport: Transport = {}, ports = PORTS) {
  const step = upstreamStep("web", ports, transport, balancing);
  const plan = fullPlan(step, proxyHost("shop.example.com", "web"));
  const { carried, failures } = new PlannedState(nothing(balancer, "questions"), plan, 300).outcome();
  const [name = ""] = carried.backends.keys();
  return {
    failures,
    body: carried.locations[0].body,
    backend: () => backendOf(name, step.upstream, () => undefined, balancer),
  };
}

/** Codes of what is said of the upstream. */
const said = (...parameters: Parameters<typeof carriedWith>) =>
  carriedWith(...parameters).failures.map(({ code }) => code);

describe("for the balancer that OpenNJet brings", () => {
  it("a hash key is set by the location, so that another key is another location and the same backend", () => {
    const [a, b] = [carriedWith("bundled", { method: ring("a") }), carriedWith("bundled", { method: ring("b") })];
    expect(a.body).toContain('set $njet_kic_hash_key "${arg_a}";');
    expect(b.body).toContain('set $njet_kic_hash_key "${arg_b}";');
    expect(a.backend()).toEqual(b.backend());
    expect(a.backend().upstreamHashByConfig).toEqual({ "upstream-hash-by": "${njet_kic_peer_key}${upstream_addr}" });
  });

  it("the key is set before the path is rewritten", () => {
    const { body } = carriedWith("bundled", { method: { kind: "ring", key: [{ kind: "variable", name: "uri" }] } });
    expect(body.indexOf("njet_kic_hash_key")).toBeLessThan(body.indexOf("proxy_pass"));
    expect(carriedWith("bundled").body).not.toContain("njet_kic_hash_key");
  });

  it("no location asks for tries without end", () => {
    expect(carriedWith("bundled", {}, { nextUpstreamTries: 0 }).body).not.toContain("next_upstream_tries");
    expect(carriedWith("bundled", {}, { nextUpstreamTries: 2 }).body).toContain("proxy_next_upstream_tries 2;");
  });

  it("for ours, locations and backends are what they were", () => {
    const { body, backend } = carriedWith("own", { method: ring("a") });
    expect(body).not.toContain("njet_kic_hash_key");
    expect(backend().upstreamHashByConfig).toEqual({ "upstream-hash-by": "${arg_a}" });
  });

  it("a cookie is given wherever the upstream serves, and to another peer after a failure", () => {
    const step = upstreamStep("web", PORTS, {}, { cookie: COOKIE });
    const { sessionAffinityConfig } = backendOf("a", step.upstream, () => undefined, "bundled");
    expect(sessionAffinityConfig).toEqual({
      name: "cookie",
      mode: "persistent",
      cookieSessionAffinity: { name: "srv", path: "/", secure: true, change_on_failure: true, locations: { _: ["/"] } },
    });
  });

  it("nothing is posted of canaries, external names or certificates", () => {
    const fields = Object.keys(carriedWith("bundled", { method: ring("a") }).backend());
    expect(fields.sort()).toEqual(["endpoints", "load-balance", "name", "upstreamHashByConfig"]);
  });
});

describe("what that balancer can't do", () => {
  /** Everything about an upstream that a carrier may refuse, or do in part. */
  const ASKED: Record<string, Parameters<typeof carriedWith> extends [unknown, ...infer Rest] ? Rest : never> = {
    "round robin": [],
    "one peer and a hash key": [{ method: ring("a") }, {}, [8080]],
    "a hash key": [{ method: ring("a") }],
    "a hash key without retries": [{ method: ring("a") }, { nextUpstream: [] }],
    "round robin with retries that are asked for": [{}, { nextUpstreamTries: 3 }],
    "round robin without retries": [{}, { nextUpstreamTries: 1 }],
    least_conn: [{ method: { kind: "least-conn" } }],
    "ewma, which is the better of two by lot": [{ method: { kind: "random-two" } }],
    "bounded load": [{ method: { ...ring("a"), bounded: true } as BalanceMethod }],
    "max-conns": [{ limits: { maxConns: 1 } }],
    "slow-start": [{ limits: { slowStart: 1000 } }],
    "max-fails": [{ limits: { maxFails: 0 } }],
    "a port that it never connects to": [{}, {}, [10_246]],
  };
  /** With ours it is refused as well, so it is no question of the balancer. */
  const REFUSED_BY_BOTH = [
    ...[
      "least_conn",
      "ewma, which is the better of two by lot",
      "bounded load",
      "max-conns",
      "slow-start",
      "max-fails",
    ],
  ];
  const REFUSED = ["a port that it never connects to"];
  const LIMITED = ["a hash key", "round robin with retries that are asked for"];

  it("is exactly this, each on its object", () => {
    const list = Object.entries(ASKED).map(([what, asked]) => ({
      what,
      own: said("own", ...asked),
      bundled: said("bundled", ...asked),
    }));
    console.info(
      list
        .filter(({ bundled }) => bundled.length > 0)
        .map(({ what, bundled }) => `${what}: ${bundled}`)
        .join("\n"),
    );
    const having = (code: string) => list.filter(({ bundled }) => bundled.includes(code)).map(({ what }) => what);
    expect(list.filter(({ own }) => own.includes("PROXY_UNSUPPORTED")).map(({ what }) => what)).toEqual(
      REFUSED_BY_BOTH,
    );
    expect(having("PROXY_UNSUPPORTED").filter((what) => !REFUSED_BY_BOTH.includes(what))).toEqual(REFUSED);
    expect(having("PROXY_BALANCER_LIMIT")).toEqual(LIMITED);
    expect(list.filter(({ own }) => own.includes("PROXY_BALANCER_LIMIT"))).toEqual([]);
  });

  it.each([
    ["a domain", { ...COOKIE, domain: "example.com" }],
    ["samesite", { ...COOKIE, sameSite: "Lax" as const }],
  ])("has cookies with %s, which are refused", (what, cookie) => {
    const { upstream } = upstreamStep("web", PORTS, {}, { cookie });
    expect(() => backendOf("a", upstream, () => undefined, "own")).not.toThrow();
    expect(() => backendOf("a", upstream, () => undefined, "bundled")).toThrow(
      expect.objectContaining({ code: "PROXY_UNSUPPORTED", message: expect.stringContaining(what) }),
    );
  });

  it("leaves what was in force in its place where it is refused", () => {
    const before = new PlannedState(
      nothing("bundled", "questions"),
      fullPlan(upstreamStep("web", [8080])),
      300,
    ).outcome();
    const { state } = new PlannedState(before.state, planOf(upstreamStep("web", [10_246])), 300).outcome();
    expect(state.upstreams.get(keyOf("web"))?.peers.peers).toMatchObject([{ port: 8080 }]);
  });
});

describe("a post to it", () => {
  const GOOD: Backend = { name: "a", endpoints: [{ address: "10.0.0.1", port: "80" }], "load-balance": "round_robin" };

  it("may have what the carrier makes, of each kind", () => {
    const cookie = upstreamStep("web", PORTS, {}, { cookie: { ...COOKIE, expires: "max" } });
    const good = [
      GOOD,
      { ...GOOD, name: "six", endpoints: [{ address: "2001:db8::1", port: "80" }] },
      { ...GOOD, name: "none", endpoints: [] },
      backendOf("cookie", cookie.upstream, () => undefined, "bundled"),
      backendOf("ring", upstreamStep("web", PORTS, {}, { method: ring("a") }).upstream, () => undefined, "bundled"),
    ];
    expect(checkBackends(good)).toBeUndefined();
  });

  it.each<[string, unknown]>([
    ["an object in place of the array", { a: 1 }],
    ["an entry that is null", [null]],
    ["an entry without a name", [{ endpoints: [] }]],
    ["an entry without endpoints", [{ name: "a" }]],
    ["endpoints that are no array", [{ ...GOOD, endpoints: {} }]],
    ["an endpoint without an address", [{ ...GOOD, endpoints: [{ port: "80" }] }]],
    ["an address that is a name", [{ ...GOOD, endpoints: [{ address: "web.example.com", port: "80" }] }]],
    ["a port that is a number", [{ ...GOOD, endpoints: [{ address: "10.0.0.1", port: 80 }] }]],
    ["a port out of range", [{ ...GOOD, endpoints: [{ address: "10.0.0.1", port: "70000" }] }]],
    ["the same name twice", [GOOD, GOOD]],
    ["ewma", [{ ...GOOD, "load-balance": "ewma" }]],
    ["a canary", [{ ...GOOD, trafficShapingPolicy: { weight: 1 } }]],
    ["alternatives", [{ ...GOOD, alternativeBackends: ["b"] }]],
    ["a service that it would look up", [{ ...GOOD, service: { spec: { type: "ExternalName" } } }]],
    ["an affinity without a cookie", [{ ...GOOD, sessionAffinityConfig: { name: "cookie", mode: "persistent" } }]],
    ["a hash without a key", [{ ...GOOD, upstreamHashByConfig: {} }]],
    ["a subset", [{ ...GOOD, upstreamHashByConfig: { "upstream-hash-by": "a", "upstream-hash-by-subset": true } }]],
    ["a field of every object", [{ ...GOOD, constructor: 1 }]],
  ])("is not sent with %s", (_what, posted) => {
    expect(checkBackends(posted as Backend[])).toEqual(expect.any(String));
  });
});
