import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { UpstreamTransport } from "../../controller/model/types.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { closedPort, echo, httpPeer, tcpPeer } from "../support/peers.js";
import { actionHost, planOf, proxyHost, upstreamStep } from "../support/plans.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

function serve(ports: number[], transport: Partial<UpstreamTransport> = {}) {
  return startProxy([upstreamStep("web", ports, transport), proxyHost(HOST, "web")]);
}

/** A peer that reads a request and then does what `act` says. */
async function rawPeer(act: (socket: Socket) => void): Promise<{ port: number; requests: () => number }> {
  let requests = 0;
  const peer = closing(
    await tcpPeer((socket) => {
      socket.on("data", (chunk) => {
        if (!/^[A-Z]+ /.test(chunk.toString("latin1"))) return;
        requests++;
        act(socket);
      });
    }),
  );
  return { port: peer.port, requests: () => requests };
}

describe("peers that fail", () => {
  it("answers 502 where the only peer refuses connections", async () => {
    const { http, log } = await serve([await closedPort()]);
    expect((await ask(http)).status).toBe(502);
    expect(log[0]).toMatchObject({ status: 502, attempts: 1, upstreamErrors: ["ECONNREFUSED"] });
  });

  it("answers 502 where a peer resets the connection or closes it without an answer", async () => {
    for (const act of [(s: Socket) => s.resetAndDestroy(), (s: Socket) => s.end()]) {
      const peer = await rawPeer(act);
      const { http } = await serve([peer.port]);
      expect((await ask(http)).status).toBe(502);
    }
  });

  it.each([
    ["no HTTP", "nonsense\r\n\r\n"],
    ["a framing that it does not know", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
    ["a length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a header with a control character", "HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n"],
    [
      "an upgrade that nobody asked for",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    ],
  ])("answers 502 where a peer sends %s", async (_title, answer) => {
    const peer = await rawPeer((socket) => socket.write(answer, "latin1"));
    const { http, proxy } = await serve([peer.port], { nextUpstream: [] });
    expect((await ask(http)).status).toBe(502);
    await eventually(() => proxy.counts().exchanges === 0);
  });

  it("answers 503 where an upstream has no peer", async () => {
    const { http } = await serve([]);
    expect((await ask(http)).status).toBe(503);
  });

  it("answers 504 where a peer does not answer in time", async () => {
    const peer = await rawPeer(() => undefined);
    const { http, log } = await serve([peer.port], { readTimeout: 100 });
    expect((await ask(http)).status).toBe(504);
    expect(log[0].upstreamErrors).toEqual(["UND_ERR_HEADERS_TIMEOUT"]);
  });

  it("breaks the answer off where a peer stops in the middle of it", async () => {
    const peer = await rawPeer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"));
    const { http } = await serve([peer.port], { readTimeout: 100 });
    await expect(ask(http)).rejects.toThrow();
  });

  it("answers 504 where a peer takes no more of the body", async () => {
    const peer = closing(await tcpPeer((socket) => socket.pause()));
    const { http, log } = await serve([peer.port], { sendTimeout: 100 });
    expect((await ask(http, { method: "PUT", body: Buffer.alloc(32 * 1024 * 1024) })).status).toBe(504);
    await eventually(() => log.length === 1);
    expect(log[0]).toMatchObject({ attempts: 1, upstreamErrors: ["ETIMEDOUT"] });
  });

  it("tries another peer where one refuses connections, with the body, whatever the method", async () => {
    const peer = closing(await httpPeer(echo));
    const { http, log } = await serve([await closedPort(), peer.port]);
    for (const method of ["GET", "POST", "PUT"]) {
      for (let i = 0; i < 2; i++) {
        const answer = await ask(http, { method, body: method === "GET" ? undefined : "hello" });
        expect(answer.status).toBe(200);
        expect(JSON.parse(answer.body).body).toBe(method === "GET" ? "" : "hello");
      }
    }
    expect(log.filter((line) => line.attempts === 2)).toHaveLength(3);
  });

  it("tries another peer for a request that may be repeated when one breaks off, sending the body again", async () => {
    const bad = await rawPeer((socket) => socket.resetAndDestroy());
    const peer = closing(await httpPeer(echo));
    const { http } = await serve([bad.port, peer.port]);
    const answer = await ask(http, { method: "PUT", body: "hello" });
    expect(JSON.parse(answer.body).body).toBe("hello");
    expect(bad.requests()).toBe(1);
  });

  it("does not repeat a POST that a peer may have acted on", async () => {
    const bad = await rawPeer((socket) => socket.resetAndDestroy());
    const peer = closing(await httpPeer(echo));
    const { http } = await serve([bad.port, peer.port]);
    expect((await ask(http, { method: "POST", body: "hello" })).status).toBe(502);
    expect(peer.accepted()).toBe(0);
  });

  it("repeats a POST where the upstream allows it", async () => {
    const bad = await rawPeer((socket) => socket.resetAndDestroy());
    const peer = closing(await httpPeer(echo));
    const { http } = await serve([bad.port, peer.port], { nextUpstream: ["error", "non_idempotent"] });
    expect((await ask(http, { method: "POST", body: "hello" })).status).toBe(200);
  });

  it("does not repeat a body that is too large to be kept", async () => {
    const bad = await rawPeer((socket) => setTimeout(() => socket.resetAndDestroy(), 200));
    const peer = closing(await httpPeer(echo));
    const { http } = await serve([bad.port, peer.port]);
    expect((await ask(http, { method: "PUT", body: Buffer.alloc(200_000) })).status).toBe(502);
    expect(peer.accepted()).toBe(0);
  });

  it("tries another peer after a time-out by default, and not where only errors count", async () => {
    const slow = await rawPeer(() => undefined);
    const peer = closing(await httpPeer(echo));
    const byDefault = await serve([slow.port, peer.port], { readTimeout: 100 });
    expect((await ask(byDefault.http)).status).toBe(200);
    const errorsOnly = await serve([slow.port, peer.port], { readTimeout: 100, nextUpstream: ["error"] });
    expect((await ask(errorsOnly.http)).status).toBe(504);
  });

  it.each([502, 503, 504] as const)("tries another peer after a %d only where it is listed", async (status) => {
    const bad = closing(await httpPeer((_, response) => response.writeHead(status).end("bad")));
    const peer = closing(await httpPeer(echo));
    const byDefault = await serve([bad.port, peer.port]);
    expect(await ask(byDefault.http)).toMatchObject({ status, body: "bad" });
    const listed = await serve([bad.port, peer.port], { nextUpstream: [`http_${status}`] });
    expect((await ask(listed.http)).status).toBe(200);
    expect(listed.log[0]).toMatchObject({ upstreamStatus: [status, 200], attempts: 2 });
  });

  it("shows the last peer's own answer where none is left", async () => {
    const bad = closing(await httpPeer((_, response) => response.writeHead(503).end("busy")));
    const { http } = await serve([bad.port, await closedPort()], { nextUpstream: ["http_503", "error"] });
    expect((await ask(http)).status).toBe(502);
    expect(await ask(http)).toMatchObject({ status: 503, body: "busy" });
  });

  it("never tries one peer twice and stops when all have failed", async () => {
    const { http, log } = await serve([await closedPort(), await closedPort(), await closedPort()]);
    expect((await ask(http)).status).toBe(502);
    expect(log[0].attempts).toBe(3);
  });

  it("keeps to the number of tries and to the time for them", async () => {
    const dead = [await closedPort(), await closedPort(), await closedPort()];
    const tries = await serve(dead, { nextUpstreamTries: 2 });
    await ask(tries.http);
    expect(tries.log[0].attempts).toBe(2);
    const slow = await rawPeer(() => undefined);
    const timed = await serve([slow.port, ...dead], { readTimeout: 100, nextUpstreamTimeout: 50 });
    expect((await ask(timed.http)).status).toBe(504);
    expect(timed.log[0].attempts).toBe(1);
  });

  describe("that close a pooled connection just as it is used", () => {
    /** Answers the first request on a connection and closes it at the second, as a server whose idle time is over. */
    async function impatient() {
      const peer = closing(
        await tcpPeer((socket) => {
          let requests = 0;
          socket.on("data", () => {
            if (++requests > 1) socket.destroy();
            else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
          });
        }),
      );
      return serve([peer.port]);
    }

    it("are asked again on another connection", async () => {
      const { http, log } = await impatient();
      expect((await ask(http)).status).toBe(200);
      expect((await ask(http)).status).toBe(200);
      expect(log[1]).toMatchObject({ attempts: 2, upstreamStatus: [502, 200] });
    });

    it("are not asked again where they may have acted", async () => {
      const { http } = await impatient();
      expect((await ask(http)).status).toBe(200);
      expect((await ask(http, { method: "POST", body: "x" })).status).toBe(502);
    });
  });

  it("lets other hosts go on while one upstream hangs", async () => {
    const slow = await rawPeer(() => undefined);
    const { http, proxy } = await serve([slow.port], { readTimeout: 2000 });
    await proxy.apply(
      planOf(actionHost("ok.example.com", { kind: "return", status: 200, contentType: "text/plain", body: ["ok"] })),
    );
    const hanging = Promise.allSettled(Array.from({ length: 50 }, () => ask(http)));
    await eventually(() => slow.requests() === 50);
    expect((await ask(http, { host: "ok.example.com" })).body).toBe("ok");
    await proxy.close(0);
    await hanging;
  });
});
