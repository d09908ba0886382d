import { rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { MARKER_HOST } from "../../controller/proxies/opennjet/locations/marker.js";
import { CARRIERS } from "../../controller/proxies/opennjet/parts.js";
import { makeFolder, put, startRun } from "../cli/cli-support.js";
import { ingress, service } from "../cli/objects.js";
import { HOST, namedPeer, shopFolder } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { httpPeer } from "../support/peers.js";
import { noOpenNjet } from "./real-installation.js";
import { OPENNJET, runFolder } from "./real-shop.js";

cleanUpAfterEach();

const CHECKED = `
  annotations:
    njet.org/health-checks: "true"
    njet.org/health-check-path: /healthz
    njet.org/health-check-interval: 200ms
`;

/** Serves what no other object has a host for. */
const OTHERWISE = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: any }
spec:
  ingressClassName: njet
  defaultBackend: { service: { name: two, port: { number: 80 } } }
`;

describe.skipIf(noOpenNjet).each(CARRIERS)("an OpenNJet that is driven with the carrier %s", (carrier) => {
  const DRIVEN = [...OPENNJET, "--carrier", carrier];

  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it("keeps its workers while the endpoints of a service change under load, and no request fails", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const ports = { one: (await namedPeer("first")).port, two: (await namedPeer("second")).port };
    const running = await startRun(folder, ...DRIVEN, "--run-dir", run.path);
    const before = await run.client().state();
    const load = new Load(running.http, HOST);
    for (const [body, port] of [
      ["first", ports.one],
      ["second", ports.two],
      ["first", ports.one],
    ] as const) {
      await load.more(50);
      put(folder, "one.yaml", service("one", "127.0.0.1", port));
      await eventually(() => load.latest === body, 30_000);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    const after = await run.client().state();
    expect([after.master, after.workers.map(({ pid }) => pid)]).toEqual([
      before.master,
      before.workers.map(({ pid }) => pid),
    ]);
  });

  it("leaves out a peer while its health check fails, and takes it back, with the same workers", async () => {
    let healthy = true;
    const peer = await closing(
      await httpPeer((request, response) => {
        response.statusCode = request.url === "/healthz" && !healthy ? 503 : 200;
        response.end("checked");
      }),
    );
    const folder = makeFolder();
    const run = runFolder();
    put(folder, "one.yaml", service("one", "127.0.0.1", peer.port));
    put(
      folder,
      "shop.yaml",
      ingress("shop", HOST, "one").replace("metadata: { name: shop }\n", `metadata:\n  name: shop${CHECKED}`),
    );
    const running = await startRun(folder, ...DRIVEN, "--run-dir", run.path);
    const status = async () => (await ask(running.http, { host: HOST })).status;
    const { workers } = await run.client().state();
    expect(await status()).toBe(200);
    healthy = false;
    await until("the peer is left out", async () => (await status()) === 503);
    healthy = true;
    await until("the peer is back", async () => (await status()) === 200);
    expect((await run.client().state()).workers.map(({ pid }) => pid)).toEqual(workers.map(({ pid }) => pid));
  });

  it("writes the access log to standard output, one JSON line a request, unless there is to be none", async () => {
    const options = DRIVEN.filter((option) => option !== "--no-access-log");
    const folder = await shopFolder();
    const logging = await startRun(folder, ...options);
    await ask(logging.http, { host: HOST, path: "/tea?x=1" });
    await eventually(() => logging.stdout.endsWith("\n"), 30_000);
    expect(JSON.parse(logging.stdout)).toMatchObject({ host: HOST, target: "/tea?x=1", status: 200 });
    // Nobody is kept out of it by the host that the controller asks workers with.
    put(folder, "any.yaml", OTHERWISE);
    const byMarker = () => ask(logging.http, { host: MARKER_HOST.host, path: "/any" });
    await until("it is served for any host", async () => (await byMarker()).body === "two");
    await eventually(() => logging.stdout.includes('"target":"/any"') && logging.stdout.endsWith("\n"), 30_000);
    rmSync(join(folder, "any.yaml"));
    await until("it is served no more", async () => (await byMarker()).status === 404);
    await eventually(
      () =>
        /"target":"\/any","protocol":"HTTP\/1.1","status":404/.test(logging.stdout) && logging.stdout.endsWith("\n"),
      30_000,
    );
    // What the controller itself has asked meanwhile.
    const targets = logging.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { target: string }).target);
    expect(new Set(targets)).toEqual(new Set(["/tea?x=1", "/any"]));
    const silent = await startRun(await shopFolder(), ...DRIVEN);
    expect((await ask(silent.http, { host: HOST, path: "/tea?x=1" })).status).toBe(200);
    silent.process.kill("SIGTERM");
    expect((await silent.ended).status).toBe(0);
    expect(silent.stdout).toBe("");
  });
});
