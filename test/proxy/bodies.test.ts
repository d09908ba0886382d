import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask, whole } from "../support/http-client.js";
import { echo, httpPeer, tcpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const MIB = 1024 * 1024;
/** Far more than the socket and stream buffers on a way hold together. */
const HUGE = 64 * MIB;

async function serve(listener: Parameters<typeof httpPeer>[0], transport = {}, options = {}) {
  const peer = closing(await httpPeer(listener));
  const started = await startProxy([upstreamStep("web", [peer.port], transport), proxyHost(HOST, "web")], options);
  return { peer, ...started };
}

function upload(port: number, headers: Record<string, string> = {}) {
  const sent = request({ port, host: "127.0.0.1", method: "POST", headers: { Host: HOST, ...headers }, agent: false });
  sent.on("error", () => undefined);
  return sent;
}

describe("bodies", () => {
  it("carries a large body both ways unchanged", async () => {
    const { http } = await serve((incoming, response) => incoming.pipe(response));
    const data = randomBytes(20 * MIB);
    const answer = await ask(http, { method: "POST", body: data });
    const hash = (body: Buffer) => createHash("sha256").update(body).digest("hex");
    expect(hash(Buffer.from(answer.body, "latin1"))).toBe(hash(data));
  });

  it("reads from the client only as fast as the peer takes it", async () => {
    let paused: Socket | undefined;
    const { http } = await serve((incoming) => {
      incoming.pause();
      paused = incoming.socket;
    });
    const sent = upload(http, { "Content-Length": String(HUGE) });
    let accepted = 0;
    const part = Buffer.alloc(MIB);
    const push = (): void => {
      while (accepted < HUGE && sent.write(part, () => undefined)) accepted += part.length;
    };
    sent.on("drain", push);
    push();
    await eventually(() => paused !== undefined);
    const reached = await settledValue(() => sent.socket?.bytesWritten ?? 0);
    expect(reached).toBeGreaterThan(0);
    expect(reached).toBeLessThan(HUGE / 2);
    sent.destroy();
  });

  it("reads from the peer only as fast as the client takes it", async () => {
    let written = 0;
    const { http } = await serve((_, response) => {
      const part = Buffer.alloc(MIB);
      const push = (): void => {
        while (written < HUGE && response.write(part)) written += part.length;
        written += part.length;
      };
      response.on("drain", push);
      push();
    });
    const client = await RawClient.plain(http);
    client.socket.pause();
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await eventually(() => written > 0);
    expect(await settledValue(() => written)).toBeLessThan(HUGE / 2);
    client.destroy();
  });

  it("stops the peer's work when the client goes away during the answer", async () => {
    let gone = false;
    const { http, proxy, log } = await serve((_, response) => {
      response.on("close", () => {
        gone = true;
      });
      response.write("first");
    });
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await client.until((text) => text.includes("first"));
    client.destroy();
    await eventually(() => gone && proxy.counts().exchanges === 0);
    expect(log[0]).toMatchObject({ status: 200, aborted: true });
  });

  it("stops the peer's work when the client goes away before an answer", async () => {
    let begun = false;
    let gone = false;
    const { http, log } = await serve((_, response) => {
      begun = true;
      response.on("close", () => {
        gone = true;
      });
    });
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await eventually(() => begun);
    client.destroy();
    await eventually(() => gone && log.length === 1);
    expect(log[0]).toMatchObject({ status: 499, aborted: true, attempts: 1 });
  });

  it("breaks the peer's request off when the client goes away during its body", async () => {
    let error: Error | undefined;
    const { http, proxy } = await serve((incoming) => {
      incoming.on("error", (seen) => {
        error = seen;
      });
      incoming.resume();
    });
    const client = await RawClient.plain(http);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 100\r\n\r\nabc`);
    await eventually(() => proxy.counts().openPools === 1);
    client.destroy();
    await eventually(() => error !== undefined && proxy.counts().exchanges === 0);
  });

  it.each([
    ["a length", "Content-Length: 100\r\n\r\nabc"],
    ["chunks", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
  ])("never makes a body of %s look whole when the peer breaks off", async (_title, rest) => {
    for (const ending of ["reset", "end"] as const) {
      const peer = closing(
        await tcpPeer((socket) => {
          socket.once("data", () => {
            socket.write(`HTTP/1.1 200 OK\r\n${rest}`, () => {
              setTimeout(() => (ending === "reset" ? socket.resetAndDestroy() : socket.end()), 30);
            });
          });
        }),
      );
      const { http, https, log } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
      for (const client of [await RawClient.plain(http), await RawClient.tls(https)]) {
        client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
        const received = await client.end();
        expect(received).toContain("abc");
        expect(received).not.toContain("\r\n0\r\n");
        expect(client.received.split("\r\n\r\n")[1].length).toBeLessThan(100);
      }
      await eventually(() => log.length === 2);
      expect(log[0]).toMatchObject({ aborted: true });
    }
  });

  it("resets an HTTP/1.0 client, for whom the end of the connection would be the end of the body", async () => {
    const peer = closing(
      await tcpPeer((socket) => {
        socket.once("data", () => {
          socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
          setTimeout(() => socket.destroy(), 30);
        });
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`);
    await client.end();
    expect(client.error?.code).toBe("ECONNRESET");
  });

  it("passes an early answer on while the body is still coming", async () => {
    const { http } = await serve((_, response) => response.writeHead(401).end("no"));
    const sent = upload(http, { "Content-Length": String(10 * MIB) });
    const answered = new Promise<number>((resolve) => {
      sent.on("response", (response) => whole(response).then((answer) => resolve(answer.status)));
    });
    sent.write(Buffer.alloc(MIB));
    expect(await answered).toBe(401);
    sent.destroy();
  });

  it("answers 100 Continue once a peer takes the body", async () => {
    const { http } = await serve(echo);
    const client = await RawClient.plain(http);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n`);
    await client.until((text) => text.startsWith("HTTP/1.1 100 Continue\r\n\r\n"));
    client.write("abc");
    const received = await client.until((text) => text.includes('"body":"abc"'));
    expect(statuses(received)).toEqual([100, 200]);
    expect(received.toLowerCase()).not.toContain('"expect"');
    client.destroy();
  });

  it("refuses a body that is too large by its length, before 100 Continue", async () => {
    const { http, peer } = await serve(echo, { clientMaxBodySize: 10 });
    const client = await RawClient.plain(http);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n`);
    expect(statuses(await client.end())).toEqual([413]);
    expect(peer.accepted()).toBe(0);
  });

  it("refuses a body that turns out too large while it streams", async () => {
    let whole = false;
    const { http } = await serve(
      (incoming) => {
        incoming.on("error", () => undefined);
        incoming.on("end", () => {
          whole = true;
        });
        incoming.resume();
      },
      { clientMaxBodySize: 10 },
    );
    const client = await RawClient.plain(http);
    client.write(
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n`,
    );
    expect(statuses(await client.end())).toEqual([413]);
    expect(whole).toBe(false);
  });

  it("takes a body of exactly the limit, and any body where the limit is 0", async () => {
    const exact = await serve(echo, { clientMaxBodySize: 10 });
    expect((await ask(exact.http, { method: "POST", body: "x".repeat(10) })).status).toBe(200);
    const none = await serve(echo, { clientMaxBodySize: 0 }, { limits: { maxBodySize: 10 } });
    expect((await ask(none.http, { method: "POST", body: "x".repeat(11) })).status).toBe(200);
    const fallback = await serve(echo, {}, { limits: { maxBodySize: 10 } });
    expect((await ask(fallback.http, { method: "POST", body: "x".repeat(11) })).status).toBe(413);
  });

  it("lets a client that sends a large refused body have the answer", async () => {
    const { http } = await serve(echo, { clientMaxBodySize: 10 });
    const answer = await ask(http, { method: "POST", body: Buffer.alloc(8 * MIB) });
    expect(answer).toMatchObject({ status: 413, headers: { connection: "close" } });
  });
});

/** The value once it has stood still for a quarter of a second. */
async function settledValue(read: () => number): Promise<number> {
  let last = -1;
  for (let still = 0; still < 5; still++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = read();
    if (now !== last) still = 0;
    last = now;
  }
  return last;
}
