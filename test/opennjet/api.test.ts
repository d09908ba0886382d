import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { describe, expect, it } from "vitest";
import {
  AlreadyExistsError,
  BackendsApi,
  CertificateRepeatedError,
  ModuleNotLoadedError,
  NotAllowedError,
  NotFoundError,
  ParameterError,
  PartlyAppliedError,
  RefusedError,
  RequestRefusedError,
  RpcTimeoutError,
} from "../../controller/proxies/opennjet/api/index.js";
import { DOUBLE_TOKEN } from "../real/opennjet-double/index.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { driven, failure, SITE } from "./api-support.js";

cleanUpAfterEach();

describe("locations", () => {
  it("are added and removed, one a call", async () => {
    const { double, api } = await driven();
    await api.locations.add(SITE, { rule: "", name: "($http_host = a.example.com)", body: "return 200 a;" });
    await api.locations.add(SITE, { rule: "=", name: "/exact", body: "return 200 exact;" });
    const port = double.port("0.0.0.0:80");
    expect((await ask(port, { host: "a.example.com", path: "/x" })).body).toBe("a");
    expect((await ask(port, { host: "b.example.com", path: "/exact" })).body).toBe("exact");
    await api.locations.remove(SITE, { rule: "=", name: "/exact" });
    expect((await ask(port, { host: "b.example.com", path: "/exact" })).body).toBe("none");
    expect(double.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /api/v1/dyn_loc",
      "POST /api/v1/dyn_loc",
      "PUT /api/v1/dyn_loc",
    ]);
  });

  it("say that they are there already, or not there, whatever rule and name are", async () => {
    const { api } = await driven();
    for (const { rule, name } of [
      { rule: "", name: "/a" },
      { rule: "^~", name: "/b" },
      { rule: "~", name: "^/c\\d+$" },
      { rule: "", name: "($http_host = a.example.com && $uri ~ ^/d)" },
    ] as const) {
      const location = { rule, name, body: "return 204;" };
      expect(await failure(api.locations.remove(SITE, location)), name).toBeInstanceOf(NotFoundError);
      await api.locations.add(SITE, location);
      expect(await failure(api.locations.add(SITE, location)), name).toBeInstanceOf(AlreadyExistsError);
      await api.locations.remove(SITE, location);
      expect(await failure(api.locations.remove(SITE, location)), name).toBeInstanceOf(NotFoundError);
    }
  });

  it("are refused, and not called missing, where a name pretends it", async () => {
    const { api } = await driven();
    const name = "/x;exist!";
    const error = await failure(api.locations.add(SITE, { rule: "", name, body: "nosuch exist!;" }));
    expect(error).toBeInstanceOf(RefusedError);
  });

  it("are refused where the server does not exist", async () => {
    const { api } = await driven();
    const server = { ...SITE, serverName: "nobody" };
    const error = await failure(api.locations.add(server, { rule: "", name: "/", body: "return 204;" }));
    expect(error).toBeInstanceOf(RefusedError);
    expect(error.message).toContain("no find server[nobody]");
  });

  it("hold locations inside", async () => {
    const { double, api } = await driven();
    const inner = { rule: "", name: "/outer/inner", body: "return 200 inner;" } as const;
    await api.locations.add(SITE, { rule: "", name: "/outer", body: "return 200 outer;", locations: [inner] });
    expect(double.plane.agent.servers[0].locations.at(-1)?.locations[0].name).toBe("/outer/inner");
  });
});

describe("servers", () => {
  it("are added, with a port of their own, and removed", async () => {
    const { double, api } = await driven();
    const server = { addressPort: "0.0.0.0:8080", serverName: "b.example.com" };
    await api.servers.add({ ...server, body: "return 200 new;" });
    expect((await ask(double.port("0.0.0.0:8080"))).body).toBe("new");
    expect(await failure(api.servers.add({ ...server, body: "" }))).toBeInstanceOf(AlreadyExistsError);
    await api.servers.remove(server);
    expect(await failure(api.servers.remove(server))).toBeInstanceOf(NotFoundError);
    expect(await failure(api.servers.remove(SITE))).toBeInstanceOf(NotAllowedError);
  });
});

