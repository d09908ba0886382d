/** The dynamic upstream API on real NGINX. The faults of the balancer that scripts know it from have a test each. */

import type { ServerResponse } from "node:http";
import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { closedPort, httpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { noNginx } from "./installation.js";
import { ConfigurationNginx, endpointsOf, namedPeer } from "./posted-nginx.js";

cleanUpAfterEach();

const NAME = "shop-web-80";
const BACKENDS = "/configuration/backends";

/** The owner of a key on the ring of `ip:port`, computed here anew. */
function ringOwner(ports: readonly number[], key: string): number {
  const points: { hash: number; port: number }[] = [];
  for (const port of ports) {
    const base = crc32(`127.0.0.1:${port}`);
    let hash = 0;
    for (let i = 0; i < 160; i++) {
      const before = Buffer.alloc(4);
      before.writeUInt32LE(hash);
      hash = crc32(before, base);
      points.push({ hash, port });
    }
  }
  points.sort((a, b) => a.hash - b.hash);
  const wanted = crc32(key);
  return (points.find(({ hash }) => hash >= wanted) ?? points[0])?.port ?? 0;
}

const byHash = (key: string) => ({ upstreamHashByConfig: { "upstream-hash-by": key } });

describe.skipIf(noNginx)("the dynamic upstream API: backends", () => {
  it("sends requests of a location that names a backend to its endpoints, in turns", async () => {
    const peers = [await namedPeer("a"), await namedPeer("b")];
    const nginx = await ConfigurationNginx.start({ workers: 1 });
    expect((await nginx.ask(NAME)).status).toBe(503);
    await nginx.backends({ name: NAME, "load-balance": "round_robin", endpoints: endpointsOf(...peers) });
    const bodies = await nginx.asked(4, NAME);
    expect(bodies.sort()).toEqual(["a", "a", "b", "b"]);
  });

  it("has a change in force for the next request in every worker", async () => {
    const [a, b] = [await namedPeer("a"), await namedPeer("b")];
    const nginx = await ConfigurationNginx.start();
    for (const [name, peer] of [
      ["a", a],
      ["b", b],
      ["a", a],
      ["b", b],
    ] as const) {
      await nginx.backends({ name: NAME, endpoints: endpointsOf(peer) });
      expect(await nginx.asked(6, NAME)).toEqual(Array(6).fill(name));
    }
  });

  it("a second post in the same moment is not lost", async () => {
    const peers = await Promise.all(["a", "b", "c", "d"].map(namedPeer));
    const nginx = await ConfigurationNginx.start();
    for (const peer of peers) await nginx.backends({ name: NAME, endpoints: endpointsOf(peer) });
    expect(await nginx.asked(6, NAME)).toEqual(Array(6).fill("d"));
  });

  it("refuses what is no JSON, or no array of backends, with 400 and says why; the last good state stays", async () => {
    const peer = await namedPeer("a");
    const nginx = await ConfigurationNginx.start();
    await nginx.backends({ name: NAME, endpoints: endpointsOf(peer) });
    const good = { name: "other", endpoints: [] };
    const endpoint = (address: unknown, port: unknown) => ({ name: "x", endpoints: [{ address, port }] });
    const cases: [string, RegExp][] = [
      ["[{", /no JSON/],
      ["", /no JSON/],
      ['{"a":1}', /must be an array/],
      ["{}", /must be an array/],
      ["7", /no JSON|array/],
      [JSON.stringify([good, null]), /\[1\]: must be an object/],
      [JSON.stringify([good, {}]), /\[1\]\.name: is needed/],
      [JSON.stringify([good, good]), /\[1\]\.name: .*twice/],
      [JSON.stringify([{ name: "a/b" }]), /\[0\]\.name: must be letters/],
      [JSON.stringify([good, endpoint("peer.example.com", "80")]), /\[1\]\.endpoints\[0\]\.address: must be an IP/],
      [JSON.stringify([endpoint("127.0.0.1", "0")]), /port: must be a whole number/],
      [JSON.stringify([endpoint("127.0.0.1", "http")]), /port: must be a whole number/],
      [JSON.stringify([{ name: "x", "load-balance": "fastest" }]), /load-balance: must be one of/],
      [JSON.stringify([{ name: "x", ...byHash("$") }]), /upstream-hash-by: a \$ needs/],
      [JSON.stringify([{ name: "x", trafficShapingPolicy: { header: "h", headerPattern: "(" } }]), /headerPattern: /],
    ];
    for (const [body, why] of cases) {
      const answer = await nginx.post(BACKENDS, body);
      expect([body, answer.status]).toEqual([body, 400]);
      expect(JSON.parse(answer.body)).toMatchObject({
        code: "CONFIGURATION_INVALID",
        message: expect.stringMatching(why),
      });
    }
    expect(await nginx.asked(4, NAME)).toEqual(Array(4).fill("a"));
    expect((await nginx.ask("other")).status).toBe(503);
    expect(JSON.parse((await nginx.control(BACKENDS)).body)).toHaveLength(1);
    // What was refused blocks nothing that comes later, and no body gets into a log.
    await nginx.backends({ name: "other", endpoints: endpointsOf(peer) });
    expect(await nginx.asked(4, "other")).toEqual(Array(4).fill("a"));
    expect(nginx.nginx.errorLog()).not.toContain("peer.example.com");
  });

  it("posts at the same time never mix: one of them is in force as a whole", async () => {
    const nginx = await ConfigurationNginx.start();
    const posts = Array.from({ length: 8 }, (_, i) =>
      Array.from({ length: 150 }, (__, n) => ({ name: `ns-svc-${n * (i + 1)}`, endpoints: endpointsOf(1000 + i) })),
    );
    await Promise.all(posts.map((backends) => nginx.backends(...backends)));
    const inForce: { name: string; endpoints: { port: string }[] }[] = JSON.parse((await nginx.control(BACKENDS)).body);
    const last = posts.find((_, i) => inForce[0]?.endpoints[0]?.port === String(1000 + i)) ?? [];
    const sorted = [...last].sort((a, b) => (a.name < b.name ? -1 : 1));
    expect(inForce).toEqual(sorted);
    expect(inForce).toHaveLength(150);
  });

  it("requests of the same worker are answered while it reads a post of thousands of backends", async () => {
    const nginx = await ConfigurationNginx.start({ workers: 1 });
    const peers = endpointsOf(...Array.from({ length: 10 }, (_, n) => 1000 + n));
    const backends = Array.from({ length: 3000 }, (_, i) => ({ name: `ns-svc-${i}`, endpoints: peers }));
    await nginx.backends(...backends);
    let posted = false;
    const post = nginx.backends(...backends).then(() => {
      posted = true;
    });
    let answered = 0;
    while (!posted) {
      await nginx.ask("nobody");
      answered++;
    }
    await post;
    expect(answered).toBeGreaterThan(20);
  });

  it("thousands of new backends come into force in slices, between which requests of every worker are answered", async () => {
    const nginx = await ConfigurationNginx.start({ workers: 2, stateSize: 64 });
    const peer = await namedPeer("served");
    const backends = Array.from({ length: 3000 }, (_, i) => ({ name: `ns-svc-${i}`, endpoints: endpointsOf(peer) }));
    let posted = false;
    const post = nginx.backends(...backends).then((answer) => {
      posted = true;
      return answer;
    });
    const isThere = async (name: string) => (await nginx.ask(name)).status === 200;
    while (!(await isThere("ns-svc-0"))) expect(posted).toBe(false);
    let between = 0;
    while (!(await isThere("ns-svc-2999"))) between++;
    expect(between).toBeGreaterThan(20);
    expect(await post).toMatchObject({ changed: 3000, removed: 0, late: [], failures: [] });
  });

  it("a post whose client leaves is brought to its end, and the next one is taken", async () => {
    const nginx = await ConfigurationNginx.start({ workers: 2, stateSize: 64 });
    const peer = await namedPeer("served");
    const backends = Array.from({ length: 2000 }, (_, i) => ({ name: `ns-svc-${i}`, endpoints: endpointsOf(peer) }));
    const left = nginx.leave("/configuration/backends", JSON.stringify(backends));
    await expect.poll(async () => (await nginx.ask("ns-svc-0")).status, { timeout: 30_000 }).toBe(200);
    left();
    await expect.poll(async () => (await nginx.ask("ns-svc-1999")).status, { timeout: 30_000 }).toBe(200);
    expect(await nginx.backends(...backends.slice(0, 1))).toMatchObject({ changed: 0, removed: 1999 });
  });

  it("a post whose worker is killed is not in the way of the next one", async () => {
    const nginx = await ConfigurationNginx.start({ workers: 1, stateSize: 64 });
    const peer = await namedPeer("served");
    const backends = Array.from({ length: 3000 }, (_, i) => ({ name: `ns-svc-${i}`, endpoints: endpointsOf(peer) }));
    const post = nginx.post("/configuration/backends", backends).catch(() => "broken off");
    await expect.poll(async () => (await nginx.ask("ns-svc-0")).status, { timeout: 30_000 }).toBe(200);
    const [{ pid }] = (await nginx.nginx.client.state()).workers;
    process.kill(pid, "SIGKILL");
    expect(await post).toBe("broken off");
    // Another worker has the place of the dead one soon, and with it what that had for itself.
    const again = () => nginx.backends(...backends).then(({ changed }) => changed, String);
    await expect.poll(again, { timeout: 30_000 }).toBeLessThan(3000);
    expect(await nginx.asked(1, "ns-svc-2999")).toEqual(["served"]);
  });

  it("ships only the backends that differ", async () => {
    const nginx = await ConfigurationNginx.start();
    const backends = Array.from({ length: 500 }, (_, i) => ({ name: `ns-svc-${i}`, endpoints: endpointsOf(1000 + i) }));
    expect(await nginx.backends(...backends)).toMatchObject({ changed: 500, removed: 0 });
    expect(await nginx.backends(...backends)).toMatchObject({ changed: 0, removed: 0 });
    const changed = backends.map((one, i) => (i === 7 ? { ...one, endpoints: endpointsOf(9) } : one)).slice(0, -2);
    expect(await nginx.backends(...changed.reverse())).toMatchObject({ changed: 1, removed: 2 });
  });

  it("gives back what is in force, and says whether anything was posted", async () => {
    const nginx = await ConfigurationNginx.start();
    expect((await nginx.control("/is-dynamic-lb-initialized")).status).toBe(500);
    expect(await nginx.control(BACKENDS)).toEqual({ status: 200, body: "[]\n" });
    const backend = {
      name: NAME,
      port: 80,
      endpoints: [
        { address: "127.0.0.1", port: "8080" },
        { address: "2001:db8::1", port: "80" },
      ],
      "load-balance": "ewma",
      ...byHash("${arg_uu}-$host"),
      sessionAffinityConfig: { name: "", mode: "", cookieSessionAffinity: { name: "" } },
      noServer: true,
      sslPassthrough: false,
      trafficShapingPolicy: { weight: 0, header: "", headerValue: "", headerPattern: "", cookie: "" },
      alternativeBackends: ["canary"],
    };
    await nginx.backends({ ...backend, service: { kind: "not known" } }, { name: "empty", endpoints: [] });
    const { body } = await nginx.control(BACKENDS);
    expect(JSON.parse(body)).toEqual([{ name: "empty", endpoints: [] }, backend]);
    expect((await nginx.post(BACKENDS, body)).body).toContain('"changed":0,"removed":0');
    expect((await nginx.control("/is-dynamic-lb-initialized")).status).toBe(200);
  });

  it("takes no change without the token, and shows states on the socket without it", async () => {
    const nginx = await ConfigurationNginx.start();
    for (const path of [BACKENDS, "/configuration/servers", "/configuration/general"]) {
      expect([path, (await nginx.control(path, { method: "POST", body: "[]", token: false })).status]).toEqual([
        path,
        401,
      ]);
    }
    expect((await nginx.control(BACKENDS, { token: false })).status).toBe(200);
    expect((await nginx.control("/state", { token: false })).status).toBe(401);
    expect((await nginx.control(BACKENDS, { method: "DELETE" })).status).toBe(405);
  });

  it("lives side by side with upstreams of the controller, and both outlive a change of the other", async () => {
    const [a, b] = [await namedPeer("a"), await namedPeer("b")];
    const nginx = await ConfigurationNginx.start();
    await nginx.nginx.apply(upstreamStep("web", [a.port]), proxyHost("shop.example.com", "web"));
    await nginx.backends({ name: NAME, endpoints: endpointsOf(b) });
    expect((await ask(nginx.nginx.http)).body).toBe("a");
    expect(await nginx.asked(2, NAME)).toEqual(["b", "b"]);
    await nginx.nginx.apply(upstreamStep("web", [b.port]));
    await nginx.backends();
    expect((await ask(nginx.nginx.http)).body).toBe("b");
    expect((await nginx.ask(NAME)).status).toBe(503);
  });

  it("reports a shared state that is full with 507, and takes nothing", async () => {
    const peer = await namedPeer("a");
    const nginx = await ConfigurationNginx.start({ stateSize: 1 });
    await nginx.backends({ name: NAME, endpoints: endpointsOf(peer) });
    const many = Array.from({ length: 40 }, (_, i) => ({
      name: `large-${i}`,
      endpoints: endpointsOf(...Array.from({ length: 1000 }, (__, n) => 1 + n)),
    }));
    const answer = await nginx.post(BACKENDS, many);
    expect(answer.status).toBe(507);
    expect(JSON.parse(answer.body)).toMatchObject({ code: "STATE_FULL" });
    expect(JSON.parse((await nginx.control(BACKENDS)).body)).toHaveLength(1);
    expect(await nginx.asked(2, NAME)).toEqual(["a", "a"]);
  });

  it("keeps what was posted over a reload of NGINX's configuration", async () => {
    const peer = await namedPeer("a");
    const nginx = await ConfigurationNginx.start();
    await nginx.backends({ name: NAME, endpoints: endpointsOf(peer) });
    await nginx.nginx.reload();
    expect(await nginx.asked(4, NAME)).toEqual(Array(4).fill("a"));
  });

  it("takes a general object and gives it back", async () => {
    const nginx = await ConfigurationNginx.start();
    expect(await nginx.control("/configuration/general")).toEqual({ status: 200, body: "{}\n" });
    expect((await nginx.post("/configuration/general", "[1]")).status).toBe(400);
    expect((await nginx.post("/configuration/general", { a: { b: 1 } })).status).toBe(201);
    expect(JSON.parse((await nginx.control("/configuration/general")).body)).toEqual({ a: { b: 1 } });
  });
});

describe.skipIf(noNginx)("the dynamic upstream API: how a peer is chosen", () => {
  it("sends a hash key to the peer that owns it on the ring", async () => {
    const peers = await Promise.all(["a", "b", "c"].map(namedPeer));
    const ports = peers.map(({ port }) => port);
    const nginx = await ConfigurationNginx.start();
    await nginx.backends({ name: NAME, endpoints: endpointsOf(...ports), ...byHash("$arg_uu") });
    for (let i = 0; i < 30; i++) {
      const owner = "abc"[ports.indexOf(ringOwner(ports, `user-${i}`))];
      expect((await nginx.ask(NAME, { path: `?uu=user-${i}` })).body).toBe(owner);
    }
  });

  it("a changed hash key acts at once on a backend that is there", async () => {
    const peers = await Promise.all(["a", "b", "c"].map(namedPeer));
    const ports = peers.map(({ port }) => port);
    const nginx = await ConfigurationNginx.start();
    const owner = (key: string) => "abc"[ports.indexOf(ringOwner(ports, key))];
    const path = "?one=k1&two=k2";
    for (const [key, value] of [
      ["$arg_one", "k1"],
      ["x${arg_two}-y", "xk2-y"],
      ["$arg_two", "k2"],
    ] as const) {
      await nginx.backends({ name: NAME, endpoints: endpointsOf(...ports), ...byHash(key) });
      expect(await nginx.asked(4, NAME, { path })).toEqual(Array(4).fill(owner(value)));
    }
  });

  it("an empty hash key does not send everyone to one peer: it goes round robin", async () => {
    const peers = await Promise.all(["a", "b", "c"].map(namedPeer));
    const nginx = await ConfigurationNginx.start({ workers: 1 });
    await nginx.backends({ name: NAME, endpoints: endpointsOf(...peers), ...byHash("$arg_uu") });
    expect((await nginx.asked(6, NAME)).sort()).toEqual(["a", "a", "b", "b", "c", "c"]);
  });

  it("a retry under a hash goes to another peer, not to the same dead one", async () => {
    const dead = await closedPort();
    const alive = await namedPeer("alive");
    const nginx = await ConfigurationNginx.start();
    await nginx.backends({ name: NAME, endpoints: endpointsOf(dead, alive), ...byHash("$arg_uu") });
    let owned = 0;
    for (let i = 0; i < 20; i++) {
      if (ringOwner([dead, alive.port], `k${i}`) === dead) owned++;
      expect((await nginx.ask(NAME, { path: `?uu=k${i}` })).body).toBe("alive");
    }
    expect(owned).toBeGreaterThan(0);
  });

  it("takes of two by lot the one with fewer requests under way, where ewma is asked for", async () => {
    const free = await namedPeer("free");
    const held: ServerResponse[] = [];
    const busy = closing(await httpPeer((_, response) => held.push(response)));
    const nginx = await ConfigurationNginx.start({ workers: 1 });
    const post = (...peers: { port: number }[]) =>
      nginx.backends({ name: NAME, "load-balance": "ewma", endpoints: endpointsOf(...peers) });
    await post(busy);
    const waiting = nginx.ask(NAME);
    await eventually(() => held.length === 1);
    await post(busy, free);
    expect(await nginx.asked(20, NAME)).toEqual(Array(20).fill("free"));
    held[0]?.end("at last");
    expect((await waiting).body).toBe("at last");
  });

  it("the subset form leads a key to some of the peers, by lot among them, and follows a changed key", async () => {
    const peers = await Promise.all(["a", "b", "c", "d", "e", "f", "g"].map(namedPeer));
    const nginx = await ConfigurationNginx.start();
    const subset = (key: string, size: number) => ({
      upstreamHashByConfig: {
        ...{ "upstream-hash-by": key, "upstream-hash-by-subset": true, "upstream-hash-by-subset-size": size },
      },
    });
    const post = (key: string, size: number, ...some: { port: number }[]) =>
      nginx.backends({ name: NAME, endpoints: endpointsOf(...some), ...subset(key, size) });
    const of = async (path: string) => [...new Set(await nginx.asked(24, NAME, { path }))].sort();
    await post("$arg_uu", 2, ...peers);
    const seen = new Set<string>();
    for (let i = 0; i < 8; i++) {
      const some = await of(`?uu=k${i}&other=x`);
      expect(some).toHaveLength(2);
      for (const one of some) seen.add(one);
    }
    expect(seen.size).toBeGreaterThan(2);
    // The order in which endpoints are posted does not matter.
    const before = await of("?uu=k1");
    await post("$arg_uu", 2, ...[...peers].reverse());
    expect(await of("?uu=k1")).toEqual(before);
    await post("$arg_other", 2, ...peers);
    expect(await of("?uu=k2&other=k1")).toEqual(before);
    expect((await of("?uu=k1")).length).toBeGreaterThan(2);
    await post("$arg_uu", 9, ...peers.slice(0, 3));
    expect(await of("?uu=k1")).toEqual(["a", "b", "c"]);
    await nginx.backends();
    expect(await of("?uu=k1")).toEqual(["503"]);
  });

  it("reaches peers over IPv6", async () => {
    const peer = await ipv6Peer();
    const nginx = await ConfigurationNginx.start();
    for (const address of ["::1", "[::1]", "0:0:0:0:0:0:0:1"]) {
      await nginx.backends({ name: NAME, endpoints: [{ address, port: String(peer) }], ...byHash("$arg_uu") });
      expect((await nginx.ask(NAME, { path: "?uu=1" })).body).toBe("six");
    }
  });
});

async function ipv6Peer(): Promise<number> {
  const { createServer } = await import("node:http");
  const { cleanup } = await import("../support/harness.js");
  const server = createServer((_, response) => response.end("six"));
  await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
  cleanup(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return (server.address() as { port: number }).port;
}
