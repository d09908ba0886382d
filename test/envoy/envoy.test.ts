import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { closedPort, httpPeer, httpsPeer, type Peer } from "../support/peers.js";
import { answer, argument, header, hostRules, peers, prefix, route } from "../support/rules.js";
import { bundleFrom, upstream } from "./bundles.js";
import { noEnvoy } from "./installation.js";
import { managerOf, RunningEnvoy } from "./running-envoy.js";

const SECRET = randomBytes(16).toString("hex");
const ASKED = { options: [`decide=${SECRET}`] };
const HOST = "example.com";

/** A bundle with nothing but a text for every path. */
function saying(text: string): Uint8Array {
  return bundleFrom([hostRules([route(prefix("/"), answer(text))])]);
}

/** A peer that tells its name and what it was asked. */
function named(name: string): Promise<Peer> {
  return httpPeer((request, response) => {
    response.setHeader("x-powered-by", "a peer");
    response.statusCode = Number(request.headers["x-wanted-status"] ?? 200);
    response.end(JSON.stringify({ name, target: request.url, headers: request.headers }));
  });
}

describe.skipIf(noEnvoy)("Envoy with the filter and envoy.yaml as it stands", () => {
  let first: Peer;
  let second: Peer;
  let secure: Peer;
  let refusing: number;
  let envoy: RunningEnvoy;

  beforeAll(async () => {
    [first, second] = await Promise.all([named("first"), named("second")]);
    secure = await httpsPeer((_, response) => response.end("over TLS"));
    refusing = await closedPort();
    const ofPorts = (key: string, ports: number[], method?: Parameters<typeof peers>[2]) => {
      const set = peers(key, ports, method);
      return { ...set, peers: set.peers.map((peer) => ({ ...peer, address: "127.0.0.1" })) };
    };
    const rules: HostRules = hostRules([
      route(prefix("/"), {
        kind: "proxy",
        upstream: "both",
        headers: [
          { op: "set-request", name: "X-From", value: [header("x-a")] },
          { op: "set-request", name: "Host", value: ["inner.example.com"] },
          { op: "add-response", name: "X-Added", value: [argument("q")], always: false },
          { op: "hide-response", name: "X-Powered-By" },
        ],
        errorPages: [{ codes: [418], kind: "return", status: 200, contentType: "text/plain", body: ["a teapot"] }],
      }),
      route(prefix("/old/"), { kind: "proxy", upstream: "both", rewrite: { kind: "prefix", text: "/new/" } }),
      route(prefix("/moved"), { kind: "redirect", status: 301, location: ["https://example.com/"] }),
      route(prefix("/text"), answer("hello")),
      route(prefix("/secure"), { kind: "proxy", upstream: "secure" }),
      route(prefix("/broken"), { kind: "proxy", upstream: "broken" }),
      route(prefix("/hashed"), { kind: "proxy", upstream: "hashed" }),
      route(prefix("/sticky"), { kind: "proxy", upstream: "sticky" }),
    ]);
    envoy = await RunningEnvoy.start({
      ...ASKED,
      bundle: bundleFrom(
        [rules],
        [
          upstream(ofPorts("both", [first.port, second.port])),
          upstream(ofPorts("secure", [secure.port]), { tls: true }),
          upstream(ofPorts("broken", [refusing])),
          upstream(ofPorts("hashed", [first.port, second.port], { kind: "ring", key: [argument("k")] })),
          upstream(ofPorts("sticky", [first.port, second.port]), {
            sessionCookie: { name: "njet", httpOnly: true, secure: false },
          }),
        ],
      ),
    });
  });
  afterAll(async () => {
    await envoy?.close();
    await Promise.all([first, second, secure].map((peer) => peer?.close()));
  });

  const ask = (path: string, headers: Record<string, string | string[]> = {}) => envoy.get(HOST, path, headers);
  const reached = async (path: string, headers?: Record<string, string>) => JSON.parse((await ask(path, headers)).body);

  it("reaches the peers in turn, each at its own address", async () => {
    const names = [];
    for (let i = 0; i < 6; i++) names.push((await reached("/")).name);
    expect(names.filter((name) => name === "first")).toHaveLength(3);
    expect(names.filter((name) => name === "second")).toHaveLength(3);
  });

  it("sends the peer the headers of the object, the client's own, and none of the filter's", async () => {
    const { target, headers } = await reached("/a?q=1", { "x-a": "b", "x-own": "1", "x-njet-cluster": "forged" });
    expect(target).toBe("/a?q=1");
    expect(headers).toMatchObject({ host: "inner.example.com", "x-from": "b", "x-own": "1" });
    expect(Object.keys(headers).filter((name) => name.startsWith("x-njet"))).toEqual([]);
  });

  it("sends the peer the rewritten path", async () => {
    expect((await reached("/old/a?b=c")).target).toBe("/new/a?b=c");
  });

  it("changes the answer as the object says", async () => {
    const { headers } = await ask("/?q=42");
    expect(headers["x-added"]).toBe("42");
    expect(headers["x-powered-by"]).toBeUndefined();
  });

  it("puts an error page in the place of the peer's answer", async () => {
    const { status, body, headers } = await ask("/", { "x-wanted-status": "418" });
    expect({ status, body, type: headers["content-type"] }).toEqual({
      status: 200,
      body: "a teapot",
      type: "text/plain",
    });
  });

  it("redirects, answers by itself, and refuses", async () => {
    const { status, headers } = await ask("/moved");
    expect({ status, location: headers.location }).toEqual({ status: 301, location: "https://example.com/" });
    expect((await ask("/text")).body).toBe("hello");
    expect((await envoy.get("elsewhere.test", "/")).status).toBe(404);
    expect((await ask("/%zz")).status).toBe(400);
  });

  it("speaks TLS to the peers of an upstream that says so", async () => {
    expect((await ask("/secure")).body).toBe("over TLS");
  });

  it("answers 503 for a peer that refuses connections", async () => {
    expect((await ask("/broken")).status).toBe(503);
  });

  it("keeps a key with its peer", async () => {
    const names = new Map<string, Set<string>>();
    for (let i = 0; i < 60; i++) {
      const key = String(i % 12);
      const { name } = await reached(`/hashed?k=${key}`);
      names.set(key, (names.get(key) ?? new Set()).add(name));
    }
    expect([...names.values()].every((met) => met.size === 1)).toBe(true);
    expect(new Set([...names.values()].flatMap((met) => [...met])).size).toBe(2);
  });

  it("keeps a client with its peer by a cookie", async () => {
    const { headers, body } = await ask("/sticky");
    const [cookie] = headers["set-cookie"] as string[];
    expect(cookie).toMatch(/^njet=[0-9a-f]{8}; httponly$/);
    for (let i = 0; i < 6; i++) {
      const again = await ask("/sticky", { cookie: cookie.split(";")[0] });
      expect(JSON.parse(again.body).name).toBe(JSON.parse(body).name);
      expect(again.headers["set-cookie"]).toBeUndefined();
    }
  });
});

