/** What OpenNJet had no room for in the carrier locations is served as soon as there is room, and its object is told so. */
import { describe, expect, it } from "vitest";
import { nothing } from "../../controller/proxies/opennjet/locations/carried-state.js";
import { PlannedState } from "../../controller/proxies/opennjet/locations/planned-state.js";
import { UnsupportedError } from "../../controller/proxies/plan-step.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { ingress, service, tlsSecret } from "../cli/objects.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { actionHost, planOf } from "../support/plans.js";
import { controlledLocations } from "./controlled-locations.js";

cleanUpAfterEach();

const OTHERS = { chain: "/default.crt", key: "/default.key" };
const MAP = "/api/v1/config/http_dyn_map";

const hostOf = (name: string) => `${name}.example.com`;
const PAIR = makeCertificate("pair", ...["a", "b", "c", "d"].map(hostOf));
const plain = (name: string) => ingress(name, hostOf(name), "one");
const withTls = (name: string) => ingress(name, hostOf(name), "one", "pair");
/** An Ingress that takes three locations. */
const large = (name: string) => {
  const at = (path: string) => plain(name).split("paths: [")[1].split("]")[0].replace("path: /,", `path: ${path},`);
  return plain(name).replace(/paths: \[.*\]/, `paths: [${["/", "/x", "/y"].map(at).join(", ")}]`);
};

