import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

/** A peer whose answers are given by hand; one request at a time is let through to it. */
async function serve(queue?: { size: number; timeout: number }) {
  const pending = new Map<string, ServerResponse>();
  const seen: string[] = [];
  const peer = closing(
    await httpPeer((request, response) => {
      seen.push(request.url ?? "");
      pending.set(request.url ?? "", response);
    }),
  );
  const nginx = await RequestNginx.start([
    upstreamStep("web", [peer.port], {}, { limits: { maxConns: 1 }, queue }),
    proxyHost(HOST, "web"),
  ]);
  /** Waits for a request and answers it. */
  const finish = async (path: string) => {
    await eventually(() => pending.has(path));
    pending.get(path)?.end(path);
    pending.delete(path);
  };
  /** Resolves once so many requests wait. */
  const waiting = async (count: number) => {
    for (;;) {
      const counters = (await nginx.client.counters()) as { workers: { queues: { length: number }[] }[] };
      if ((counters.workers[0].queues[0]?.length ?? 0) === count) return;
    }
  };
  return { nginx, http: nginx.http, peer, seen, finish, waiting };
}

describe.skipIf(noNginx)("where every peer of NGINX has as many requests as it may", () => {
  it("a request is answered 502 at once without a queue", async () => {
    const { http, finish, seen } = await serve();
    const first = ask(http, { path: "/1" });
    await eventually(() => seen.length === 1);
    expect((await ask(http, { path: "/2" })).status).toBe(502);
    await finish("/1");
    expect((await first).status).toBe(200);
  });

  it("requests wait, pass in the order of their arrival, and one for which there is no place is answered 502", async () => {
    const { http, finish, seen, waiting } = await serve({ size: 2, timeout: 60_000 });
    const answers = [ask(http, { path: "/1" })];
    await eventually(() => seen.length === 1);
    answers.push(ask(http, { path: "/2" }));
    await waiting(1);
    answers.push(ask(http, { path: "/3", method: "POST", body: "x" }));
    await waiting(2);
    expect((await ask(http, { path: "/4" })).status).toBe(502);
    for (const path of ["/1", "/2", "/3"]) await finish(path);
    expect((await Promise.all(answers)).map(({ body }) => body)).toEqual(["/1", "/2", "/3"]);
    expect(seen).toEqual(["/1", "/2", "/3"]);
    await waiting(0);
  });

  it("a request that waits for too long is answered 502", async () => {
    const { http, finish, seen } = await serve({ size: 2, timeout: 100 });
    const first = ask(http, { path: "/1" });
    await eventually(() => seen.length === 1);
    expect((await ask(http, { path: "/2" })).status).toBe(502);
    await finish("/1");
    expect((await first).status).toBe(200);
  });

  it("a client that leaves gives up its place, and the next one moves up", async () => {
    const { http, finish, seen, waiting } = await serve({ size: 2, timeout: 60_000 });
    const first = ask(http, { path: "/1" });
    await eventually(() => seen.length === 1);
    const leaving = await RawClient.plain(http);
    leaving.write(`GET /2 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await waiting(1);
    const third = ask(http, { path: "/3" });
    await waiting(2);
    leaving.destroy();
    await waiting(1);
    await finish("/1");
    await finish("/3");
    expect([(await first).body, (await third).body]).toEqual(["/1", "/3"]);
    expect(seen).toEqual(["/1", "/3"]);
  });

  it("requests that wait are answered when their upstream loses its peers, or its queue", async () => {
    const { nginx, http, peer, finish, seen, waiting } = await serve({ size: 2, timeout: 60_000 });
    const first = ask(http, { path: "/1" });
    await eventually(() => seen.length === 1);
    const second = ask(http, { path: "/2" });
    await waiting(1);
    await nginx.apply(upstreamStep("web", [peer.port], {}, { limits: { maxConns: 1 } }));
    expect((await second).status).toBe(502);
    await nginx.apply(
      upstreamStep("web", [peer.port], {}, { limits: { maxConns: 1 }, queue: { size: 2, timeout: 60_000 } }),
    );
    const third = ask(http, { path: "/3" });
    await waiting(1);
    await nginx.apply(upstreamStep("web", [], {}, { queue: { size: 2, timeout: 60_000 } }));
    expect((await third).status).toBe(503);
    await finish("/1");
    expect((await first).status).toBe(200);
  });
});