describe("upstreams", () => {
  it("are added, have members, and are removed when nobody uses them", async () => {
    const { double, api } = await driven();
    const peer = closing(await httpPeer((_, response) => response.end("peer")));
    await api.upstreams.add("u", "zone u 128k;");
    expect(await failure(api.upstreams.add("u", "zone u 128k;"))).toBeInstanceOf(AlreadyExistsError);
    const member = await api.upstreams.addMember("u", { server: `127.0.0.1:${peer.port}`, weight: 1 });
    expect(member).toEqual({
      id: 0,
      server: `127.0.0.1:${peer.port}`,
      weight: 1,
      maxConns: 0,
      maxFails: 1,
      failTimeout: "10s",
      slowStart: "0s",
      route: "",
      backup: false,
      down: false,
    });
    await api.locations.add(SITE, { rule: "", name: "/u", body: "", proxyPass: "http://u" });
    expect((await ask(double.port("0.0.0.0:80"), { path: "/u" })).body).toBe("peer");
    expect(await failure(api.upstreams.remove("u"))).toBeInstanceOf(NotAllowedError);

    expect((await api.upstreams.changeMember("u", 0, { down: true, maxConns: 7 })).maxConns).toBe(7);
    expect((await api.upstreams.state("u")).peers[0]).toMatchObject({ state: "down", requests: 1 });
    expect((await api.upstreams.removeMember("u", 0)).peers).toEqual([]);
    expect(await api.upstreams.members("u")).toEqual([]);
    await api.locations.remove(SITE, { rule: "", name: "/u" });
    await api.upstreams.remove("u");
    expect(await failure(api.upstreams.remove("u"))).toBeInstanceOf(NotFoundError);
    expect(await failure(api.upstreams.remove("fixed"))).toBeInstanceOf(NotAllowedError);
  });

  it("are listed with what they do", async () => {
    const { api } = await driven();
    expect(await api.upstreams.list()).toContainEqual({
      name: "fixed",
      balance: "round_robin",
      zone: { name: "fixed", size: 131_072 },
      isStatic: true,
    });
    expect((await api.upstreams.states()).map(({ name }) => name)).toContain("fixed");
  });
});

describe("maps", () => {
  const values = [
    { valueFrom: "default", valueTo: "other" },
    { valueFrom: "a.example.com", valueTo: "a" },
  ];

  it("are replaced as a whole, and listed", async () => {
    const { api } = await driven();
    await api.maps.replace([{ keyFrom: "$ssl_server_name", keyTo: "$certificate", values, hostnames: true }]);
    expect(await api.maps.list()).toEqual([
      { keyFrom: "$ssl_server_name", keyTo: "$certificate", values, hostnames: true, isVolatile: false },
    ]);
    await api.maps.replace([{ keyFrom: "$ssl_server_name", keyTo: "$certificate", values: values.slice(0, 1) }]);
    expect((await api.maps.list())[0].values).toEqual(values.slice(0, 1));
  });

  it("are in force in part where one of several can't be found", async () => {
    const { api } = await driven();
    const known = { keyFrom: "$ssl_server_name", keyTo: "$certificate", values };
    const error = await failure(api.maps.replace([known, { keyFrom: "$x", keyTo: "$nobody", values }]));
    expect(error).toBeInstanceOf(PartlyAppliedError);
    expect(error.message).toContain("nobody");
    expect((await api.maps.list())[0].values).toEqual(values);
    expect(await failure(api.maps.replace([{ keyFrom: "$x", keyTo: "$nobody", values }]))).toBeInstanceOf(RefusedError);
  });

  it("are added with both flags, since OpenNJet fails without them, and removed", async () => {
    const { api } = await driven();
    await api.maps.add([{ keyFrom: "$http_x", keyTo: "$x", values }]);
    expect((await api.maps.list()).map(({ keyTo }) => keyTo)).toEqual(["$certificate", "$x"]);
    await api.maps.remove([{ keyFrom: "$http_x", keyTo: "$x" }]);
    expect((await api.maps.list()).map(({ keyTo }) => keyTo)).toEqual(["$certificate"]);
  });

  it("of more than 1,000 hosts time out and come into force later", async () => {
    const { double, api } = await driven();
    const many = Array.from({ length: 1001 }, (_, i) => ({ valueFrom: `${i}.example.com`, valueTo: "x" }));
    const error = await failure(
      api.maps.replace([{ keyFrom: "$ssl_server_name", keyTo: "$certificate", values: many }]),
    );
    expect(error).toBeInstanceOf(RpcTimeoutError);
    expect(error.mayHaveApplied).toBe(true);
    expect((await api.maps.list())[0].values.length).toBe(1);
    double.plane.applyLate();
    expect((await api.maps.list())[0].values.length).toBe(1001);
  });
});

