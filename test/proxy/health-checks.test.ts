import { describe, expect, it } from "vitest";
import { makeFolder, put, startRun } from "../cli/cli-support.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { labelValues, scrape, seriesValue } from "../support/metrics-page.js";
import { httpPeer } from "../support/peers.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const UPSTREAM = "VirtualServer/default/shop/web";

/** A peer that is well or not; it says so to probes, and answers clients all the same. */
async function startPeer() {
  const peer = Object.assign(
    await httpPeer((request, response) => {
      if (request.url === "/healthz") {
        peer.probes++;
        response.writeHead(peer.well ? 200 : 500).end();
        return;
      }
      peer.met++;
      response.end("x");
    }),
    { well: true, probes: 0, met: 0 },
  );
  return closing(peer);
}

function objects(ports: number[], check: string): string {
  const slices = ports.map(
    (port, i) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-${i}, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: ${port} }]
endpoints: [{ addresses: [127.0.0.1] }]
`,
  );
  return `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { ports: [{ port: 80 }] }
${slices.join("")}---
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: { name: shop }
spec:
  host: ${HOST}
  upstreams:
    - { name: web, service: web, port: 80, healthCheck: { enable: true, path: /healthz, interval: 50ms, ${check} } }
  routes:
    - { path: /, action: { pass: web } }
`;
}

async function serve(check: string) {
  const peers = [await startPeer(), await startPeer()];
  const folder = makeFolder();
  put(
    folder,
    "shop.yaml",
    objects(
      peers.map(({ port }) => port),
      check,
    ),
  );
  const running = await startRun(folder, "--no-access-log");
  const state = async (of: string) =>
    seriesValue(await scrape(running.metrics ?? 0), "njet_kic_upstream_peers", { upstream: UPSTREAM, state: of });
  /** Resolves when so many peers are in a state. */
  const until = async (count: number, of: string) => {
    const deadline = performance.now() + 10_000;
    while ((await state(of)) !== count) {
      if (performance.now() > deadline) throw new Error(`never ${count} ${of}: ${running.stderr.slice(-1000)}`);
    }
  };
  return { peers, running, folder, until };
}

describe("under load, a peer that its checks find down", () => {
  it("gets nothing after `fails` probes and takes part again after `passes`, and no client sees an error", async () => {
    const { peers, running, until } = await serve("fails: 2, passes: 2");
    await until(2, "up");
    const load = new Load(running.http, HOST);
    await load.more(50);
    expect(peers[0].met).toBeGreaterThan(0);

    const probes = peers[0].probes;
    peers[0].well = false;
    await until(1, "down");
    expect(peers[0].probes - probes).toBeGreaterThanOrEqual(2);
    await load.more(8);
    const met = peers[0].met;
    await load.more(100);
    expect(peers[0].met).toBe(met);

    peers[0].well = true;
    await until(2, "up");
    await load.more(50);
    expect(peers[0].met).toBeGreaterThan(met);
    await load.stop();
    expect(load.failures).toEqual([]);
    const families = await scrape(running.metrics ?? 0);
    const transitions = (from: string, to: string) =>
      seriesValue(families, "njet_kic_health_transitions_total", { upstream: UPSTREAM, from, to });
    expect([transitions("up", "down"), transitions("down", "up")]).toEqual([1, 1]);
    expect(labelValues(families, "njet_kic_health_checked_peers", "state")).toContain("down");
  });

  it("is answered for with 503 when it was the last one, and with all peers in panic", async () => {
    for (const panic of [false, true]) {
      const { peers, running, until } = await serve(`panic: ${panic}`);
      await until(2, "up");
      for (const peer of peers) peer.well = false;
      await until(2, "down");
      expect((await ask(running.http, { host: HOST })).status).toBe(panic ? 200 : 503);
    }
  });

  it("gets no traffic before its first pass where that is mandatory", async () => {
    const { peers, running, folder, until } = await serve("mandatory: true, fails: 1000, statusMatch: '200'");
    await until(2, "up");
    expect((await ask(running.http, { host: HOST })).status).toBe(200);
    const fresh = await startPeer();
    fresh.well = false;
    put(
      folder,
      "shop.yaml",
      objects([...peers.map(({ port }) => port), fresh.port], "mandatory: true, fails: 1000, statusMatch: '200'"),
    );
    await until(1, "unchecked");
    await eventually(() => fresh.probes > 2);
    for (let i = 0; i < 9; i++) expect((await ask(running.http, { host: HOST })).status).toBe(200);
    expect(fresh.met).toBe(0);
    fresh.well = true;
    await until(3, "up");
    for (let i = 0; i < 9; i++) await ask(running.http, { host: HOST });
    expect(fresh.met).toBeGreaterThan(0);
  });
});
