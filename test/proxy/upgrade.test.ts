import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, cleanup, closing, eventually, startProxy } from "../support/harness.js";
import { closedPort, echo, httpPeer, httpsPeer } from "../support/peers.js";
import { planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const WEBSOCKET =
  `GET /chat HTTP/1.1\r\nHost: ${HOST}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n\r\n`;

function accept(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/** A peer that does the WebSocket handshake and then sends back whatever comes, after a greeting. */
async function echoingPeer(open: typeof httpPeer | typeof httpsPeer = httpPeer) {
  const sockets: Duplex[] = [];
  const peer = closing(await open(echo));
  peer.server.on("upgrade", (request, socket, head) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${request.headers.upgrade}\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Accept: ${accept(request.headers["sec-websocket-key"] ?? "")}\r\n\r\nhello`,
    );
    if (head.length > 0) socket.write(head);
    socket.on("data", (chunk: Buffer) => socket.write(chunk));
    socket.on("end", () => socket.end("bye"));
  });
  return { peer, sockets };
}

describe.each(["plain", "TLS"] as const)("upgrades on the %s port", (port) => {
  it.each(["plain", "TLS"] as const)("tunnels a WebSocket to a %s peer", async (towards) => {
    const { peer } = await echoingPeer(towards === "plain" ? httpPeer : httpsPeer);
    const started = await startProxy([
      upstreamStep("web", [peer.port], { tls: towards === "TLS" }),
      proxyHost(HOST, "web"),
    ]);
    const client = port === "plain" ? await RawClient.plain(started.http) : await RawClient.tls(started.https);
    client.write(WEBSOCKET);
    await client.until((text) => text.endsWith("\r\n\r\nhello"));
    expect(client.received).toContain("HTTP/1.1 101 Switching Protocols");
    expect(client.received).toContain(`Sec-WebSocket-Accept: ${accept(KEY)}`);
    expect(client.received).toMatch(/\r\nupgrade: websocket\r\n/i);
    const data = "\x81\x05frame".repeat(100_000);
    client.write(data);
    const received = await client.until((text) => text.length >= data.length + text.indexOf("hello") + 5, 10_000);
    expect(received.endsWith(data)).toBe(true);
    client.socket.end();
    expect((await client.end()).endsWith("bye")).toBe(true);
    await eventually(() => started.log.length === 1);
    expect(started.log[0]).toMatchObject({ status: 101, target: "/chat", bytes: data.length + 8 });
    expect(started.proxy.counts().exchanges).toBe(0);
  });
});

describe("upgrades", () => {
  async function serve(ports: number[], transport = {}) {
    return startProxy([upstreamStep("web", ports, transport), proxyHost(HOST, "web")]);
  }

  it("tunnels any protocol, and bytes that the client sends along with its request only after the peer agreed", async () => {
    const { peer } = await echoingPeer();
    const { http } = await serve([peer.port]);
    const client = await RawClient.plain(http);
    client.write(
      `POST /exec HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\nearly`,
    );
    await client.until((text) => text.endsWith("helloearly"));
    expect(client.received).toContain("Upgrade: SPDY/3.1");
    client.destroy();
  });

  it("begins a tunnel behind an unanswered request when that one has its answer", async () => {
    const { peer } = await echoingPeer();
    const { http } = await serve([peer.port]);
    const client = await RawClient.plain(http);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 2\r\n\r\nok${WEBSOCKET}`);
    await client.until((text) => text.endsWith("hello"));
    expect(statuses(client.received)).toEqual([200, 101]);
    client.write("more");
    await client.until((text) => text.endsWith("more"));
    client.destroy();
  });

  it("serves h2c and CONNECT behind an unanswered request in their turn", async () => {
    const { peer } = await echoingPeer();
    const { http } = await serve([peer.port]);
    const client = await RawClient.plain(http);
    const get = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n`;
    client.write(
      `${get}\r\n${get}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`,
    );
    expect(statuses(await client.end())).toEqual([200, 200, 405]);
  });

  it("does not pass bytes behind the request to a peer that declines", async () => {
    const targets: string[] = [];
    const peer = closing(
      await httpPeer((request, response) => {
        targets.push(request.url ?? "");
        response.writeHead(200).end("no upgrade");
      }),
    );
    const { http } = await serve([peer.port]);
    const client = await RawClient.plain(http);
    client.write(`${WEBSOCKET}GET /hidden HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    expect(await client.end()).toContain("no upgrade");
    expect(targets).toEqual(["/chat"]);
  });

  it.each([403, 426, 500])("passes a %d on instead of a tunnel", async (status) => {
    const peer = closing(await httpPeer(echo));
    peer.server.on("upgrade", (_request, socket) => {
      socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope`);
    });
    const { http, log } = await serve([peer.port]);
    const client = await RawClient.plain(http);
    client.write(WEBSOCKET);
    const received = await client.end();
    expect(statuses(received)).toEqual([status]);
    expect(received.endsWith("nope")).toBe(true);
    expect(received).toMatch(/connection: close/i);
    expect(log[0]).toMatchObject({ status, bytes: 4 });
  });

  it("tries another peer where one refuses the connection", async () => {
    const { peer } = await echoingPeer();
    const { http } = await serve([await closedPort(), peer.port]);
    for (let i = 0; i < 2; i++) {
      const client = await RawClient.plain(http);
      client.write(WEBSOCKET);
      await client.until((text) => text.endsWith("hello"));
      client.destroy();
    }
  });

  it("answers 502 where no peer can be reached, and 404 where no route matches", async () => {
    const { http } = await serve([await closedPort()]);
    for (const [head, status] of [
      [WEBSOCKET, 502],
      [WEBSOCKET.replace(HOST, "unknown.example.com"), 404],
    ] as const) {
      const client = await RawClient.plain(http);
      client.write(head);
      expect(statuses(await client.end())).toEqual([status]);
    }
  });

  it("refuses a bad head on an upgrade too", async () => {
    const { http } = await serve([await closedPort()]);
    const client = await RawClient.plain(http);
    client.write(WEBSOCKET.replace("\r\n\r\n", "\r\nHost: evil\r\n\r\n"));
    expect(statuses(await client.end())).toEqual([400]);
  });

  it.each(["plain", "TLS"] as const)(
    "serves a request for h2c as HTTP/1.1 on the %s port, with its body and with keep-alive",
    async (port) => {
      const peer = closing(await httpPeer(echo));
      const { http, https } = await serve([peer.port]);
      const client = port === "plain" ? await RawClient.plain(http) : await RawClient.tls(https);
      const request =
        `POST / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n` +
        "HTTP2-Settings: AAMAAABk\r\nContent-Length: 5\r\n\r\nhe";
      const warnings: Error[] = [];
      const onWarning = (warning: Error) => warnings.push(warning);
      process.on("warning", onWarning);
      cleanup(() => process.off("warning", onWarning));
      for (let i = 1; i <= 15; i++) {
        client.write(request);
        await new Promise((resolve) => setTimeout(resolve, 5));
        client.write("llo");
        await client.until((text) => text.split('"body":"hello"').length === i + 1);
      }
      expect(client.received).not.toMatch(/h2c|http2-settings/i);
      // Listeners that pile up on the connection would show as one.
      expect(warnings).toEqual([]);
      client.destroy();
    },
  );

  it("makes no tunnel for h2c, whatever the peer would say", async () => {
    const { peer, sockets } = await echoingPeer();
    const { http } = await serve([peer.port]);
    const client = await RawClient.plain(http);
    client.write(
      `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n`,
    );
    expect(statuses(await client.until((text) => text.includes('"method":"GET"')))).toEqual([200]);
    expect(sockets).toEqual([]);
    client.destroy();
  });

  it("passes the end of one direction on and keeps the other open", async () => {
    const peer = closing(await httpPeer(echo));
    let peerSaw = "";
    peer.server.on("upgrade", (_request, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
      socket.end("all I have");
      socket.on("data", (chunk: Buffer) => {
        peerSaw += chunk.toString();
      });
    });
    const { http } = await serve([peer.port]);
    const client = await RawClient.plain(http, { allowHalfOpen: true });
    client.write(WEBSOCKET);
    await eventually(() => client.ended);
    expect(client.received.endsWith("all I have")).toBe(true);
    client.write("still here");
    await eventually(() => peerSaw === "still here");
    client.socket.end();
    await client.end();
  });

  it("takes the tunnel down when either side breaks", async () => {
    const { peer, sockets } = await echoingPeer();
    const { http, proxy } = await serve([peer.port]);
    for (const side of ["client", "peer"] as const) {
      const client = await RawClient.plain(http);
      client.write(WEBSOCKET);
      await client.until((text) => text.endsWith("hello"));
      if (side === "client") client.socket.resetAndDestroy();
      else sockets.at(-1)?.destroy();
      await eventually(() => proxy.counts().exchanges === 0 && peer.open() === 0);
      await client.end();
    }
  });

  it("takes an idle tunnel down after the read time-out", async () => {
    const { peer } = await echoingPeer();
    const { http, proxy } = await serve([peer.port], { readTimeout: 1500 });
    const client = await RawClient.plain(http);
    client.write(WEBSOCKET);
    // Longer than the time-out in all, each silence far below it, also on a busy machine.
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => setTimeout(resolve, 350));
      client.write("x");
    }
    expect(client.closed).toBe(false);
    await client.end();
    await eventually(() => proxy.counts().exchanges === 0 && peer.open() === 0);
  });

  it("keeps a tunnel over changes of its route and its upstream", async () => {
    const { peer } = await echoingPeer();
    const { http, proxy } = await serve([peer.port]);
    const client = await RawClient.plain(http);
    client.write(WEBSOCKET);
    await client.until((text) => text.endsWith("hello"));
    await proxy.apply(
      planOf(
        { step: "remove-host", pattern: { kind: "exact", host: HOST } },
        { step: "remove-upstream", key: "Ingress/default/shop/web" },
      ),
    );
    await eventually(() => proxy.counts().drainingPools === 0);
    client.write("still");
    await client.until((text) => text.endsWith("still"));
    client.destroy();
  });
});