async function shop(options: { maxLocations?: number; mostHosts?: number }) {
  const made = await controlledLocations({ ...options, others: OTHERS });
  const peer = closing(await httpPeer((_request, response) => response.end("one")));
  await made.set(service("one", "127.0.0.1", peer.port), tlsSecret("pair", PAIR));
  return {
    ...made,
    codes: (name: string) => made.problems(name)?.map(({ code }) => code),
    answer: async (name: string) => (await ask(made.http, { host: hostOf(name) })).status,
    certified: async () =>
      Object.keys((await made.maps()).$njet_certificate)
        .filter((name) => name !== "default")
        .sort(),
    /** The calls since the last look, without the conditions in them. */
    kinds: () => made.calls().map((call) => call.replace(/ \(.*/, " location")),
  };
}

/** Of a, b and c, with one location each. */
const returningHosts = () =>
  ["a", "b", "c"].map((name) =>
    actionHost(hostOf(name), { kind: "return", status: 204, contentType: "text/plain", body: [] }),
  );

describe("A host that was refused for lack of locations", () => {
  it("is served when another host goes, by the calls of both changes and no others, and its object is told so", async () => {
    const { set, remove, codes, answer, kinds, told } = await shop({ maxLocations: 2 });
    expect(await set(plain("a"), plain("b"))).toEqual([]);
    expect(await set(plain("c"))).toMatchObject([{ kind: "host", piece: hostOf("c"), code: "PROXY_LOCATIONS_FULL" }]);
    expect(codes("c")).toEqual(["PROXY_LOCATIONS_FULL"]);
    expect(await answer("c")).toBe(404);
    kinds();
    expect(await remove(plain("a"))).toEqual([]);
    expect(kinds()).toEqual(["post 3", "add location", "remove location", "add marker", "remove marker", "post 2"]);
    expect(codes("c")).toEqual([]);
    expect(told()).toContain("Ingress/default/c");
    expect(await answer("c")).toBe(200);
    expect(await answer("b")).toBe(200);
    expect(await answer("a")).toBe(404);
  });

  it("is served when another host needs fewer locations", async () => {
    const { set, answer, codes } = await shop({ maxLocations: 3 });
    expect(await set(large("a"))).toEqual([]);
    expect(await set(plain("b"))).toHaveLength(1);
    expect(await set(plain("a"))).toEqual([]);
    expect(codes("b")).toEqual([]);
    expect(await answer("b")).toBe(200);
  });

  it("waits while there is no room for it, without a call, and lets one pass for which there is", async () => {
    const { set, remove, answer, codes, kinds } = await shop({ maxLocations: 3 });
    expect(await set(plain("a"), plain("b"), plain("c"))).toEqual([]);
    expect(await set(large("large"))).toHaveLength(1);
    expect(await set(plain("d"))).toHaveLength(1);
    kinds();
    expect(await set(service("two", "127.0.0.1", 9000))).toEqual([]);
    expect(kinds()).toEqual([]);
    expect(await remove(plain("a"))).toEqual([]);
    expect([codes("d"), codes("large")]).toEqual([[], ["PROXY_LOCATIONS_FULL"]]);
    expect(await remove(plain("b"), plain("c"), plain("d"))).toEqual([]);
    expect(codes("large")).toEqual([]);
    expect(await answer("large")).toBe(200);
  });

  it("is not brought back when it has gone, and comes as it is by then when it has changed", async () => {
    const { set, remove, answer, codes } = await shop({ maxLocations: 1 });
    expect(await set(plain("a"))).toEqual([]);
    expect(await set(plain("b"))).toHaveLength(1);
    expect(await set(plain("c"))).toHaveLength(1);
    await remove(plain("b"));
    expect(await set(plain("c").replace("path: /,", "path: /new,"))).toHaveLength(1);
    await remove(plain("a"));
    expect(await answer("b")).toBe(404);
    expect(await answer("c")).toBe(404);
    expect(codes("c")).toEqual([]);
  });

  it("does not take the room of a host that is renamed", async () => {
    const { set, codes, answer } = await shop({ maxLocations: 1 });
    expect(await set(plain("a"))).toEqual([]);
    expect(await set(plain("b"))).toHaveLength(1);
    expect(await set(ingress("a", hostOf("renamed"), "one"))).toEqual([]);
    expect(await answer("renamed")).toBe(200);
    expect(codes("b")).toEqual(["PROXY_LOCATIONS_FULL"]);
  });

  it("has what OpenNJet says of it on its object, where that is refused, and the next one has its room", () => {
    const hosts = returningHosts();
    const full = new PlannedState(nothing("own", "questions"), planOf(...hosts), 1).outcome();
    expect(full.failures.map(({ piece }) => piece)).toEqual([hostOf("b"), hostOf("c")]);
    const removal: PlanStep = { step: "remove-host", pattern: { kind: "exact", host: hostOf("a") } };
    const planned = new PlannedState(full.state, planOf(removal), 1);
    expect(planned.outcome().retried).toEqual([hosts[1]]);
    planned.refuseHost(hostOf("b"), new UnsupportedError("no"));
    const { failures, retried, state } = planned.outcome();
    expect(failures).toMatchObject([{ piece: hostOf("b"), code: "PROXY_UNSUPPORTED" }]);
    expect(retried).toEqual(hosts.slice(1));
    expect([...state.hosts.keys()]).toEqual([hostOf("c")]);
    expect(state.waiting.size).toBe(0);
  });

  it("is in force without a failure, where another host of the same plan is refused and leaves its room", () => {
    const [a, b, c] = returningHosts();
    const planned = new PlannedState(nothing("own", "questions"), planOf(a, b, c), 1);
    expect(planned.outcome().failures.map(({ piece }) => piece)).toEqual([hostOf("b"), hostOf("c")]);
    planned.refuseHost(hostOf("a"), new UnsupportedError("no"));
    const { failures, state } = planned.outcome();
    expect([...state.hosts.keys()]).toEqual([hostOf("b")]);
    expect([...state.waiting.keys()]).toEqual([hostOf("c")]);
    expect(failures.map(({ piece, code }) => [piece, code])).toEqual([
      [hostOf("c"), "PROXY_LOCATIONS_FULL"],
      [hostOf("a"), "PROXY_UNSUPPORTED"],
    ]);
  });

  it("is left out by itself, where it has got the room of a refused host of its plan and is refused then", () => {
    const [a, b, c] = returningHosts();
    const planned = new PlannedState(nothing("own", "questions"), planOf(a, b, c), 1);
    planned.refuseHost(hostOf("a"), new UnsupportedError("no"));
    planned.outcome();
    planned.refuseHost(hostOf("b"), new UnsupportedError("no, too"));
    const { failures, state } = planned.outcome();
    expect([...state.hosts.keys()]).toEqual([hostOf("c")]);
    expect(failures.map(({ piece, code }) => [piece, code])).toEqual([
      [hostOf("a"), "PROXY_UNSUPPORTED"],
      [hostOf("b"), "PROXY_UNSUPPORTED"],
    ]);
  });
});

describe("A certificate that was refused for lack of room", () => {
  it("is served when another host loses its own, by one call, and its object is told so", async () => {
    const { set, remove, codes, certified, calls, told } = await shop({ mostHosts: 2 });
    expect(await set(withTls("a"), withTls("b"))).toEqual([]);
    expect(await set(withTls("c"))).toMatchObject([{ kind: "certificate", code: "PROXY_CERTIFICATES_FULL" }]);
    expect(await set(withTls("d"))).toHaveLength(1);
    expect(await certified()).toEqual([hostOf("a"), hostOf("b")]);
    calls();
    expect(await set(plain("a"))).toEqual([]);
    expect(calls()).toEqual([`PUT ${MAP}`]);
    expect(told()).toContain("Ingress/default/c");
    // Who has waited longest.
    expect([codes("c"), codes("d")]).toEqual([[], ["PROXY_CERTIFICATES_FULL"]]);
    expect(await certified()).toEqual([hostOf("b"), hostOf("c")]);
    expect(await remove(withTls("b"))).toEqual([]);
    expect(codes("d")).toEqual([]);
    expect(await certified()).toEqual([hostOf("c"), hostOf("d")]);
  });

  it("is asked for by no call while there is no room, nor when its host has gone", async () => {
    const { set, remove, certified, calls } = await shop({ mostHosts: 1 });
    expect(await set(withTls("a"))).toEqual([]);
    expect(await set(withTls("b"))).toHaveLength(1);
    calls();
    expect(await set(service("two", "127.0.0.1", 9000))).toEqual([]);
    expect(calls()).toEqual([]);
    await remove(withTls("b"));
    await remove(withTls("a"));
    expect(await certified()).toEqual([]);
  });
});
