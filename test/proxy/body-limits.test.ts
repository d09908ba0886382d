import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { echo, httpPeer } from "../support/peers.js";
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

describe("limits of bodies", () => {
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

  it("lets a client that sends its whole refused body first have the answer", async () => {
    const { http } = await serve(echo, { clientMaxBodySize: 10 });
    const client = await RawClient.plain(http);
    client.socket.pause();
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${8 * MIB}\r\n\r\n`);
    for (let sent = 0; sent < 8 * MIB; sent += MIB) {
      await new Promise((resolve) => client.socket.write(Buffer.alloc(MIB), resolve));
    }
    client.socket.resume();
    expect(statuses(await client.end())).toEqual([413]);
    expect(client.error).toBeUndefined();
  });

  it("gives a client up that takes nothing of its answer for the send time-out", async () => {
    let gone = false;
    const { http, proxy } = await serve(
      (_, response) => {
        response.on("close", () => {
          gone = true;
        });
        response.end(Buffer.alloc(HUGE));
      },
      {},
      { limits: { sendTimeout: 200 } },
    );
    const client = await RawClient.plain(http);
    client.socket.pause();
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await eventually(() => gone && proxy.counts().exchanges === 0);
    client.destroy();
  });

  it("gives a client up that does not take the end of an answer which the peer has given whole", async () => {
    let clientPort = 0;
    /** The proxy's end of the client's connection. */
    const held = () =>
      (process as unknown as { _getActiveHandles(): Socket[] })
        ._getActiveHandles()
        .find(({ remotePort, localPort }) => remotePort === clientPort && localPort === http);
    const { http, proxy } = await serve(
      (_, response) => {
        const piece = setInterval(() => {
          // Until the client's connection is full, and nothing more would be taken from the peer.
          if (held()?.writableLength === 0) response.write(Buffer.alloc(4096));
          else {
            clearInterval(piece);
            response.end();
          }
        }, 0);
      },
      {},
      { limits: { sendTimeout: 200 } },
    );
    const client = await RawClient.plain(http);
    clientPort = client.socket.localPort ?? 0;
    client.socket.pause();
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await eventually(() => proxy.counts().exchanges === 1);
    await eventually(() => proxy.counts().exchanges === 0, 20_000);
    client.destroy();
  });

  it("lets a client that sends a large refused body have the answer", async () => {
    const { http } = await serve(echo, { clientMaxBodySize: 10 });
    const answer = await ask(http, { method: "POST", body: Buffer.alloc(8 * MIB) });
    expect(answer).toMatchObject({ status: 413, headers: { connection: "close" } });
  });
});