describe("certificates", () => {
  it("are put in place, and refused for good once they were there", async () => {
    const first = makeCertificate("first", "tls.example.com");
    const folder = mkdtempSync(join(tmpdir(), "njet-kic-api-"));
    cleanup(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "chain.pem"), first.chain);
    writeFileSync(join(folder, "key.pem"), first.key);
    const tls = { certificate: join(folder, "chain.pem"), key: join(folder, "key.pem") };
    const { double, api } = await driven({
      configuration: {
        servers: [{ listens: ["0.0.0.0:443"], names: ["tls.example.com"], tls, body: "location / { return 204; }" }],
      },
    });
    const served = () => commonName(double.port("0.0.0.0:443"), "tls.example.com");
    const place = { listens: ["0.0.0.0:443"], serverNames: ["tls.example.com"], type: "ecc" } as const;
    const second = makeCertificate("second", "tls.example.com");
    const certificate = { ...place, certificate: second.chain, key: second.key };
    expect(await served()).toBe("first");
    await api.certificates.add(certificate);
    expect(await served()).toBe("second");
    expect(await failure(api.certificates.add(certificate))).toBeInstanceOf(CertificateRepeatedError);
    await api.certificates.remove(certificate);
    expect(await failure(api.certificates.add(certificate))).toBeInstanceOf(CertificateRepeatedError);
    expect(await served()).toBe("second");
    const mixed = { ...place, certificate: first.chain, key: second.key };
    expect(await failure(api.certificates.add(mixed))).toBeInstanceOf(RefusedError);
  });

  it("are listed without PEM and without keys", async () => {
    const { double, api } = await driven();
    const { chain, key } = makeCertificate("listed", "tls.example.com");
    double.plane.agent.servers[0].tls = {
      cert_type: "ecc",
      certificate: `data:${chain}`,
      certificateKey: `data:${key}`,
    };
    expect(await api.certificates.list()).toEqual([
      { listens: ["0.0.0.0:80"], serverNames: ["_"], certificates: [{ type: "ecc", source: "data:" }] },
    ]);
  });
});

describe("health checks", () => {
  const check = { interval: "1s", jitter: "0s", timeout: "1s", passes: 1, fails: 1, http: { uri: "/", status: "200" } };

  it("are added, read, listed and removed", async () => {
    const { api } = await driven();
    await api.health.add("http", "fixed", check);
    expect(await failure(api.health.add("http", "fixed", check))).toBeInstanceOf(AlreadyExistsError);
    expect(await api.health.get("http", "fixed")).toEqual(check);
    expect(await api.health.list()).toEqual([{ type: "http", upstream: "fixed" }]);
    await api.health.remove("http", "fixed");
    expect(await failure(api.health.remove("http", "fixed"))).toBeInstanceOf(NotFoundError);
    expect(await failure(api.health.add("http", "nobody", check))).toBeInstanceOf(NotFoundError);
  });
});

describe("the key-value store", () => {
  it("keeps values, empty ones as well", async () => {
    const { api } = await driven();
    expect(await api.keyValue.get("key")).toBeUndefined();
    await api.keyValue.set("key", "");
    expect(await api.keyValue.get("key")).toBe("");
    await api.keyValue.set("__master_worker_count", "4");
    expect(await api.keyValue.get("__master_worker_count")).toBe("4");
    expect(await api.keyValue.remove("key")).toBe(true);
    expect(await api.keyValue.remove("key")).toBe(false);
  });

  it.each(["", "a b", "a/b", "a#", "a+", "a&key=b", "é"])(
    "takes no key that is no part of a topic: %j",
    async (key) => {
      const { double, api } = await driven();
      expect(await failure(api.keyValue.set(key, "x"))).toBeInstanceOf(ParameterError);
      expect(await failure(api.keyValue.get(key))).toBeInstanceOf(ParameterError);
      expect(double.requests).toEqual([]);
    },
  );
});

