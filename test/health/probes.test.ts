import { createSecureServer, createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { checkRequest, servingStatus } from "../../controller/health/grpc-message.js";
import { Probes, probeLimit } from "../../controller/health/probes.js";
import { newTarget } from "../../controller/health/target.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { closedPort, httpPeer, httpsPeer, tcpPeer } from "../support/peers.js";
import { check, probeOnce } from "./health-support.js";

cleanUpAfterEach();

const probes = new Probes(100);
afterAll(() => probes.close());
const { probe } = probes;

/** A peer that answers every request with a status. */
const answering = async (status: number, headers: Record<string, string> = {}) =>
  closing(await httpPeer((_request, response) => response.writeHead(status, headers).end("body")));

describe("an HTTP probe", () => {
  it("passes on 2xx and 3xx, and fails on anything else", async () => {
    for (const status of [200, 204, 301, 399]) {
      const { port } = await answering(status);
      expect(await probeOnce(probe, port)).toEqual({ passed: true, reason: `status ${status}` });
    }
    for (const status of [400, 404, 500, 503]) {
      const { port } = await answering(status);
      expect(await probeOnce(probe, port)).toEqual({ passed: false, reason: `status ${status}` });
    }
  });

  it("does not follow a redirect", async () => {
    let asked = 0;
    const peer = closing(
      await httpPeer((_request, response) => {
        asked++;
        response.writeHead(302, { Location: "/elsewhere" }).end();
      }),
    );
    expect(await probeOnce(probe, peer.port)).toMatchObject({ passed: true });
    expect(asked).toBe(1);
  });

  it("passes the statuses that the check names, or with `negated` all others", async () => {
    const { port } = await answering(404);
    const ranges = [
      { from: 200, to: 299 },
      { from: 404, to: 404 },
    ];
    expect(await probeOnce(probe, port, { statusMatch: { negated: false, ranges } })).toMatchObject({ passed: true });
    expect(await probeOnce(probe, port, { statusMatch: { negated: true, ranges } })).toMatchObject({ passed: false });
  });

  it("asks for path and query with the headers of the check, Host too", async () => {
    const seen: unknown[] = [];
    const peer = closing(
      await httpPeer((request, response) => {
        seen.push([request.method, request.url, request.headers]);
        response.end();
      }),
    );
    const headers = [
      { name: "Host", value: "shop.example.com" },
      { name: "X-Probe", value: "a" },
      { name: "X-Probe", value: "b" },
    ];
    await probeOnce(probe, peer.port, { path: "/healthz?deep=1", headers });
    await probeOnce(probe, peer.port);
    expect(seen).toEqual([
      [
        "GET",
        "/healthz?deep=1",
        { host: "shop.example.com", "user-agent": "njet-kic-health", "x-probe": "a, b", connection: "close" },
      ],
      ["GET", "/", { host: `127.0.0.1:${peer.port}`, "user-agent": "njet-kic-health", connection: "close" }],
    ]);
  });

  it("does not wait for a body that never ends, and reads no more of it", async () => {
    let socket: Socket | undefined;
    const peer = await tcpPeer((one) => {
      socket = one;
      one.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
      const more = setInterval(() => one.write(Buffer.alloc(65_536)), 1);
      one.on("close", () => clearInterval(more));
    });
    closing(peer);
    expect(await probeOnce(probe, peer.port)).toMatchObject({ passed: true });
    await eventually(() => socket?.destroyed === true);
  });

  it("leaves no connection behind", async () => {
    const peer = await answering(200);
    for (let i = 0; i < 10; i++) await probeOnce(probe, peer.port);
    await eventually(() => peer.open() === 0);
    expect(peer.accepted()).toBe(10);
  });

  it("fails where nobody listens, where the peer closes, and where it talks something else", async () => {
    const refused = await probeOnce(probe, await closedPort());
    expect(refused).toEqual({ passed: false, reason: "the connection was refused" });
    const closes = closing(await tcpPeer((socket) => socket.end()));
    expect(await probeOnce(probe, closes.port)).toMatchObject({ passed: false });
    const resets = closing(await tcpPeer((socket) => socket.once("data", () => socket.resetAndDestroy())));
    expect(await probeOnce(probe, resets.port)).toEqual({
      passed: false,
      reason: "the peer broke the connection off",
    });
    const smtp = closing(await tcpPeer((socket) => socket.write("220 mail.example.com ESMTP\r\n")));
    expect(await probeOnce(probe, smtp.port)).toEqual({ passed: false, reason: "the answer is no HTTP" });
  });

  it("fails on a head without end", async () => {
    const peer = await tcpPeer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const more = setInterval(() => socket.write(`x-more: ${"y".repeat(8000)}\r\n`), 1);
      socket.on("close", () => clearInterval(more));
    });
    closing(peer);
    const outcome = await probeOnce(probe, peer.port);
    expect(outcome).toEqual({ passed: false, reason: "the head of the answer is too large" });
  });

  it("fails when the answer takes longer than the read timeout, in drips too", async () => {
    const silent = closing(await tcpPeer(() => undefined));
    const outcome = { passed: false, reason: "timed out waiting for the answer" };
    expect(await probeOnce(probe, silent.port, { readTimeout: 30 })).toEqual(outcome);
    const dripping = await tcpPeer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nx-drip: ");
      const drip = setInterval(() => socket.write("d"), 5);
      socket.on("close", () => clearInterval(drip));
    });
    closing(dripping);
    expect(await probeOnce(probe, dripping.port, { readTimeout: 60 })).toEqual(outcome);
  });

  it("fails when the connection takes longer than the connect timeout", async () => {
    // TLS towards a peer that never says anything: the connection is not there before its handshake.
    const silent = closing(await tcpPeer(() => undefined));
    const outcome = await probeOnce(probe, silent.port, { tls: true, connectTimeout: 30 });
    expect(outcome).toEqual({ passed: false, reason: "timed out connecting" });
  });

  it("fails, and throws nothing, for a path or header that cannot be sent", async () => {
    const { port } = await answering(200);
    for (const changes of [{ path: "/a b" }, { headers: [{ name: "X", value: "a\r\nInjected: 1" }] }]) {
      expect(await probeOnce(probe, port, changes)).toMatchObject({ passed: false });
    }
  });

  it("goes over TLS without verifying the certificate, and sends no name", async () => {
    const names: unknown[] = [];
    const peer = closing(await httpsPeer((_request, response) => response.end()));
    peer.server.on("secureConnection", (socket: { servername: unknown }) => names.push(socket.servername));
    const headers = [{ name: "Host", value: "shop.example.com" }];
    expect(await probeOnce(probe, peer.port, { tls: true, headers })).toEqual({ passed: true, reason: "status 200" });
    expect(names).toEqual([false]);
  });

  it("fails where the peer speaks no TLS", async () => {
    const { port } = await answering(200);
    expect(await probeOnce(probe, port, { tls: true })).toEqual({ passed: false, reason: "the TLS handshake failed" });
  });

  it("says nothing after it was cancelled", async () => {
    const silent = closing(await tcpPeer(() => undefined));
    const told: unknown[] = [];
    const target = newTarget("key", "127.0.0.1", silent.port, check({ readTimeout: 20 }));
    probe(target, (outcome) => told.push(outcome))();
    await probeOnce(probe, silent.port, { readTimeout: 60 });
    expect(told).toEqual([]);
  });
});

