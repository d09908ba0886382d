import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { echo, httpPeer } from "../support/peers.js";
import { actionHost, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const SEEDS = [
  `GET /a HTTP/1.1\r\nHost: ${HOST}\r\nX-A: 1\r\n\r\n`,
  `POST /b HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 5\r\n\r\nhello`,
  `POST /c HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  `GET /d HTTP/1.1\r\nHost: own.example.com\r\nConnection: close\r\n\r\n`,
  `PUT /e HTTP/1.1\r\nHost: ${HOST}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok`,
  `POST /f HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok`,
  `GET /g HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  `HEAD /h HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`,
];
const PIECES = [
  "\r",
  "\n",
  "\r\n",
  "\0",
  " ",
  ":",
  "\t",
  ",",
  "chunked",
  "Host: x\r\n",
  "Content-Length: 1\r\n",
  "0\r\n\r\n",
  "\xff",
];
const ROUNDS = 400;

/** A generator with a fixed seed (Marsaglia's xorshift32): the same inputs on every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

function mutate(text: string, below: (limit: number) => number): string {
  let changed = text;
  for (let i = 1 + below(3); i > 0; i--) {
    const at = below(changed.length);
    const piece = PIECES[below(PIECES.length)];
    const cut = below(3) === 0 ? 1 + below(4) : 0;
    changed = changed.slice(0, at) + (below(4) === 0 ? "" : piece) + changed.slice(at + cut);
  }
  return changed;
}

describe("hostile input", () => {
  it("never stops the proxy, leaves nothing behind and reaches peers as plain requests only", async () => {
    const below = numbers(20260102);
    const strange: string[] = [];
    const peer = closing(
      await httpPeer((request, response) => {
        const { headers } = request;
        if (headers["content-length"] !== undefined && headers["transfer-encoding"] !== undefined)
          strange.push("both lengths");
        if (request.rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === "host").length !== 1)
          strange.push("hosts");
        echo(request, response);
      }),
    );
    peer.server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      // A body that breaks off is how a peer learns of a client's nonsense; anything else came through.
      if (error.code !== "ECONNRESET" && error.code !== "HPE_INVALID_EOF_STATE") strange.push(error.code ?? "");
      socket.destroy();
    });
    const { proxy, http, https } = await startProxy(
      [
        upstreamStep("web", [peer.port]),
        proxyHost(HOST, "web"),
        actionHost("own.example.com", { kind: "return", status: 200, contentType: "text/plain", body: ["ok"] }),
      ],
      { limits: { bodyTimeout: 100, headerTimeout: 300, lingerTimeout: 50 } },
    );
    for (let round = 0; round < ROUNDS; round += 20) {
      const clients = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 4 === 0 ? RawClient.tls(https) : RawClient.plain(http))),
      );
      for (const client of clients) {
        const text = Array.from({ length: 1 + below(3) }, () => SEEDS[below(SEEDS.length)]).join("");
        const bytes = mutate(text, below);
        const split = below(bytes.length);
        client.write(bytes.slice(0, split));
        client.write(bytes.slice(split));
        if (below(3) === 0) client.socket.end();
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
      for (const client of clients) {
        if (below(2) === 0) client.destroy();
        else setTimeout(() => client.destroy(), 500);
      }
    }
    await eventually(() => proxy.counts().exchanges === 0 && proxy.counts().connections === 0);
    expect(strange).toEqual([]);
    expect((await ask(http)).status).toBe(200);
  }, 30_000);
});
