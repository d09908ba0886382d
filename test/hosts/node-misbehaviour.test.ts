import { createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { ChosenPeer } from "../../core-wasm/binding/index.js";
import { BundleRouter, createHandler, type HandlerOptions } from "../../core-wasm/hosts/node/index.js";
import { service } from "../cli/objects.js";
import { sharedCore } from "../support/core.js";
import { RawClient } from "../support/raw-client.js";
import { app, ask, bundle, type Server, serve } from "./node-support.js";

const TIMEOUT = 30_000;
const HEAD = "Host: app.example.com\r\n";

const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Keeps what it was told of the ends of tries. */
class TellingRouter extends BundleRouter {
  readonly ends: boolean[] = [];

  override done(peer: ChosenPeer, failed: boolean): void {
    this.ends.push(failed);
    super.done(peer, failed);
  }
}

async function proxy(
  objects: string,
  options: HandlerOptions = {},
): Promise<{ port: number; router: TellingRouter; failures: string[]; clients: Socket[] }> {
  const router = new TellingRouter(sharedCore);
  router.load(bundle(objects));
  const failures: string[] = [];
  const clients: Socket[] = [];
  const handle = createHandler(router, { ...options, onFailure: ({ message }) => failures.push(message) });
  const server: Server = await serve((request, response) => {
    clients.push(request.socket);
    handle(request, response);
  });
  closing.push(() => server.close());
  return { port: server.port, router, failures, clients };
}

interface RawPeer {
  port: number;
  /** All bytes that came, over all connections. */
  received: string;
}

/** A peer that sees bytes, and answers them as `act` says. */
async function rawPeer(act: (socket: Socket, received: string) => void): Promise<RawPeer> {
  const peer: RawPeer = { port: 0, received: "" };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let received = "";
    socket.on("data", (part) => {
      received += part.toString("latin1");
      peer.received += part.toString("latin1");
      act(socket, received);
    });
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  peer.port = (server.address() as { port: number }).port;
  return peer;
}

const FINE = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";

/** Answers each request that has come whole, where none has a body. */
const fine = (socket: Socket, received: string) => received.endsWith("\r\n\r\n") && socket.write(FINE);

/** Objects of an upstream that may be silent for 100 ms. */
const silent = (port: number) => `${service("app", "127.0.0.1", port)}---
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: { name: app }
spec:
  ingressClassName: njet
  host: app.example.com
  upstreams: [{ name: app, service: app, port: 80, read-timeout: 100ms }]
  routes:
    - path: /
      errorPages: [{ codes: [503, 504], return: { code: 200, body: "soon, \${request_uri}" } }]
      action: { pass: app }
    - path: /plain
      action: { pass: app }
`;

async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("a client that misbehaves", { timeout: TIMEOUT }, () => {
  it("can't hide a second request behind a length that its Connection header takes away", async () => {
    const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    const peer = await rawPeer((socket, received) => received.endsWith(hidden) && socket.write(FINE));
    const { port } = await proxy(app(peer.port));
    const client = await RawClient.plain(port);
    const head = `GET / HTTP/1.1\r\n${HEAD}Connection: close, content-length\r\nContent-Length: ${hidden.length}\r\n\r\n`;
    client.write(head + hidden);
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 200 /);
    expect(peer.received).toMatch(
      new RegExp(`^GET / .*\r\nContent-Length: ${hidden.length}\r\n.*\r\n\r\n${hidden}$`, "s"),
    );
  });

  it("can't send a body in chunks without its frame, whatever the method", async () => {
    const peer = await rawPeer((socket, received) => received.endsWith("\r\n0\r\n\r\n") && socket.write(FINE));
    const { port } = await proxy(app(peer.port));
    for (const method of ["GET", "DELETE", "POST"]) {
      const client = await RawClient.plain(port);
      client.write(`${method} / HTTP/1.1\r\n${HEAD}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n`);
      client.write("3\r\nabc\r\n0\r\n\r\n");
      expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 200 /);
    }
    expect(peer.received.match(/\r\nTransfer-Encoding: chunked\r\n.*?\r\n\r\n3\r\nabc\r\n0\r\n\r\n/gs)).toHaveLength(3);
  });

  it("says nothing about itself that the peer believes", async () => {
    const peer = await rawPeer(fine);
    const { port } = await proxy(app(peer.port));
    const forged = ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X_Real_IP", "X-Forwarded-Host", "X-Forwarded-Proto"];
    await ask(port, "/", { headers: Object.fromEntries(forged.map((name) => [name, "forged"])) });
    expect(peer.received).not.toContain("forged");
    expect(peer.received).toMatch(/\r\nX-Forwarded-For: 127\.0\.0\.1\r\n/);
    expect(peer.received).toMatch(/\r\nX-Forwarded-Host: app\.example\.com\r\n/);
  });

  it.each([
    ["two hosts", `GET / HTTP/1.1\r\n${HEAD}Host: b.example.com\r\n\r\n`, 400],
    ["no host", "GET / HTTP/1.1\r\n\r\n", 400],
    [
      "another encoding of the body",
      `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["TRACE", `TRACE / HTTP/1.1\r\n${HEAD}\r\n`, 405],
  ])("is refused with its connection for %s", async (_, request, status) => {
    const { port } = await proxy(app(1));
    const client = await RawClient.plain(port);
    client.write(request);
    expect(await client.end(TIMEOUT)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it("leaves while its body is on the way, and nobody is blamed", async () => {
    const peer = await rawPeer(() => {});
    const { port, router, failures } = await proxy(app(peer.port));
    const client = await RawClient.plain(port);
    client.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 1000\r\n\r\nabc`);
    await eventually(() => peer.received.endsWith("abc"));
    client.socket.destroy();
    await eventually(() => router.ends.length > 0);
    expect([router.ends, failures]).toEqual([[false], []]);
  });

  it("stalls in the middle of its body: 408, and nobody is blamed", async () => {
    const peer = await rawPeer(() => {});
    const { port, router, failures } = await proxy(silent(peer.port), { clientTimeout: 300 });
    for (const part of ["", "abc"]) {
      const client = await RawClient.plain(port);
      client.write(`POST /plain HTTP/1.1\r\n${HEAD}Content-Length: 1000\r\n\r\n${part}`);
      expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 408 .*\r\nConnection: close\r\n/s);
    }
    expect([router.ends, failures]).toEqual([[false, false], []]);
  });

  it("stalls in its body: 408 after clientTimeout, although the peer may be silent for a minute", async () => {
    const peer = await rawPeer(() => {});
    const { port, router, failures } = await proxy(app(peer.port), { clientTimeout: 300 });
    const client = await RawClient.plain(port);
    client.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 1000\r\n\r\nabc`);
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 408 /);
    expect([router.ends, failures]).toEqual([[false], []]);
  });

  it("stalls in its body while its answer comes: it is broken off, and nobody is blamed", async () => {
    const begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
    const peer = await rawPeer((socket, received) => received.endsWith("abc") && socket.write(begun));
    const { port, router, failures } = await proxy(silent(peer.port), { clientTimeout: 300 });
    const client = await RawClient.plain(port);
    client.write(`POST /plain HTTP/1.1\r\n${HEAD}Content-Length: 1000\r\n\r\nabc`);
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 200 .*abc/s);
    expect([router.ends, failures]).toEqual([[false], []]);
  });

  it("is slower with its body than the peer may be with its answer: the peer gets it whole", async () => {
    const peer = await rawPeer((socket, received) => received.endsWith("abcde") && socket.write(FINE));
    const { port, router } = await proxy(silent(peer.port));
    const client = await RawClient.plain(port);
    client.write(`POST /plain HTTP/1.1\r\n${HEAD}Connection: close\r\nContent-Length: 5\r\n\r\nab`);
    for (const part of ["c", "d", "e"]) {
      await new Promise((resolve) => setTimeout(resolve, 250));
      client.write(part);
    }
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 200 .*fine$/s);
    expect(router.ends).toEqual([false]);
  });

  it("does not read its answer: it is broken off, and nobody is blamed", async () => {
    const large = 64 << 20;
    const peer = await rawPeer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large}\r\n\r\n`);
      socket.write(Buffer.alloc(large));
    });
    const { port, router, failures } = await proxy(silent(peer.port), { clientTimeout: 300 });
    const client = await RawClient.plain(port);
    client.socket.pause();
    client.write(`GET /plain HTTP/1.1\r\n${HEAD}\r\n`);
    await eventually(() => router.ends.length > 0);
    expect([router.ends, failures]).toEqual([[false], []]);
    client.socket.resume();
    expect((await client.end(TIMEOUT)).length).toBeLessThan(large);
  });

  it("does not read its answer: it is broken off after clientTimeout, although the peer may be silent for a minute", async () => {
    const peer = await rawPeer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${64 << 20}\r\n\r\n`);
      socket.write(Buffer.alloc(64 << 20));
    });
    const { port, router, failures } = await proxy(app(peer.port), { clientTimeout: 300 });
    const client = await RawClient.plain(port);
    client.socket.pause();
    client.write(`GET / HTTP/1.1\r\n${HEAD}\r\n`);
    await eventually(() => router.ends.length > 0);
    expect([router.ends, failures]).toEqual([[false], []]);
  });

  it("does not take the end of an answer that the peer has given whole: it is broken off, and its place is free", async () => {
    const peer = await rawPeer((socket, received) => {
      if (!received.endsWith("\r\n\r\n")) return;
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      const piece = setInterval(() => {
        // Until the client's connection is full, and nothing more would be taken from the peer.
        if (clients[0].writableLength === 0) socket.write(`1000\r\n${"a".repeat(4096)}\r\n`);
        else {
          clearInterval(piece);
          socket.write("0\r\n\r\n");
        }
      }, 0);
    });
    const { port, router, failures, clients } = await proxy(app(peer.port), { clientTimeout: 300 });
    const client = await RawClient.plain(port);
    client.socket.pause();
    client.write(`GET / HTTP/1.1\r\n${HEAD}\r\n`);
    await eventually(() => router.ends.length > 0);
    expect([router.ends, failures, clients[0].destroyed]).toEqual([[false], [], true]);
  });

  it("sends a chunk without a length: it is refused, and nobody is blamed", async () => {
    const peer = await rawPeer(() => {});
    const { port, router, failures } = await proxy(app(peer.port));
    const client = await RawClient.plain(port);
    client.write(`POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`);
    await eventually(() => peer.received.includes("abc"));
    client.write("no length\r\n");
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 400 /);
    await eventually(() => router.ends.length > 0);
    expect([router.ends, failures]).toEqual([[false], []]);
  });
});

describe("a peer that misbehaves", { timeout: TIMEOUT }, () => {
  it.each([
    ["a status of 0", "HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n"],
    ["a status below 100", "HTTP/1.1 099 Less\r\nContent-Length: 0\r\n\r\n"],
    ["another protocol that nobody asked for", "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"],
    ["another encoding of the body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
    ["a control character in a header", "HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n"],
    ["no HTTP", "\x00\x01\x02\x03"],
  ])("answers with %s: that is a failure, and 502", async (_, answer) => {
    const peer = await rawPeer((socket, received) => received.endsWith("\r\n\r\n") && socket.end(answer, "latin1"));
    const { port, router } = await proxy(app(peer.port));
    expect((await ask(port, "/")).status).toBe(502);
    expect(router.ends).toEqual([true]);
    peer.received = "";
    expect((await ask(port, "/")).status).toBe(502);
  });

  it("breaks off in the middle of a body: 502 for the client, which has not sent the rest", async () => {
    const peer = await rawPeer((socket, received) => received.length > 100_000 && socket.destroy());
    const { port, router, failures } = await proxy(app(peer.port));
    const client = await RawClient.plain(port);
    client.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 1000000\r\n\r\n${"a".repeat(200_000)}`);
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 502 .*\r\nConnection: close\r\n/s);
    expect([router.ends, failures.length]).toEqual([[true], 1]);
  });

  it("answers before it has the body, and closes: the answer is passed on, and is no failure", async () => {
    const early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsmall";
    const peer = await rawPeer((socket, received) => received.length > 1000 && socket.end(early));
    const { port, router, failures } = await proxy(app(peer.port));
    const client = await RawClient.plain(port);
    client.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 1000000\r\n\r\n${"a".repeat(2000)}`);
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 413 .*\r\nConnection: close\r\n\r\nsmall$/s);
    expect([router.ends, failures]).toEqual([[false], []]);
  });

  it("breaks off in its answer: the client's is broken off too, and the peer has failed", async () => {
    const half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    const peer = await rawPeer((socket) => socket.end(half));
    const { port, router } = await proxy(app(peer.port));
    const client = await RawClient.plain(port);
    client.write(`GET / HTTP/1.1\r\n${HEAD}\r\n`);
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 200 .*half$/s);
    expect(router.ends).toEqual([true]);
  });

  it("is silent: 504", async () => {
    const peer = await rawPeer(() => {});
    const { port, router } = await proxy(silent(peer.port));
    expect((await ask(port, "/plain")).status).toBe(504);
    expect(router.ends).toEqual([true]);
  });

  it("takes nothing more of a body: 504", async () => {
    const peer = await rawPeer((socket) => socket.pause());
    const { port, router } = await proxy(silent(peer.port));
    const client = await RawClient.plain(port);
    const length = 64 << 20;
    client.write(`POST /plain HTTP/1.1\r\n${HEAD}Content-Length: ${length}\r\n\r\n${"a".repeat(length / 2)}`);
    expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 504 /);
    expect(router.ends).toEqual([true]);
  });

  it("is silent in the middle of its answer: the client's is broken off", async () => {
    const peer = await rawPeer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"));
    const { port, router } = await proxy(silent(peer.port));
    await expect(ask(port, "/plain")).rejects.toThrow();
    expect(router.ends).toEqual([true]);
  });

  it("has its page of the object, instead of its answer or for its silence", async () => {
    const busy = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    const peer = await rawPeer((socket, received) => received.startsWith("GET /busy") && socket.write(busy));
    const { port } = await proxy(silent(peer.port));
    expect(await ask(port, "/busy")).toMatchObject({ status: 200, body: "soon, /busy" });
    expect(await ask(port, "/silent")).toMatchObject({ status: 200, body: "soon, /silent" });
  });
});
