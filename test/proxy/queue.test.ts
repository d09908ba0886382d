import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { echo, httpPeer, type Peer } from "../support/peers.js";
import { type Balancing, keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

/** A peer whose answers are given by hand; the targets of the requests under way are listed. */
class SlowPeer {
  readonly pending = new Map<string, ServerResponse>();
  private constructor(readonly peer: Peer) {}

  static async start(): Promise<SlowPeer> {
    const made: SlowPeer = new SlowPeer(
      closing(await httpPeer((request, response) => made.pending.set(request.url ?? "", response))),
    );
    return made;
  }

  get targets(): string[] {
    return [...this.pending.keys()];
  }

  /** Waits for a request and answers it. */
  async finish(target: string): Promise<void> {
    await eventually(() => this.pending.has(target));
    this.pending.get(target)?.end(`answer to ${target}`);
    this.pending.delete(target);
  }
}

const ONE_AT_A_TIME: Balancing = { limits: { maxConns: 1 }, queue: { size: 2, timeout: 60_000 } };

async function serve(ports: number[], balancing = ONE_AT_A_TIME) {
  const table = makeRoutingTable();
  const steps = [upstreamStep("web", ports, {}, balancing), proxyHost(HOST, "web")];
  const started = await startProxy(steps, { table });
  return {
    ...started,
    held: () => table.peersOf(keyOf("web")).map(({ conns }) => conns),
  };
}

describe("where every peer has as many requests as it may", () => {
  it("a request is answered 502 at once without a queue", async () => {
    const slow = await SlowPeer.start();
    const { http } = await serve([slow.peer.port], { limits: { maxConns: 1 } });
    const first = ask(http, { path: "/1" });
    await eventually(() => slow.targets.length === 1);
    expect((await ask(http, { path: "/2" })).status).toBe(502);
    await slow.finish("/1");
    expect((await first).status).toBe(200);
    const third = ask(http, { path: "/3" });
    await slow.finish("/3");
    expect((await third).status).toBe(200);
  });

  it("requests wait in the queue, and are let through in the order of their arrival", async () => {
    const slow = await SlowPeer.start();
    const { http, proxy, held } = await serve([slow.peer.port]);
    const order: string[] = [];
    const send = async (path: string, waiting: number) => {
      const answer = ask(http, { path }).then(({ body }) => order.push(body));
      await eventually(() => proxy.counts().waiting === waiting);
      return { answer };
    };
    const sent = [await send("/1", 0)];
    await eventually(() => slow.targets.length === 1);
    sent.push(await send("/2", 1), await send("/3", 2));
    for (const path of ["/1", "/2", "/3"]) {
      await eventually(() => slow.targets.length === 1);
      expect(slow.targets).toEqual([path]);
      await slow.finish(path);
    }
    await Promise.all(sent.map(({ answer }) => answer));
    expect(order).toEqual(["answer to /1", "answer to /2", "answer to /3"]);
    await eventually(() => held()[0] === 0);
  });

  it("a request for which the queue has no place is answered 502", async () => {
    const slow = await SlowPeer.start();
    const { http, proxy } = await serve([slow.peer.port]);
    const answers = [ask(http, { path: "/1" })];
    await eventually(() => slow.targets.length === 1);
    for (const [i, path] of ["/2", "/3"].entries()) {
      answers.push(ask(http, { path }));
      await eventually(() => proxy.counts().waiting === i + 1);
    }
    expect((await ask(http, { path: "/4" })).status).toBe(502);
    for (const path of ["/1", "/2", "/3"]) await slow.finish(path);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it("a request that waits for too long is answered 502, and its place in the queue is free", async () => {
    const slow = await SlowPeer.start();
    const { http, proxy, log } = await serve([slow.peer.port], { ...ONE_AT_A_TIME, queue: { size: 1, timeout: 50 } });
    const first = ask(http, { path: "/1" });
    await eventually(() => slow.targets.length === 1);
    expect((await ask(http, { path: "/2" })).status).toBe(502);
    expect(proxy.counts().waiting).toBe(0);
    expect(log.at(-1)).toMatchObject({ status: 502, attempts: 0, upstream: "default/web:80" });
    await slow.finish("/1");
    expect((await first).status).toBe(200);
  });

  it("a client that leaves gives up its place, and the next one moves up", async () => {
    const slow = await SlowPeer.start();
    const { http, proxy } = await serve([slow.peer.port]);
    const first = ask(http, { path: "/1" });
    await eventually(() => slow.targets.length === 1);
    const leaves = await RawClient.plain(http);
    leaves.write(`GET /2 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await eventually(() => proxy.counts().waiting === 1);
    const third = ask(http, { path: "/3" });
    await eventually(() => proxy.counts().waiting === 2);
    leaves.destroy();
    await eventually(() => proxy.counts().waiting === 1);
    await slow.finish("/1");
    await slow.finish("/3");
    expect((await Promise.all([first, third])).map(({ status }) => status)).toEqual([200, 200]);
    expect(slow.targets).toEqual([]);
  });

  it("a request with a body waits with it, and both arrive whole", async () => {
    const slow = await SlowPeer.start();
    const other = closing(await httpPeer(echo));
    const { http, proxy } = await serve([slow.peer.port]);
    const first = ask(http, { path: "/1" });
    await eventually(() => slow.targets.length === 1);
    const body = "b".repeat(300_000);
    const second = ask(http, { path: "/2", method: "POST", body });
    await eventually(() => proxy.counts().waiting === 1);
    // Another peer comes, and it is asked at once.
    await proxy.apply(planOf(upstreamStep("web", [slow.peer.port, other.port], {}, ONE_AT_A_TIME)));
    expect(JSON.parse((await second).body).body).toBe(body);
    await slow.finish("/1");
    expect((await first).status).toBe(200);
  });

  it("requests that wait are answered when their upstream loses its peers, or is removed", async () => {
    for (const step of [
      upstreamStep("web", [], {}, ONE_AT_A_TIME),
      { step: "remove-upstream", key: keyOf("web") } as const,
    ]) {
      const slow = await SlowPeer.start();
      const { http, proxy } = await serve([slow.peer.port]);
      const first = ask(http, { path: "/1" });
      await eventually(() => slow.targets.length === 1);
      const second = ask(http, { path: "/2" });
      await eventually(() => proxy.counts().waiting === 1);
      await proxy.apply(planOf(step));
      expect((await second).status).toBe(503);
      expect(proxy.counts().waiting).toBe(0);
      await slow.finish("/1");
      expect((await first).status).toBe(200);
    }
  });

  it("requests that wait are answered 502 when the queue is taken away", async () => {
    const slow = await SlowPeer.start();
    const { http, proxy } = await serve([slow.peer.port]);
    const first = ask(http, { path: "/1" });
    await eventually(() => slow.targets.length === 1);
    const second = ask(http, { path: "/2" });
    await eventually(() => proxy.counts().waiting === 1);
    await proxy.apply(planOf(upstreamStep("web", [slow.peer.port], {}, { limits: { maxConns: 1 } })));
    expect((await second).status).toBe(502);
    await slow.finish("/1");
    expect((await first).status).toBe(200);
  });

  it("requests that wait go to a peer that comes up", async () => {
    const slow = await SlowPeer.start();
    const fresh = closing(await httpPeer((_, response) => response.end("fresh")));
    const { http, proxy } = await serve([slow.peer.port, fresh.port]);
    const state = (is: "down" | "up") =>
      proxy.setPeerStates([{ upstream: keyOf("web"), address: "127.0.0.1", port: fresh.port, state: is }]);
    state("down");
    const first = ask(http, { path: "/1" });
    await eventually(() => slow.targets.length === 1);
    const second = ask(http, { path: "/2" });
    await eventually(() => proxy.counts().waiting === 1);
    state("up");
    expect((await second).body).toBe("fresh");
    await slow.finish("/1");
    await first;
  });

  it("a request goes by the rules that stand when its turn comes", async () => {
    const slow = await SlowPeer.start();
    const other = closing(await httpPeer((_, response) => response.end("other")));
    const { http, proxy } = await serve([slow.peer.port]);
    const first = ask(http, { path: "/1" });
    await eventually(() => slow.targets.length === 1);
    const second = ask(http, { path: "/2" });
    await eventually(() => proxy.counts().waiting === 1);
    await proxy.apply(planOf(upstreamStep("other", [other.port]), proxyHost(HOST, "other")));
    await slow.finish("/1");
    expect((await second).body).toBe("other");
    expect((await first).status).toBe(200);
  });

  it("a thousand requests pass two places, and nothing is left behind", async () => {
    const peers = [
      closing(await httpPeer((_, response) => setImmediate(() => response.end("x")))),
      closing(await httpPeer((_, response) => setImmediate(() => response.end("x")))),
    ];
    let most = 0;
    const balancing: Balancing = { limits: { maxConns: 1 }, queue: { size: 1000, timeout: 60_000 } };
    const { http, proxy, held } = await serve(
      peers.map(({ port }) => port),
      balancing,
    );
    const answers = Array.from({ length: 1000 }, async () => {
      const { status } = await ask(http);
      most = Math.max(most, ...held());
      return status;
    });
    const statuses = await Promise.all(answers);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    expect(most).toBe(1);
    await eventually(() => proxy.counts().exchanges === 0);
    expect(held()).toEqual([0, 0]);
    expect(proxy.counts().waiting).toBe(0);
  });
});
