import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const LARGE = 64 << 20;
const POST = `POST / HTTP/1.1\r\nHost: ${HOST}\r\n`;

type Protocol = "http" | "grpc";

/** An answer to GET, and to the request of somebody who does not read it, but none to POST. */
const answer = (method = "", path = "") =>
  path === "/large" ? Buffer.alloc(LARGE) : method === "GET" ? "x" : undefined;

/** A peer that counts requests of GET. */
async function countingPeer(protocol: Protocol): Promise<{ port: number; asked: () => number }> {
  let asked = 0;
  const count = (method: string | undefined, path: string | undefined) => {
    if (method === "GET" && path === "/") asked++;
    return answer(method, path);
  };
  if (protocol === "http") {
    const peer = closing(
      await httpPeer((request, response) => {
        request.on("error", () => {}).resume();
        const body = count(request.method, request.url);
        if (body !== undefined) response.end(body);
      }),
    );
    return { port: peer.port, asked: () => asked };
  }
  const server = createServer();
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {}).resume();
    const body = count(headers[":method"], headers[":path"]);
    if (body === undefined) return;
    stream.respond({ ":status": 200 });
    stream.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => void server.close());
  return { port: (server.address() as AddressInfo).port, asked: () => asked };
}

/** What a client does, and the status that NGINX logs for it. */
const MISBEHAVIOURS: [string, number, (port: number) => Promise<RawClient>][] = [
  [
    "stalls in the middle of its body",
    408,
    async (port) => {
      const client = await RawClient.plain(port);
      client.write(`${POST}Content-Length: 100\r\n\r\nabc`);
      return client;
    },
  ],
  [
    "sends a chunk without a length",
    400,
    async (port) => {
      const client = await RawClient.plain(port);
      client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno length\r\n`);
      return client;
    },
  ],
  [
    "leaves before it has an answer",
    499,
    async (port) => {
      const client = await RawClient.plain(port);
      client.write(`${POST}Content-Length: 3\r\n\r\nabc`);
      client.socket.end();
      return client;
    },
  ],
  [
    "does not read its answer",
    200,
    async (port) => {
      const client = await RawClient.plain(port);
      client.socket.pause();
      client.write(`GET /large HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
      return client;
    },
  ],
];

describe.skipIf(noNginx).each<Protocol>(["http", "grpc"])(
  "no peer (%s) of NGINX is out because a client",
  (protocol) => {
    it.each(MISBEHAVIOURS)("%s", async (_title, status, misbehave) => {
      const peers = await Promise.all([countingPeer(protocol), countingPeer(protocol)]);
      const ports = peers.map(({ port }) => port);
      const limits = { maxFails: 1, failTimeout: 600_000 };
      const edit = (text: string) => text.replace(/(client_body_timeout|send_timeout) 60s/g, "$1 500ms");
      const nginx = await RequestNginx.start(
        [upstreamStep("web", ports, { protocol }, { limits }), proxyHost(HOST, "web")],
        { edit },
      );
      const client = await misbehave(nginx.http);
      cleanup(() => client.destroy());
      expect((await nginx.logLines(1)).map((line) => line.status)).toEqual([status]);
      for (let i = 0; i < 4; i++) expect((await ask(nginx.http)).status).toBe(200);
      expect(peers.map(({ asked }) => asked())).toEqual([2, 2]);
    });
  },
);
