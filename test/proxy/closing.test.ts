import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../controller/observability/logger.js";
import { EmbeddedProxy } from "../../controller/proxies/embedded/embedded-proxy.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { actionHost, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

/** A peer whose answers begin at once and end when the test says so. */
async function slowPeer() {
  const finish: (() => void)[] = [];
  const peer = closing(
    await httpPeer((request, response) => {
      if (request.url === "/headless") finish.push(() => response.end("whole"));
      else {
        response.write("begun ");
        finish.push(() => response.end("whole"));
      }
    }),
  );
  peer.server.on("upgrade", (_request, socket) => {
    socket.on("error", () => undefined);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    socket.on("data", (chunk: Buffer) => socket.write(chunk));
    socket.on("end", () => socket.end());
  });
  return { peer, finish, ...(await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")])) };
}

describe("closing", () => {
  it("lets requests under way end, then is done well before the grace time", async () => {
    const { proxy, http, https, finish } = await slowPeer();
    const clients = [await RawClient.plain(http), await RawClient.tls(https)];
    for (const client of clients) client.write(GET);
    await eventually(() => finish.length === 2);
    const begun = performance.now();
    const closed = proxy.close(20_000);
    expect(proxy.state().serving).toBe(false);
    for (const end of finish) end();
    for (const client of clients) expect(await client.end()).toContain("whole");
    await closed;
    expect(performance.now() - begun).toBeLessThan(5000);
  });

  it("marks further answers with Connection: close", async () => {
    const { proxy, http, finish } = await slowPeer();
    const client = await RawClient.plain(http);
    client.write(GET.replace("/ ", "/headless "));
    await eventually(() => finish.length === 1);
    const closed = proxy.close(20_000);
    finish[0]();
    expect(await client.end()).toMatch(/connection: close/i);
    await closed;
  });

  it("takes no new connection", async () => {
    const { proxy, http, finish } = await slowPeer();
    const client = await RawClient.plain(http);
    client.write(GET);
    await eventually(() => finish.length === 1);
    const closed = proxy.close(20_000);
    await expect(RawClient.plain(http)).rejects.toThrow(/ECONNREFUSED/);
    finish[0]();
    await closed;
  });

  it("closes idle connections and those that never brought a request", async () => {
    const { proxy, http, https } = await startProxy([
      actionHost(HOST, { kind: "return", status: 200, contentType: "text/plain", body: ["ok"] }),
    ]);
    const idle = await RawClient.plain(http);
    idle.write(GET);
    await idle.until((text) => text.endsWith("ok"));
    const clients = [idle, await RawClient.plain(http), await RawClient.tls(https)];
    const begun = performance.now();
    await proxy.close(20_000);
    expect(performance.now() - begun).toBeLessThan(5000);
    for (const client of clients) await client.end();
  });

  it("answers a request that arrives on a connection that was open before", async () => {
    const { proxy, http, finish } = await slowPeer();
    const early = await RawClient.plain(http);
    await eventually(() => proxy.counts().connections === 1);
    const closed = proxy.close(20_000);
    early.write(GET);
    await eventually(() => finish.length === 1);
    finish[0]();
    expect(statuses(await early.end())).toEqual([200]);
    await closed;
  });

  it("keeps tunnels until they end", async () => {
    const { proxy, http } = await slowPeer();
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await client.until((text) => text.includes("101"));
    const closed = proxy.close(20_000);
    await new Promise((resolve) => setTimeout(resolve, 800));
    client.write("still");
    await client.until((text) => text.endsWith("still"));
    client.socket.end();
    await closed;
  });

  it("breaks off what is left after the grace time", async () => {
    const { proxy, http, peer, finish } = await slowPeer();
    const client = await RawClient.plain(http);
    client.write(GET);
    await eventually(() => finish.length === 1);
    const begun = performance.now();
    await proxy.close(200);
    expect(performance.now() - begun).toBeGreaterThan(150);
    await client.end();
    expect(client.received).not.toContain("whole");
    await eventually(() => peer.open() === 0);
  });

  it("may be asked for more than once", async () => {
    const { proxy } = await startProxy([]);
    await Promise.all([proxy.close(100), proxy.close(100)]);
  });

  it("leaves no port open when one of two can't be bound", async () => {
    const { https } = await startProxy([]);
    const proxy = new EmbeddedProxy({
      table: makeRoutingTable(),
      logger: silentLogger,
      http: { address: "127.0.0.1", port: 0 },
      https: { address: "127.0.0.1", port: https },
    });
    await expect(proxy.listen()).rejects.toThrow(/EADDRINUSE/);
    expect(proxy.state().serving).toBe(false);
  });

  it("holds nothing after thousands of requests and broken connections", async () => {
    const peer = closing(
      await httpPeer((request, response) => (request.url === "/hang" ? undefined : response.end("ok"))),
    );
    const { proxy, http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")], {
      accessLog: undefined,
    });
    const wave = async (rounds: number): Promise<number> => {
      for (let round = 0; round < rounds; round++) {
        const good = Array.from({ length: 50 }, () => ask(http, { method: "POST", body: "x" }));
        const broken = Array.from({ length: 25 }, async (_, i) => {
          const socket = connect(http, "127.0.0.1");
          socket.on("error", () => undefined);
          socket.write(`POST /hang HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 10\r\n\r\nabc`);
          await new Promise((resolve) => setTimeout(resolve, i % 5));
          socket.destroy();
        });
        for (const answer of await Promise.all(good)) expect(answer.status).toBe(200);
        await Promise.all(broken);
      }
      await eventually(() => proxy.counts().exchanges === 0 && proxy.counts().connections === 0);
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    await wave(10);
    const before = await wave(20);
    const after = await wave(60);
    // Some 4,500 requests: one kilobyte kept of each would show.
    expect(after - before).toBeLessThan(4 * 1024 * 1024);
    await proxy.close(1000);
    expect(proxy.counts()).toEqual({ exchanges: 0, waiting: 0, connections: 0, openPools: 0, drainingPools: 0 });
  }, 60_000);
});

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
}
