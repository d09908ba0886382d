import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually, type Started, startProxy } from "../support/harness.js";
import { echo, httpPeer, type Peer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n`;
const POST = `POST / HTTP/1.1\r\nHost: ${HOST}\r\n`;
/** Follows each refused request: what must never be looked at as a request of its own. */
const HIDDEN = `GET /hidden HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

type Served = Started & { peer: Peer; targets: string[] };

async function serve(options: Parameters<typeof startProxy>[1] = {}): Promise<Served> {
  const targets: string[] = [];
  const peer = closing(
    await httpPeer((request, response) => {
      targets.push(request.url ?? "");
      echo(request, response);
    }),
  );
  const started = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")], options);
  return { ...started, peer, targets };
}

/** Refused before the peer hears of the request. */
const HEADS: [title: string, request: string, status: number][] = [
  ["two Host headers", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: other.example.com\r\n\r\n`, 400],
  ["two equal Host headers", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nhOST: ${HOST}\r\n\r\n`, 400],
  ["no Host header on HTTP/1.1", "GET / HTTP/1.1\r\nX-A: b\r\n\r\n", 400],
  ["an empty Host header", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400],
  ["a second Host header behind two thousand others", `${GET}${"a:\r\n".repeat(2100)}Host: evil\r\n\r\n`, 400],
  [
    "Content-Length, then Transfer-Encoding",
    `${POST}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG`,
    400,
  ],
  [
    "Transfer-Encoding, then Content-Length",
    `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n`,
    400,
  ],
  ["Transfer-Encoding: xchunked", `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding: chunked, identity", `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding: gzip, chunked", `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding: identity", `${POST}Transfer-Encoding: identity\r\n\r\n`, 400],
  ["an empty Transfer-Encoding", `${POST}Transfer-Encoding:\r\n\r\n`, 400],
  ["a quoted Transfer-Encoding", `${POST}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding behind a vertical tab", `${POST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding before a space and a colon", `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`, 400],
  ["two Transfer-Encodings", `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`, 400],
  [
    "Transfer-Encoding with HTTP/1.0",
    `POST / HTTP/1.0\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ["two different Content-Lengths", `${POST}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`, 400],
  ["two equal Content-Lengths", `${POST}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`, 400],
  ["a list of Content-Lengths", `${POST}Content-Length: 3, 3\r\n\r\nabc`, 400],
  ["a signed Content-Length", `${POST}Content-Length: +3\r\n\r\nabc`, 400],
  ["a negative Content-Length", `${POST}Content-Length: -3\r\n\r\nabc`, 400],
  ["a hexadecimal Content-Length", `${POST}Content-Length: 0x3\r\n\r\nabc`, 400],
  ["a Content-Length beyond 64 bits", `${POST}Content-Length: 99999999999999999999\r\n\r\nabc`, 400],
  ["a folded header line", `${GET}X-A: b\r\n c\r\n\r\n`, 400],
  ["a folded Host header", `GET / HTTP/1.1\r\nHost: a\r\n ${HOST}\r\n\r\n`, 400],
  ["a space before the first header", `GET / HTTP/1.1\r\n Host: evil\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["a bare CR in a header value", `${GET}X-A: b\rX-B: c\r\n\r\n`, 400],
  ["a bare CR after the request line", `GET / HTTP/1.1\rHost: ${HOST}\r\n\r\n`, 400],
  ["a bare LF after the request line", `GET / HTTP/1.1\nHost: ${HOST}\n\n`, 400],
  ["NUL in a header value", `${GET}X-A: b\0c\r\n\r\n`, 400],
  ["NUL in a header name", `${GET}X\0A: b\r\n\r\n`, 400],
  ["NUL in the target", `GET /a\0b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["a control character in a header value", `${GET}X-A: b\x01c\r\n\r\n`, 400],
  ["a space before the colon of a header", `GET / HTTP/1.1\r\nHost : ${HOST}\r\n\r\n`, 400],
  ["a header without a colon", `${GET}nonsense\r\n\r\n`, 400],
  ["a header without a name", `${GET}: x\r\n\r\n`, 400],
  ["a space in the target", `GET /a b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["an unknown method", `FOO / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["TRACE", `TRACE / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
  ["CONNECT", `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
  ["an unknown expectation", `${GET}Expect: a-cake\r\n\r\n`, 417],
  ["HTTP/2.0 in a request line", `GET / HTTP/2.0\r\nHost: ${HOST}\r\n\r\n`, 505],
  ["HTTP/0.9", "GET /\r\n\r\n", 505],
  ["a target beyond 8 KiB", `GET /${"a".repeat(8192)} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 414],
  ["a head beyond 32 KiB", `${GET}X-A: ${"a".repeat(33 * 1024)}\r\n\r\n`, 431],
];

/** The head is fine, the body is not: the peer may have the head, never a whole request. */
const BODIES: [title: string, body: string][] = [
  ["a chunk size that is not hexadecimal", "zz\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size with 0x", "0x3\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size beyond 64 bits", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size with a space behind it", "3 \r\nabc\r\n0\r\n\r\n"],
  ["a negative chunk size", "-3\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size that ends with a bare LF", "3\nabc\r\n0\r\n\r\n"],
  ["a chunk extension with a bare LF", "3;a\nb\r\nabc\r\n0\r\n\r\n"],
  ["a Content-Length among the trailers", "3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n"],
  ["a chunk that is longer than its size", "3\r\nabcXX0\r\n\r\n"],
];

describe.each(["plain", "TLS"] as const)("refusals on the %s port", (port) => {
  const open = (served: Served) => (port === "plain" ? RawClient.plain(served.http) : RawClient.tls(served.https));

  it.each(HEADS)("refuses %s", async (_title, request, status) => {
    const served = await serve();
    const client = await open(served);
    client.write(request + HIDDEN);
    const received = await client.end();
    expect(statuses(received)).toEqual([status]);
    expect(received).toMatch(/\r\nconnection: close\r\n/i);
    expect(served.targets).toEqual([]);
    expect(served.proxy.counts().exchanges).toBe(0);
  });

  it.each(BODIES)("refuses %s", async (_title, body) => {
    const served = await serve();
    const client = await open(served);
    client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n${body}${HIDDEN}`);
    expect(statuses(await client.end())).toEqual([400]);
    await eventually(() => served.proxy.counts().exchanges === 0);
    expect(served.targets).not.toContain("/hidden");
  });
});

describe("refusals", () => {
  it("breaks a body off at the peer when a later chunk is bad", async () => {
    let broken = false;
    const peer = closing(
      await httpPeer((request) => {
        request.on("error", () => {
          broken = true;
        });
        request.resume();
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.plain(http);
    client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`);
    await eventually(() => peer.accepted() === 1);
    client.write("nonsense\r\n");
    expect(statuses(await client.end())).toEqual([400]);
    await eventually(() => broken);
  });

  it("shows nothing from the request on its error pages", async () => {
    const { http } = await serve();
    const client = await RawClient.plain(http);
    client.write("GET /<script>alert(1)</script> HTTP/1.1\r\nHost: unknown.example.com\r\nConnection: close\r\n\r\n");
    const received = await client.end();
    expect(statuses(received)).toEqual([404]);
    expect(received).not.toMatch(/script|unknown/);
  });

  it("answers 408 to a client that is slow with its head", async () => {
    const { http } = await serve({ limits: { headerTimeout: 300 } });
    const client = await RawClient.plain(http);
    client.write("GET / HTTP/1.1\r\nHost: s");
    expect(statuses(await client.end())).toEqual([408]);
  });

  it("answers 408 to a client that stops in the middle of its body", async () => {
    const { http } = await serve({ limits: { bodyTimeout: 100 } });
    const client = await RawClient.plain(http);
    client.write(`${POST}Content-Length: 10\r\n\r\nabc`);
    expect(statuses(await client.end())).toEqual([408]);
  });

  it("closes a connection that stays idle", async () => {
    const { http } = await serve({ limits: { keepAliveTimeout: 50 } });
    const client = await RawClient.plain(http);
    client.write(`${GET}\r\n`);
    expect(statuses(await client.end())).toEqual([200]);
  });

  it("takes no more connections than it is told to", async () => {
    const { http } = await serve({ limits: { maxConnections: 2 } });
    const kept = [await RawClient.plain(http), await RawClient.plain(http)];
    const extra = await RawClient.plain(http);
    expect(await extra.end()).toBe("");
    for (const client of kept) {
      client.write(`${GET}\r\n`);
      expect(statuses(await client.until((text) => text.includes("\r\n\r\n")))).toEqual([200]);
      client.destroy();
    }
  });

  it("reads a pipelined request after an answered one", async () => {
    const { http, targets } = await serve();
    const client = await RawClient.plain(http);
    client.write(`${POST}Content-Length: 3\r\n\r\nabc${HIDDEN}`);
    await client.until((text) => statuses(text).length === 2);
    expect(targets).toEqual(["/", "/hidden"]);
    client.destroy();
  });

  it("answers a whole request before nonsense on the same connection, then closes", async () => {
    const { http, targets } = await serve();
    const client = await RawClient.plain(http);
    client.write(`${GET}\r\nnonsense\r\n\r\n${HIDDEN}`);
    expect(statuses(await client.end())).toEqual([200]);
    expect(targets).toEqual(["/"]);
  });

  it("drops chunk extensions and request trailers", async () => {
    const { http } = await serve();
    const client = await RawClient.plain(http);
    client.write(`${POST}Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\n`);
    const received = await client.until((text) => text.includes('"body":"abc"'));
    expect(received).not.toMatch(/x=y|X-T/i);
    client.destroy();
  });

  it("serves HTTP/1.0 and closes after the answer", async () => {
    const { http } = await serve();
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`);
    expect(statuses(await client.end())).toEqual([200]);
  });
});