describe("an HTTP probe with a keep-alive time", () => {
  it("uses its connection again", async () => {
    const peer = await answering(200);
    for (let i = 0; i < 5; i++) {
      expect(await probeOnce(probe, peer.port, { keepaliveTime: 60_000 })).toMatchObject({ passed: true });
    }
    expect([peer.accepted(), peer.open()]).toEqual([1, 1]);
  });

  it("closes a connection whose time is over", async () => {
    const peer = await answering(200);
    await probeOnce(probe, peer.port, { keepaliveTime: 20 });
    await eventually(() => peer.open() === 0);
  });

  it("does not blame the peer for closing a connection that was idle", async () => {
    let requests = 0;
    const peer = closing(
      await httpPeer((_request, response) => {
        // The second request on a connection gets no answer: the peer has closed it meanwhile.
        if (++requests === 2) response.socket?.destroy();
        else response.end();
      }),
    );
    for (let i = 0; i < 2; i++) {
      expect(await probeOnce(probe, peer.port, { keepaliveTime: 60_000 })).toEqual({
        passed: true,
        reason: "status 200",
      });
    }
    expect([requests, peer.accepted()]).toEqual([3, 2]);
  });

  it("gives the connection up for a body that is too large to be read", async () => {
    const peer = closing(await httpPeer((_request, response) => response.end(Buffer.alloc(1_000_000))));
    expect(await probeOnce(probe, peer.port, { keepaliveTime: 60_000 })).toMatchObject({ passed: true });
    await eventually(() => peer.open() === 0);
  });

  it("keeps no more connections than it may", async () => {
    const few = new Probes(2);
    const peers = await Promise.all([answering(200), answering(200), answering(200), answering(200)]);
    for (const { port } of peers) await probeOnce(few.probe, port, { keepaliveTime: 60_000 });
    const open = () => peers.reduce((sum, peer) => sum + peer.open(), 0);
    await eventually(() => open() === 2);
    few.close();
    await eventually(() => open() === 0);
  });
});

