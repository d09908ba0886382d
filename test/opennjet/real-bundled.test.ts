import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Upstream } from "../../controller/model/types.js";
import { type Backend, BackendsApi, RequestRefusedError } from "../../controller/proxies/opennjet/api/index.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import type { BalanceMethod } from "../../core-wasm/binding/source.js";
import { RequestNginx } from "../nginx/request-nginx.js";
import { runCleanups } from "../support/harness.js";
import { ask, keepAliveAgent } from "../support/http-client.js";
import { closedPort, httpPeer, type Peer } from "../support/peers.js";
import { actionHost, type Balancing, fullPlan, planOf, upstreamStep } from "../support/plans.js";
import { bundledBackends, type CarriedReal, carriedOver } from "./carried-real.js";
import { noBundled, openNjetWith } from "./real-installation.js";

const WORKERS = 2;
const missing = await noBundled();

/** An upstream of a VirtualServer, which has a backend of its own name. */
function upstream(
  name: string,
  ports: number[],
  balancing: Balancing = {},
  transport: Partial<Upstream["transport"]> = {},
) {
  const step = upstreamStep(name, ports, transport, balancing);
  step.upstream.peers.key = key(name);
  return step;
}

const key = (name: string) => `VirtualServer/default/${name}/web`;
const hostOf = (name: string) => `${name}.example.com`;
const toUpstream = (name: string): PlanStep => actionHost(hostOf(name), { kind: "proxy", upstream: key(name) });
const ringBy = (argument: string): BalanceMethod => ({ kind: "ring", key: [{ kind: "argument", name: argument }] });