describe("declarative modules", () => {
  it("are listed, and missing ones told apart", async () => {
    const { api } = await driven({ modules: ["http_dyn_map"] });
    expect(await api.modules()).toEqual(["http_dyn_map"]);
    expect(await failure(api.accessLog.get())).toBeInstanceOf(ModuleNotLoadedError);
    expect(await failure(api.split.set({ a: 100 }))).toBeInstanceOf(ModuleNotLoadedError);
  });

  it("switch the access log of a location off and on", async () => {
    const { double, api } = await driven();
    const set = (accessLogOn: boolean) =>
      api.accessLog.change({
        servers: [{ listens: ["0.0.0.0:80"], serverNames: ["_"], locations: [{ location: "/", accessLogOn }] }],
      });
    await set(false);
    expect((await api.accessLog.get()).servers?.[0].locations).toEqual([{ location: "/", accessLogOn: false }]);
    await ask(double.port("0.0.0.0:80"));
    await set(true);
    await ask(double.port("0.0.0.0:80"));
    expect(double.served.map(({ logged }) => logged)).toEqual([false, true]);
  });

  it("split by shares that make 100", async () => {
    const { api } = await driven();
    await api.split.set({ a: 20, b: 80 });
    expect(await api.split.get()).toEqual({ a: 20, b: 80 });
    const error = await failure(api.split.set({ a: 50, b: 60 }));
    expect(error.message).toContain("total percentage should be 100");
  });

  it("count the requests of a location, or not", async () => {
    const { api } = await driven();
    const location = { location: "/", vhost_traffic_status: false };
    await api.vts.change({ servers: [{ listens: ["0.0.0.0:80"], serverNames: ["_"], locations: [location] }] });
    expect((await api.vts.get()).servers?.[0].locations).toEqual([location]);
  });
});

describe("the dynamic upstream API", () => {
  it("takes backends, which requests reach by $proxy_upstream_name", async () => {
    const { double, api } = await driven();
    const backends = closing(new BackendsApi({ origin: double.backendsOrigin, token: DOUBLE_TOKEN }));
    const peer = closing(await httpPeer((_, response) => response.end("posted")));
    expect(await backends.isInitialized()).toBe(false);
    const backend = { name: "shop", endpoints: [{ address: "127.0.0.1", port: String(peer.port) }] };
    expect(await backends.post([backend])).toEqual({ changed: 1, removed: 0, late: [], failures: [] });
    expect(await backends.isInitialized()).toBe(true);
    expect(await backends.list()).toEqual([backend]);
    const body = "set $proxy_upstream_name shop; proxy_pass http://upstream_balancer;";
    await api.locations.add(SITE, { rule: "", name: "/shop", body });
    expect((await ask(double.port("0.0.0.0:80"), { path: "/shop" })).body).toBe("posted");
    await backends.post([]);
    expect((await ask(double.port("0.0.0.0:80"), { path: "/shop" })).status).toBe(503);
  });

  it("says why it takes nothing, and who is not allowed, without the token", async () => {
    const { double } = await driven();
    const backends = closing(new BackendsApi({ origin: double.backendsOrigin, token: DOUBLE_TOKEN }));
    const error = await failure(backends.post([{ name: "", endpoints: [] }]));
    expect(error).toBeInstanceOf(RequestRefusedError);
    expect(error).toMatchObject({ answerCode: "CONFIGURATION_INVALID", mayHaveApplied: false });
    const stranger = closing(new BackendsApi({ origin: double.backendsOrigin, token: "some-secret-token" }));
    const refused = await failure(stranger.post([]));
    expect(refused.status).toBe(401);
    expect(JSON.stringify([refused.message, refused])).not.toContain("some-secret-token");
  });
});

function commonName(port: number, servername: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, servername, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}
