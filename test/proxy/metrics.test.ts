import { describe, expect, it } from "vitest";
import { silentLogger } from "../../controller/observability/logger.js";
import { MetricsPage } from "../../controller/observability/metrics-page.js";
import { MetricsServer } from "../../controller/observability/metrics-server.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { cleanUpAfterEach, closing, eventually, type Started, startProxy } from "../support/harness.js";
import { ask, keepAliveAgent } from "../support/http-client.js";
import { type Family, labelValues, scrape, seriesValue } from "../support/metrics-page.js";
import { closedPort, httpPeer } from "../support/peers.js";
import { actionHost, keyOf, planOf, proxyHost, rulesOf, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const LIMIT = 10_000;

/** The metrics of a proxy, scraped from a real port. */
async function metricsOf({ proxy }: Started, prefix = "njet", limit = LIMIT) {
  const page = new MetricsPage(proxy.metrics(prefix, "1.2.3"), limit);
  const server = closing(new MetricsServer({ page, logger: silentLogger, ready: () => true }));
  const { port } = await server.listen("127.0.0.1", 0);
  return () => scrape(port);
}

/** A host that the proxy answers itself. */
function answering(host: string, status = 200): PlanStep {
  return actionHost(host, { kind: "return", status, contentType: "text/plain", body: ["x"] });
}

function requests(families: Map<string, Family>, host: string, code: string): number | undefined {
  return seriesValue(families, "njet_vts_server_requests_total", { host, code });
}

/** Waits until the proxy is done with all requests: what the client has seen the end of may not be counted yet. */
function idle({ proxy }: Started): Promise<void> {
  return eventually(() => proxy.counts().exchanges === 0);
}

describe("metrics of traffic", () => {
  it("have the names, types and labels of the VTS module", async () => {
    const peer = closing(await httpPeer((_, response) => response.end("x")));
    const started = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    await ask(started.http);
    await idle(started);
    const families = await (await metricsOf(started))();
    const shape = [...families].map(([name, { type, samples }]) => {
      return `${name} ${type} ${Object.keys(samples[0]?.labels ?? {}).join(",")}`;
    });
    expect(shape).toEqual([
      "njet_vts_info gauge hostname,module_version,version",
      "njet_vts_start_time_seconds gauge ",
      "njet_vts_main_connections gauge status",
      "njet_vts_server_bytes_total counter host,direction",
      "njet_vts_server_requests_total counter host,code",
      "njet_vts_server_request_seconds gauge host",
      "njet_vts_server_request_seconds_total counter host",
      "njet_vts_server_request_duration_seconds histogram host,le",
      "njet_vts_upstream_bytes_total counter upstream,backend,direction",
      "njet_vts_upstream_requests_total counter upstream,backend,code",
      "njet_vts_upstream_request_seconds gauge upstream,backend",
      "njet_vts_upstream_request_seconds_total counter upstream,backend",
      "njet_vts_upstream_request_duration_seconds histogram upstream,backend,le",
      "njet_vts_upstream_response_seconds_total counter upstream,backend",
      "njet_vts_upstream_response_duration_seconds histogram upstream,backend,le",
      "njet_vts_upstream_response_seconds gauge upstream,backend",
      "njet_kic_upstream_peers gauge upstream,state",
      "njet_kic_upstream_peers_out gauge upstream",
      "njet_kic_queue_length gauge ",
      "njet_kic_queue_timeouts_total counter ",
      "njet_kic_queue_overflows_total counter ",
      "njet_kic_metrics_series_dropped gauge ",
    ]);
    expect(labelValues(families, "njet_vts_info", "version")).toEqual(["1.2.3"]);
  });

  it("take the prefix of dashboards for NGINX where that is asked for", async () => {
    const families = await (await metricsOf(await startProxy([]), "nginx"))();
    expect([...families.keys()].filter((name) => name.startsWith("njet_vts"))).toEqual([]);
    expect(families.has("nginx_vts_server_requests_total")).toBe(true);
  });

  it("count requests by host and first digit of the status, and sum them up", async () => {
    const started = await startProxy([
      answering(HOST),
      answering("gone.example.com", 410),
      actionHost("moved.example.com", { kind: "redirect", status: 302, location: ["http://a.example.com/"] }),
    ]);
    const hosts = [HOST, HOST, "gone.example.com", "moved.example.com", "unknown.example.com"];
    for (const host of hosts) await ask(started.http, { host });
    await idle(started);
    const families = await (await metricsOf(started))();
    expect(requests(families, HOST, "2xx")).toBe(2);
    expect(requests(families, "gone.example.com", "4xx")).toBe(1);
    expect(requests(families, "moved.example.com", "3xx")).toBe(1);
    expect(requests(families, "_", "4xx")).toBe(1);
    expect([requests(families, "*", "2xx"), requests(families, "*", "3xx"), requests(families, "*", "4xx")]).toEqual([
      2, 1, 2,
    ]);
    expect(seriesValue(families, "njet_vts_server_request_duration_seconds_count", { host: "*" })).toBe(5);
  });

  it("make no series out of the hosts that clients invent", async () => {
    const rules = rulesOf("", { kind: "return", status: 200, contentType: "text/plain", body: ["x"] });
    const started = await startProxy([
      { step: "set-host", rules: { ...rules, pattern: { kind: "wildcard", suffix: "example.com", labels: "any" } } },
    ]);
    for (let i = 0; i < 20; i++) await ask(started.http, { host: `h${i}.example.com` });
    for (let i = 0; i < 20; i++) await ask(started.http, { host: `h${i}.example.net` });
    await idle(started);
    const families = await (await metricsOf(started))();
    expect(labelValues(families, "njet_vts_server_requests_total", "host")).toEqual(["_", "*.example.com", "*"]);
    expect(requests(families, "*.example.com", "2xx")).toBe(20);
  });

  it("forget a host that is removed, while the sum keeps what it had", async () => {
    const started = await startProxy([answering(HOST)]);
    const metrics = await metricsOf(started);
    await ask(started.http);
    await idle(started);
    expect(requests(await metrics(), HOST, "2xx")).toBe(1);
    await started.proxy.apply(planOf({ step: "remove-host", pattern: { kind: "exact", host: HOST } }));
    const families = await metrics();
    expect(labelValues(families, "njet_vts_server_requests_total", "host")).toEqual(["_", "*"]);
    expect(requests(families, "*", "2xx")).toBe(1);
  });

  it("count the bytes of heads and bodies on both ways, for each request its own", async () => {
    const peer = closing(
      await httpPeer((request, response) => request.resume().on("end", () => response.end("y".repeat(5000)))),
    );
    const started = await startProxy([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web"),
      answering("b.example.com"),
    ]);
    const client = await RawClient.plain(started.http);
    const first = `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3000\r\n\r\n${"z".repeat(3000)}`;
    client.write(first);
    const answer = await client.until((received) => received.endsWith("y") || received.endsWith("0\r\n\r\n"));
    const second = "GET / HTTP/1.1\r\nHost: b.example.com\r\nConnection: close\r\n\r\n";
    client.write(second);
    const both = await client.end();
    await idle(started);
    const families = await (await metricsOf(started))();
    const bytes = (host: string, direction: string) =>
      seriesValue(families, "njet_vts_server_bytes_total", { host, direction });
    expect([bytes(HOST, "in"), bytes(HOST, "out")]).toEqual([first.length, answer.length]);
    expect([bytes("b.example.com", "in"), bytes("b.example.com", "out")]).toEqual([
      second.length,
      both.length - answer.length,
    ]);
    const labels = { upstream: keyOf("web"), backend: `127.0.0.1:${peer.port}` };
    expect(seriesValue(families, "njet_vts_upstream_bytes_total", { ...labels, direction: "in" })).toBe(first.length);
  });

  it("count the text of a TLS connection, not its cipher text", async () => {
    const started = await startProxy([answering(HOST)]);
    const client = await RawClient.tls(started.https, { servername: HOST });
    const sent = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`;
    client.write(sent);
    const received = await client.end();
    await idle(started);
    const families = await (await metricsOf(started))();
    const bytes = (direction: string) =>
      seriesValue(families, "njet_vts_server_bytes_total", { host: HOST, direction });
    expect([bytes("in"), bytes("out")]).toEqual([sent.length, received.length]);
  });

  it("count each attempt for its peer, and the request for the last one", async () => {
    const peer = closing(await httpPeer((_, response) => response.end("x")));
    const dead = await closedPort();
    const started = await startProxy([
      upstreamStep("web", [dead, peer.port], { nextUpstream: ["error"] }),
      proxyHost(HOST, "web"),
    ]);
    for (let i = 0; i < 10; i++) expect((await ask(started.http)).status).toBe(200);
    await idle(started);
    const families = await (await metricsOf(started))();
    const value = (name: string, port: number, labels: Record<string, string> = {}) =>
      seriesValue(families, `njet_vts_upstream_${name}`, {
        upstream: keyOf("web"),
        backend: `127.0.0.1:${port}`,
        ...labels,
      });
    expect(value("requests_total", peer.port, { code: "2xx" })).toBe(10);
    const failed = value("requests_total", dead, { code: "5xx" }) ?? 0;
    expect(failed).toBeGreaterThan(0);
    expect(value("response_duration_seconds_count", dead)).toBe(failed);
    expect(value("request_duration_seconds_count", dead)).toBe(0);
    expect(value("request_duration_seconds_count", peer.port)).toBe(10);
  });

  it("count a client that leaves before its answer as 499", async () => {
    const peer = closing(await httpPeer(() => undefined));
    const started = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.plain(started.http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await eventually(() => started.proxy.counts().exchanges === 1);
    client.destroy();
    await idle(started);
    const families = await (await metricsOf(started))();
    expect(requests(families, HOST, "4xx")).toBe(1);
    const labels = { upstream: keyOf("web"), backend: `127.0.0.1:${peer.port}`, code: "4xx" };
    expect(seriesValue(families, "njet_vts_upstream_requests_total", labels)).toBe(1);
  });

  it("forget a peer that left its upstream, and keep the counts of one that stays", async () => {
    const [stays, leaves] = [
      closing(await httpPeer((_, response) => response.end("x"))),
      closing(await httpPeer((_, response) => response.end("x"))),
    ];
    const started = await startProxy([upstreamStep("web", [stays.port, leaves.port]), proxyHost(HOST, "web")]);
    const metrics = await metricsOf(started);
    for (let i = 0; i < 4; i++) await ask(started.http);
    await idle(started);
    await started.proxy.apply(planOf(upstreamStep("web", [stays.port])));
    const families = await metrics();
    expect(labelValues(families, "njet_vts_upstream_requests_total", "backend")).toEqual([`127.0.0.1:${stays.port}`]);
    const labels = { upstream: keyOf("web"), backend: `127.0.0.1:${stays.port}`, code: "2xx" };
    expect(seriesValue(families, "njet_vts_upstream_requests_total", labels)).toBe(2);
  });

  it("show the peers of an upstream by state, and those that are out by failures", async () => {
    const good = closing(await httpPeer((_, response) => response.end("x")));
    const [dead, down] = [await closedPort(), await closedPort()];
    const limits = { maxFails: 1, failTimeout: 10_000 };
    const started = await startProxy([
      upstreamStep("web", [good.port, dead, down], {}, { limits }),
      proxyHost(HOST, "web"),
    ]);
    const change = { upstream: keyOf("web"), address: "127.0.0.1" };
    started.proxy.setPeerStates([
      { ...change, port: good.port, state: "up" },
      { ...change, port: down, state: "down" },
    ]);
    for (let i = 0; i < 4; i++) await ask(started.http);
    const families = await (await metricsOf(started))();
    const peers = (state: string) =>
      seriesValue(families, "njet_kic_upstream_peers", { upstream: keyOf("web"), state });
    expect(["unchecked", "up", "down", "draining"].map(peers)).toEqual([1, 1, 1, 0]);
    expect(seriesValue(families, "njet_kic_upstream_peers_out", { upstream: keyOf("web") })).toBe(1);
  });

  it("show the queue before an upstream, who waited in vain, and who found no place in it", async () => {
    const peer = closing(await httpPeer(() => undefined));
    const web = (timeout: number) =>
      upstreamStep("web", [peer.port], {}, { limits: { maxConns: 1 }, queue: { size: 1, timeout } });
    const started = await startProxy([web(60_000), proxyHost(HOST, "web")]);
    const { http, proxy } = started;
    const clients = [await RawClient.plain(http), await RawClient.plain(http)];
    for (const [i, client] of clients.entries()) {
      client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
      await eventually(() => proxy.counts().exchanges === i + 1);
    }
    const metrics = await metricsOf(started);
    const queue = async (name: string) =>
      seriesValue(await metrics(), `njet_kic_queue_${name}`, { upstream: keyOf("web") });
    expect(await queue("length")).toBe(1);
    expect((await ask(http)).status).toBe(502);
    expect(await queue("overflows_total")).toBe(1);
    clients[1].destroy();
    await eventually(() => proxy.counts().waiting === 0);
    await proxy.apply(planOf(web(20)));
    expect((await ask(http)).status).toBe(502);
    expect(await queue("timeouts_total")).toBe(1);
    clients[0].destroy();
  });

  it("show connections as they are: idle, in a head, with a request", async () => {
    const peer = closing(await httpPeer((request, response) => (request.url === "/" ? response.end("x") : undefined)));
    const started = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const agent = keepAliveAgent();
    await ask(started.http, { agent });
    const [reading, writing] = [await RawClient.plain(started.http), await RawClient.plain(started.http)];
    reading.write("GET / HTTP/1.1\r\nHo");
    writing.write(`GET /hangs HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    const metrics = await metricsOf(started);
    const connections = async () => {
      const families = await metrics();
      const status = (name: string) => seriesValue(families, "njet_vts_main_connections", { status: name });
      return ["accepted", "handled", "requests", "active", "reading", "writing", "waiting"].map(status);
    };
    let found: unknown[] = [];
    for (let i = 0; i < 400 && JSON.stringify(found) !== "[3,3,2,3,1,1,1]"; i++) found = await connections();
    expect(found).toEqual([3, 3, 2, 3, 1, 1, 1]);
    agent.destroy();
    reading.destroy();
    writing.destroy();
  });

  it("keep to the limit of series, and say how many are left out", async () => {
    const hosts = Array.from({ length: 30 }, (_, i) => `h${i}.example.com`);
    const started = await startProxy(hosts.map((host) => answering(host)));
    for (const host of hosts) await ask(started.http, { host });
    await idle(started);
    const families = await (await metricsOf(started, "njet", 100))();
    expect(labelValues(families, "njet_vts_server_requests_total", "host")).toHaveLength(6);
    expect(seriesValue(families, "njet_kic_metrics_series_dropped")).toBe(26 * 20);
    expect(requests(families, "*", "2xx")).toBe(30);
  });

  it("are not counted where that is switched off", async () => {
    const { proxy } = await startProxy([], { metrics: false });
    expect(proxy.metrics("njet", "1.2.3")).toEqual([]);
  });
});