describe.skipIf(missing)("the balancer that OpenNJet brings", () => {
  let njet: RequestNginx;
  let carried: CarriedReal;
  let api: BackendsApi;
  const peers: Peer[] = [];

  beforeAll(async () => {
    for (const name of ["one", "two", "three"]) peers.push(await httpPeer((_request, response) => response.end(name)));
    njet = await RequestNginx.start([], {
      flavour: openNjetWith("locations", "bundled"),
      workers: WORKERS,
      errorLevel: "warn",
    });
    carried = await carriedOver(njet, "bundled", WORKERS);
    api = new BackendsApi({ origin: "http://balancer", socketPath: njet.controlSocket });
    await carried.carrier.complete();
  }, 120_000);
  afterAll(async () => {
    await api?.close();
    await runCleanups();
    for (const peer of peers) await peer.close();
  });

  const ports = () => peers.map(({ port }) => port);

  /** What some requests to a host get, each on a connection of its own. */
  async function answers(name: string, paths: readonly string[]): Promise<string[]> {
    const host = hostOf(name);
    const all = await Promise.all(paths.map((path) => ask(njet.http, { host, path })));
    return all.map(({ status, body }) => (status === 200 ? body : String(status)));
  }

  async function apply(...steps: PlanStep[]): Promise<void> {
    const { failures } = await carried.carrier.apply(planOf(...steps));
    expect(failures.filter(({ inForce }) => !inForce)).toEqual([]);
  }

  const times = (count: number, path: (i: number) => string) => Array.from({ length: count }, (_, i) => path(i));

  it("follows a change of peers in all workers once it is told as done", async () => {
    await apply(upstream("scaled", [ports()[0]]), toUpstream("scaled"));
    for (const wanted of [[1], [0, 1, 2], [2], [0]]) {
      await apply(
        upstream(
          "scaled",
          wanted.map((i) => ports()[i]),
        ),
      );
      const got = new Set(
        await answers(
          "scaled",
          times(40, () => "/"),
        ),
      );
      expect([...got].sort()).toEqual(wanted.map((i) => ["one", "two", "three"][i]).sort());
    }
  });

  it("follows another hash key on a live upstream", async () => {
    await apply(upstream("keyed", ports(), { method: ringBy("a") }), toUpstream("keyed"));
    const same = (by: string, other: string) => times(20, (i) => `/?${by}=user-1&${other}=${i}`);
    expect(new Set(await answers("keyed", same("a", "b"))).size).toBe(1);
    await apply(upstream("keyed", ports(), { method: ringBy("b") }));
    expect(new Set(await answers("keyed", same("b", "a"))).size).toBe(1);
    expect(new Set(await answers("keyed", same("a", "b"))).size).toBeGreaterThan(1);
    await apply(upstream("keyed", ports()));
    expect(
      new Set(
        await answers(
          "keyed",
          times(20, () => "/?b=user-1"),
        ),
      ).size,
    ).toBeGreaterThan(1);
  });

  it("spreads requests whose hash key is empty", async () => {
    await apply(upstream("empty", ports(), { method: ringBy("a") }), toUpstream("empty"));
    expect(
      new Set(
        await answers(
          "empty",
          times(40, () => "/"),
        ),
      ).size,
    ).toBe(3);
  });

  it("finds another peer for most keys whose own is dead, and the object is told that it may not", async () => {
    const dead = await closedPort();
    const { failures } = await carried.carrier.apply(
      planOf(upstream("dead", [ports()[0], dead], { method: ringBy("a") }), toUpstream("dead")),
    );
    expect(failures).toMatchObject([
      { kind: "upstream", piece: key("dead"), code: "PROXY_BALANCER_LIMIT", inForce: true },
    ]);
    const got = await answers(
      "dead",
      times(60, (i) => `/?a=${i}`),
    );
    // Half of the keys are the dead peer's; of three tries each goes to it as often as not.
    expect(got.filter((one) => one === "one").length).toBeGreaterThan(40);
    expect(got.every((one) => one === "one" || one === "502")).toBe(true);
  });

  it("by itself comes back to the dead peer, for each such key: what is worked round is still there", async () => {
    await apply(upstream("raw", [ports()[0]]), toUpstream("raw"));
    const posted = await api.list();
    const dead = await closedPort();
    const backends = bundledBackends(api, njet, WORKERS);
    const raw = (backend: Backend): Backend =>
      backend.endpoints[0]?.port === String(ports()[0]) && backend.name.startsWith("default-raw")
        ? {
            ...backend,
            endpoints: [...backend.endpoints, { address: "127.0.0.1", port: String(dead) }],
            upstreamHashByConfig: { "upstream-hash-by": "$arg_a" },
          }
        : backend;
    const ours = posted.filter(({ name }) => !name.startsWith("njet-kic.mark."));
    await backends.post(ours.map(raw));
    const got = await answers(
      "raw",
      times(60, (i) => `/?a=${i}`),
    );
    expect(got.filter((one) => one === "502").length).toBeGreaterThan(10);
    expect(
      new Set(
        await answers(
          "raw",
          times(20, () => "/"),
        ),
      ).size,
    ).toBe(1);
    await backends.post(ours);
  });

  it("ends the tries for a request whose only peer is dead", async () => {
    await apply(upstream("gone", [await closedPort()], {}, { nextUpstreamTries: 0 }), toUpstream("gone"));
    expect(await answers("gone", ["/"])).toEqual(["502"]);
  });

  it("tries the next peer in turn where one is dead; an object that asks for retries is told that it may be the same", async () => {
    const dead = await closedPort();
    await apply(upstream("half", [ports()[0], dead]), toUpstream("half"));
    // One after the other: among requests at once, which peer is next is nobody's own.
    for (let i = 0; i < 20; i++) expect(await answers("half", ["/"])).toEqual(["one"]);
    const { failures } = await carried.carrier.apply(
      planOf(upstream("half", [ports()[0], dead], {}, { nextUpstreamTries: 2 })),
    );
    expect(failures).toMatchObject([{ piece: key("half"), code: "PROXY_BALANCER_LIMIT", inForce: true }]);
  });

  it("leaves out peers that health checks have found down, and takes them back", async () => {
    await apply(upstream("checked", ports().slice(0, 2)), toUpstream("checked"));
    const peer = { upstream: key("checked"), address: "127.0.0.1", port: ports()[0] };
    for (const state of ["down", "up"] as const) {
      carried.carrier.setPeerStates([{ ...peer, state }]);
      // States and plans are carried out in turn.
      await apply();
      const got = new Set(
        await answers(
          "checked",
          times(30, () => "/"),
        ),
      );
      expect([...got].sort()).toEqual(state === "down" ? ["two"] : ["one", "two"]);
    }
  });

  it("answers 503 where an upstream has no peers, and 404 for other hosts", async () => {
    await apply(upstream("none", []), toUpstream("none"));
    expect(await answers("none", ["/"])).toEqual(["503"]);
    expect(await answers("nobody", ["/"])).toEqual(["404"]);
  });

  it("keeps a client with its peer by a cookie, and gives another one when that peer is gone", async () => {
    const cookie = { name: "srv", secure: false, httpOnly: true, path: "/shop" };
    await apply(upstream("session", ports(), { cookie }), toUpstream("session"));
    const first = await ask(njet.http, { host: hostOf("session") });
    const [given] = first.headers["set-cookie"] ?? [];
    expect(given).toMatch(/^srv=[0-9a-f]{32}\|[0-9a-f]{32}; Path=\/shop; HttpOnly$/);
    const headers = { Cookie: given.split(";")[0] };
    const stay = await Promise.all(
      times(20, () => "/").map(() => ask(njet.http, { host: hostOf("session"), headers })),
    );
    expect(new Set(stay.map(({ body }) => body))).toEqual(new Set([first.body]));
    expect(stay.flatMap((answer) => answer.headers["set-cookie"] ?? [])).toEqual([]);
    const others = ports().filter((_, i) => ["one", "two", "three"][i] !== first.body);
    await apply(upstream("session", others, { cookie }));
    const moved = await ask(njet.http, { host: hostOf("session"), headers });
    expect([moved.status, moved.headers["set-cookie"]?.length]).toEqual([200, 1]);
    expect(moved.body).not.toBe(first.body);
  });

  it("refuses on its object what would be passed over in silence, and keeps what there was", async () => {
    const cookie = { name: "srv", secure: true, httpOnly: true, sameSite: "Lax" as const };
    await apply(upstream("refused", [ports()[0]]), toUpstream("refused"));
    const { failures } = await carried.carrier.apply(planOf(upstream("refused", [ports()[1]], { cookie })));
    expect(failures).toMatchObject([
      { piece: key("refused"), code: "PROXY_UNSUPPORTED", message: expect.stringContaining("samesite") },
    ]);
    expect(await answers("refused", ["/"])).toEqual(["one"]);
  });

  it("has every post in time, however fast they come", async () => {
    await apply(upstream("fast", [ports()[0]]), toUpstream("fast"));
    for (let i = 0; i < 5; i++) {
      carried.carrier.setPeerStates([{ upstream: key("fast"), address: "127.0.0.1", port: 1, state: "down" }]);
      await apply(upstream("fast", [ports()[i % 2]]));
      expect(
        new Set(
          await answers(
            "fast",
            times(20, () => "/"),
          ),
        ),
      ).toEqual(new Set([["one", "two"][i % 2]]));
    }
  });

  describe("where posted to without a look", () => {
    /** Whatever it is; resolves with the status. */
    function postRaw(body: string): Promise<number> {
      return new Promise((resolve, reject) => {
        const sent = request(
          { socketPath: njet.controlSocket, path: "/configuration/backends", method: "POST" },
          (response) => {
            response.resume();
            response.on("end", () => resolve(response.statusCode ?? 0));
          },
        );
        sent.on("error", reject);
        sent.end(body);
      });
    }

    it.each([
      ["an object", '{"a":1}'],
      ["no JSON", "[{"],
      ["an endpoint without an address", '[{"name":"bad","endpoints":[{"port":"80"}]}]'],
    ])("takes %s with 201; the next post by us comes into force all the same", async (_what, body) => {
      await apply(upstream("after", [ports()[0]]), toUpstream("after"));
      expect(await postRaw(body)).toBe(201);
      await apply(upstream("after", [ports()[1]]));
      expect(
        new Set(
          await answers(
            "after",
            times(20, () => "/"),
          ),
        ),
      ).toEqual(new Set(["two"]));
    });

    it.each([
      ["an entry without endpoints", { name: "bad" }],
      ["an endpoint that is no address", { name: "bad", endpoints: [{ address: "web.example.com", port: "80" }] }],
      ["an external name", { name: "bad", endpoints: [], service: { spec: { type: "ExternalName" } } }],
      ["a canary", { name: "bad", endpoints: [], trafficShapingPolicy: { weight: 1, header: "X-Canary" } }],
    ])("is never sent %s: what it has stays", async (_what, bad) => {
      const before = await api.list();
      const post = bundledBackends(api, njet, WORKERS).post([bad as Backend]);
      await expect(post).rejects.toThrow(RequestRefusedError);
      expect(await api.list()).toEqual(before);
    });
  });

  it("has nothing of posts in its log, and shows no certificates", async () => {
    await carried.carrier.apply(fullPlan(upstream("logged", [ports()[0]]), toUpstream("logged")));
    expect(njet.errorLog()).not.toContain("liuqi");
    const status = (path: string) =>
      new Promise((resolve, reject) => {
        request({ socketPath: njet.controlSocket, path }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on("error", reject)
          .end();
      });
    expect(await status("/configuration/certs?hostname=a")).toBe(404);
    expect(await status("/configuration/servers")).toBe(404);
    const agent = keepAliveAgent(1);
    expect((await ask(njet.http, { host: hostOf("logged"), path: "/configuration/backends", agent })).body).toBe("one");
    agent.destroy();
  });
});