/** A gRPC peer; `serve` gets the call and its message. */
async function grpcPeer(serve: (call: ServerHttp2Stream, message: Buffer) => void, tls = false) {
  const pair = makeCertificate("peer", "peer.example.com");
  const server: Http2Server = tls ? createSecureServer({ cert: pair.chain, key: pair.key }) : createServer();
  const sockets = new Set<Socket>();
  let sessions = 0;
  server.on(tls ? "secureConnection" : "connection", (socket: Socket) => sockets.add(socket));
  server.on("session", () => sessions++);
  server.on("stream", (call, headers) => {
    const parts: Buffer[] = [];
    call.on("error", () => undefined);
    call.on("data", (part: Buffer) => parts.push(part));
    call.on("end", () => {
      if (headers[":path"] !== "/grpc.health.v1.Health/Check") call.respond({ ":status": 404 }, { endStream: true });
      else serve(call, Buffer.concat(parts));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return closing({
    port: (server.address() as AddressInfo).port,
    sessions: () => sessions,
    open: () => [...sockets].filter((socket) => !socket.destroyed).length,
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  });
}

function answer(call: ServerHttp2Stream, serving: number, grpcStatus = "0"): void {
  call.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  call.on("wantTrailers", () => call.sendTrailers({ "grpc-status": grpcStatus }));
  call.end(serving === 0 ? Buffer.alloc(5) : Buffer.of(0, 0, 0, 0, 2, 8, serving));
}

describe("a gRPC probe", () => {
  const grpc = { type: "grpc" } as const;

  it("passes where the peer is SERVING, over plain HTTP/2 and over TLS", async () => {
    for (const tls of [false, true]) {
      const peer = await grpcPeer((call) => answer(call, 1), tls);
      expect(await probeOnce(probe, peer.port, { ...grpc, tls })).toEqual({ passed: true, reason: "SERVING" });
      await eventually(() => peer.open() === 0);
    }
  });

  it("asks for the service that the check names", async () => {
    const asked: string[] = [];
    const peer = await grpcPeer((call, message) => {
      asked.push(message.toString("latin1"));
      answer(call, 1);
    });
    await probeOnce(probe, peer.port, { ...grpc, grpcService: "shop.Cart" });
    await probeOnce(probe, peer.port, grpc);
    expect(asked).toEqual(["\0\0\0\0\x0b\n\tshop.Cart", "\0\0\0\0\0"]);
  });

  it.each([
    [0, "UNKNOWN"],
    [2, "NOT_SERVING"],
    [3, "SERVICE_UNKNOWN"],
    [9, "the answer is no HealthCheckResponse"],
  ])("fails on the serving status %i", async (status, reason) => {
    const peer = await grpcPeer((call) => answer(call, status));
    expect(await probeOnce(probe, peer.port, grpc)).toEqual({ passed: false, reason });
  });

  it("fails on a grpc-status other than 0, unless the check takes that one", async () => {
    const peer = await grpcPeer((call) => call.respond({ ":status": 200, "grpc-status": "12" }, { endStream: true }));
    expect(await probeOnce(probe, peer.port, grpc)).toEqual({ passed: false, reason: "grpc-status 12" });
    expect(await probeOnce(probe, peer.port, { ...grpc, grpcStatus: 12 })).toMatchObject({ passed: true });
    expect(await probeOnce(probe, peer.port, { ...grpc, grpcStatus: 5 })).toMatchObject({ passed: false });
  });

  it("fails on a status other than 200, on no grpc-status, and on what is too long", async () => {
    const broken = await grpcPeer((call) => call.respond({ ":status": 503 }, { endStream: true }));
    expect(await probeOnce(probe, broken.port, grpc)).toEqual({ passed: false, reason: "status 503" });
    const bare = await grpcPeer((call) => {
      call.respond({ ":status": 200 });
      call.end(Buffer.of(0, 0, 0, 0, 2, 8, 1));
    });
    expect(await probeOnce(probe, bare.port, grpc)).toMatchObject({ passed: false });
    const long = await grpcPeer((call) => {
      call.respond({ ":status": 200 });
      call.end(Buffer.alloc(100_000));
    });
    expect(await probeOnce(probe, long.port, grpc)).toMatchObject({ passed: false });
  });

  it("fails where the peer hangs, closes the call, or speaks HTTP/1.1 only", async () => {
    const hung = await grpcPeer(() => undefined);
    expect(await probeOnce(probe, hung.port, { ...grpc, readTimeout: 40 })).toMatchObject({ passed: false });
    const closes = await grpcPeer((call) => call.close(8));
    expect(await probeOnce(probe, closes.port, grpc)).toMatchObject({ passed: false });
    const plain = await answering(200);
    expect(await probeOnce(probe, plain.port, { ...grpc, readTimeout: 2000 })).toMatchObject({ passed: false });
    expect(await probeOnce(probe, await closedPort(), grpc)).toMatchObject({ passed: false });
  });

  it("reads and writes its messages as protobuf has them", () => {
    expect(checkRequest("x".repeat(300)).subarray(0, 8)).toEqual(Buffer.of(0, 0, 0, 1, 47, 10, 172, 2));
    for (const bad of [[], [0, 0, 0, 0], [1, 0, 0, 0, 2, 8, 1], [0, 0, 0, 0, 3, 8, 1], [0, 0, 0, 0, 2, 9, 1]]) {
      expect(servingStatus(Buffer.from(bad))).toBeUndefined();
    }
  });
});

describe("a TCP probe", () => {
  const tcp = { type: "tcp" } as const;

  it("passes where a connection can be made, with TLS where the check has it, and closes it", async () => {
    const peer = await answering(500);
    expect(await probeOnce(probe, peer.port, tcp)).toEqual({ passed: true, reason: "connected" });
    await eventually(() => peer.open() === 0);
    const secure = closing(await httpsPeer(() => undefined));
    expect(await probeOnce(probe, secure.port, { ...tcp, tls: true })).toMatchObject({ passed: true });
  });

  it("fails where nobody listens, and where TLS does not come about", async () => {
    expect(await probeOnce(probe, await closedPort(), tcp)).toMatchObject({ passed: false });
    const closes = closing(await tcpPeer((socket) => socket.end()));
    expect(await probeOnce(probe, closes.port, { ...tcp, tls: true })).toMatchObject({ passed: false });
  });
});

describe("the limit of probes", () => {
  it("leaves descriptors for everything else, and stays within reason", () => {
    expect([probeLimit(1024), probeLimit(20_064), probeLimit(2 ** 30), probeLimit(40)]).toEqual([
      480, 10_000, 16_384, 16,
    ]);
    expect(probeLimit()).toBeGreaterThanOrEqual(16);
  });
});