describe.skipIf(noEnvoy)("a new file for Envoy", () => {
  it("acts without a restart, and no request fails meanwhile", async () => {
    const envoy = await RunningEnvoy.start({ ...ASKED, bundle: saying("0") });
    let serving = true;
    const met = new Set<string>();
    const failed: number[] = [];
    const load = (async () => {
      while (serving) {
        const { status, body } = await envoy.get(HOST, "/");
        met.add(body);
        if (status !== 200) failed.push(status);
      }
    })();
    try {
      for (let i = 1; i <= 5; i++) {
        envoy.write(saying(String(i)));
        await envoy.serves(saying(String(i)), SECRET);
      }
    } finally {
      serving = false;
      await load;
      await envoy.close();
    }
    expect(failed).toEqual([]);
    expect(met.has("5")).toBe(true);
  });

  it("with a damaged bundle is refused: the old state stays, and no request fails", async () => {
    const envoy = await RunningEnvoy.start({ ...ASKED, bundle: saying("old") });
    try {
      const damaged = Uint8Array.from(saying("new"));
      damaged[damaged.length - 9] ^= 1;
      const before = envoy.log.length;
      envoy.write(damaged);
      await envoy.until(async () => envoy.log.slice(before).includes("config update rejected"), "refuses the bundle");
      expect(envoy.log.slice(before)).toContain(
        "the bundle is refused: the core refuses an image (record 0, status -5)",
      );
      for (let i = 0; i < 50; i++) expect(await envoy.get(HOST, "/")).toMatchObject({ status: 200, body: "old" });

      // Neither does a file that is no resource at all.
      envoy.writeRaw(randomBytes(500));
      for (let i = 0; i < 50; i++) expect(await envoy.get(HOST, "/")).toMatchObject({ status: 200, body: "old" });

      envoy.write(saying("repaired"));
      await envoy.serves(saying("repaired"), SECRET);
      expect((await envoy.get(HOST, "/")).body).toBe("repaired");
    } finally {
      await envoy.close();
    }
  });
});

describe.skipIf(noEnvoy)("with a cluster for each upstream", () => {
  it("Envoy balances by what the core has hashed, or takes the core's peer while it is healthy", async () => {
    const [first, second] = await Promise.all([named("first"), named("second")]);
    const set = peers("default/api", [first.port, second.port], { kind: "ring", key: [argument("k")] });
    const addresses = set.peers.map((peer) => ({ ...peer, address: "127.0.0.1" }));
    const rules = hostRules([route(prefix("/"), { kind: "proxy", upstream: "default/api" })]);
    const bundle = bundleFrom([rules], [upstream({ ...set, peers: addresses })]);
    const endpoint = ({ address, port }: { address: string; port: number }) => ({
      endpoint: { address: { socket_address: { address, port_value: port } } },
    });
    const envoy = await RunningEnvoy.start({
      bundle,
      options: ["clusters=upstream", ...ASKED.options],
      edit: ({ static_resources }) => {
        const [{ routes }] = managerOf(static_resources.listeners[0]).route_config.virtual_hosts as {
          routes: { route: Record<string, unknown> }[];
        }[];
        routes[0].route.hash_policy = [{ header: { header_name: "x-njet-hash" } }];
        static_resources.clusters = [
          {
            name: "default/api",
            type: "STATIC",
            load_balancing_policy: { policies: [{ typed_extension_config: overrideHost }] },
            load_assignment: { cluster_name: "default/api", endpoints: [{ lb_endpoints: addresses.map(endpoint) }] },
          },
        ];
      },
    });
    try {
      for (let i = 0; i < 20; i++) {
        const { body } = await envoy.get(HOST, `/?k=${i}`);
        const decided = await envoy.get(HOST, `/?k=${i}`, { "x-njet-decide": SECRET });
        const port = JSON.parse(body).name === "first" ? first.port : second.port;
        expect(JSON.parse(decided.body).peer).toBe(`127.0.0.1:${port}`);
      }
    } finally {
      await envoy.close();
      await Promise.all([first.close(), second.close()]);
    }
  });
});

/** The peer of the core; else the ring of Envoy. */
const overrideHost = {
  name: "envoy.load_balancing_policies.override_host",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost",
    override_host_sources: [{ header: "x-njet-peer" }],
    fallback_policy: {
      policies: [
        {
          typed_extension_config: {
            name: "envoy.load_balancing_policies.ring_hash",
            typed_config: {
              "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash",
            },
          },
        },
      ],
    },
  },
};
