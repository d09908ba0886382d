import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { closedPort, httpPeer } from "../support/peers.js";
import { keyOf, proxyHost, upstreamStep } from "../support/plans.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

interface Counts {
  received: number;
  sent: number;
  codes: number[];
  requests: { buckets: number[]; seconds: number };
  responses?: { buckets: number[]; seconds: number };
}

interface Counters {
  workers: {
    requests: number;
    hosts: Record<string, Counts>;
    gone: Counts;
    peers: Record<string, Record<string, Counts>>;
  }[];
}

const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);

describe.skipIf(noNginx)("what NGINX counts", () => {
  async function counters(nginx: RequestNginx): Promise<Counters> {
    return (await nginx.client.counters()) as Counters;
  }

  /** Codes of a host, summed over the workers. */
  function codesOf({ workers }: Counters, host: string): number[] {
    return [0, 1, 2, 3, 4].map((i) => sum(workers.map(({ hosts }) => hosts[host]?.codes[i] ?? 0)));
  }

  it("are requests by host pattern, never by what a client writes, from all workers", async () => {
    const peer = closing(await httpPeer((_request, response) => response.end("hello")));
    const nginx = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")], { workers: 2 });
    const before = codesOf(await counters(nginx), "_")[3];
    for (let i = 0; i < 12; i++) expect((await ask(nginx.http)).status).toBe(200);
    for (let i = 0; i < 5; i++) expect((await ask(nginx.http, { host: `evil${i}.example.com` })).status).toBe(404);
    await eventually(() => nginx.accessLog().filter(({ host }) => host === HOST).length === 12);
    const found = await counters(nginx);
    expect(found.workers).toHaveLength(2);
    expect(codesOf(found, HOST)).toEqual([0, 12, 0, 0, 0]);
    expect(codesOf(found, "_")[3] - before).toBe(5);
    for (const { hosts } of found.workers) expect(Object.keys(hosts).sort()).toEqual(hosts[HOST] ? ["_", HOST] : ["_"]);
    const own = found.workers.flatMap(({ hosts }) => hosts[HOST] ?? []);
    expect(sum(own.map(({ requests }) => sum(requests.buckets)))).toBe(12);
    expect(sum(own.map(({ received }) => received))).toBeGreaterThan(12 * 20);
    expect(sum(own.map(({ sent }) => sent))).toBeGreaterThan(12 * 100);
  });

  it("are attempts by peer, each with its own status, and the request for the last one", async () => {
    const gone = await closedPort();
    const peer = closing(await httpPeer((_request, response) => response.end("hello")));
    const nginx = await RequestNginx.start([
      upstreamStep("web", [gone, peer.port], {}, { limits: { maxFails: 0 } }),
      proxyHost(HOST, "web"),
    ]);
    for (let i = 0; i < 4; i++) expect((await ask(nginx.http)).status).toBe(200);
    await nginx.logged(HOST, 4);
    const [{ peers, hosts }] = (await counters(nginx)).workers;
    const of = peers[keyOf("web")];
    expect(of[`127.0.0.1:${peer.port}`].codes).toEqual([0, 4, 0, 0, 0]);
    expect(of[`127.0.0.1:${gone}`].codes).toEqual([0, 0, 0, 0, 2]);
    expect(sum(of[`127.0.0.1:${gone}`].responses?.buckets ?? [])).toBe(2);
    expect(hosts[HOST].codes).toEqual([0, 4, 0, 0, 0]);
  });

  it("is the time that a peer took to the millisecond, as the access log has it", async () => {
    // Times of whole seconds, and ones with zeros behind the point, are the ones that could be read wrongly.
    const delays = [0, 20, 1_030];
    const peer = closing(
      await httpPeer(
        (request, response) => void setTimeout(() => response.end("hello"), Number(request.url?.slice(1))),
      ),
    );
    const nginx = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    for (const delay of delays) expect((await ask(nginx.http, { path: `/${delay}` })).status).toBe(200);
    const logged = (await nginx.logged(HOST, delays.length)).map((line) => Number(line.upstreamResponseSeconds));
    const [{ peers }] = (await counters(nginx)).workers;
    const { responses } = peers[keyOf("web")][`127.0.0.1:${peer.port}`];
    expect(responses?.seconds).toBeCloseTo(sum(logged), 4);
  });

  it("is that time also where the body comes long after the head of the answer", async () => {
    const peer = closing(
      await httpPeer((_request, response) => {
        response.flushHeaders();
        setTimeout(() => response.end("hello"), 300);
      }),
    );
    const nginx = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    expect((await ask(nginx.http)).status).toBe(200);
    const [line] = await nginx.logged(HOST, 1);
    expect(Number(line.upstreamResponseSeconds)).toBeGreaterThan(Number(line.upstreamHeaderSeconds));
    const [{ peers }] = (await counters(nginx)).workers;
    const { responses } = peers[keyOf("web")][`127.0.0.1:${peer.port}`];
    expect(responses?.seconds).toBeCloseTo(Number(line.upstreamResponseSeconds), 4);
  });

  it("goes with its host or peer, and the totals never go down", async () => {
    const peer = closing(await httpPeer((_request, response) => response.end("hello")));
    const nginx = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    await ask(nginx.http);
    await nginx.logged(HOST, 1);
    await nginx.apply(
      { step: "remove-host", pattern: { kind: "exact", host: HOST } },
      { step: "remove-upstream", key: keyOf("web") },
    );
    const [{ hosts, gone, peers }] = (await counters(nginx)).workers;
    expect(hosts[HOST]).toBeUndefined();
    expect(gone.codes).toEqual([0, 1, 0, 0, 0]);
    expect(peers).toEqual({});
  });
});

describe.skipIf(noNginx)("a location of somebody else that sets $proxy_upstream_name", () => {
  const withLocation = (text: string) =>
    text.replace(
      "location / {",
      `location /by-name/ { set $proxy_upstream_name "$arg_name"; proxy_pass http://upstream_balancer; }\n location / {`,
    );

  it("gets that upstream, another peer where one fails, and 503 for a name that nobody has", async () => {
    const gone = await closedPort();
    const peer = closing(await httpPeer((request, response) => response.end(request.url)));
    const steps = [upstreamStep("web", [gone, peer.port], {}, { limits: { maxFails: 0 } })];
    const { http } = await RequestNginx.start(steps, { edit: withLocation });
    const path = `/by-name/x?name=${keyOf("web")}`;
    for (let i = 0; i < 4; i++) expect(await ask(http, { path })).toMatchObject({ status: 200, body: path });
    expect((await ask(http, { path: "/by-name/x?name=nobody" })).status).toBe(503);
    expect((await ask(http, { path: "/by-name/x" })).status).toBe(503);
  });
});
