import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BODIES, GET, HEADS, HIDDEN, HOST, POST } from "../proxy/malformed-requests.js";
import { runCleanups } from "../support/harness.js";
import { echo, httpPeer, type Peer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";
import { noNginx, OVER_OPENNJET } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

/**
 * Where NGINX takes what the embedded proxy refuses. None of it can be understood in two ways: NGINX reads it as one request,
 * and writes its own head and length for the peer.
 */
const TAKEN = new Set([
  "a second Host header behind two thousand others",
  "a bare LF after the request line",
  "a control character in a header value",
  "a header without a colon",
  "an unknown method",
  "an unknown expectation",
  "a chunk size with a space behind it",
  "a chunk size that ends with a bare LF",
  "a chunk extension with a bare LF",
  "a Content-Length among the trailers",
  // Refused, but an answer of HTTP/0.9 has no head.
  "HTTP/0.9",
]);
/** NGINX can't make sense of the target. */
const OTHER_STATUS: Record<string, number> = { CONNECT: 400 };

/** What is refused as ever, by a proxy that reads the next request of the connection: see test/opennjet/real-requests. */
const READ_ON = new Set(OVER_OPENNJET ? ["CONNECT"] : []);

describe.skipIf(noNginx)("refusals of NGINX", () => {
  let nginx: RequestNginx;
  let peer: Peer;
  const targets: string[] = [];

  beforeAll(async () => {
    peer = await httpPeer((request, response) => {
      targets.push(request.url ?? "");
      echo(request, response);
    });
    nginx = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
  }, 60_000);
  afterAll(async () => {
    await runCleanups();
    await peer.close();
  });

  for (const port of ["plain", "TLS"] as const) {
    const open = () => (port === "plain" ? RawClient.plain(nginx.http) : RawClient.tls(nginx.https));

    it.each(HEADS.filter(([title]) => !TAKEN.has(title) && !READ_ON.has(title)))(
      `on the ${port} port: %s`,
      async (title, request, wanted) => {
        const status = OTHER_STATUS[title] ?? wanted;
        targets.length = 0;
        const client = await open();
        client.write(request + HIDDEN);
        const received = await client.end(10_000);
        expect(statuses(received)).toEqual([status]);
        expect(received).toMatch(/\r\nconnection: close\r\n/i);
        expect(received).toContain(`<h1>${status} `);
        expect(targets).toEqual([]);
      },
    );

    it.each(BODIES.filter(([title]) => !TAKEN.has(title)))(`on the ${port} port: %s`, async (_title, body) => {
      targets.length = 0;
      const client = await open();
      client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n${body}${HIDDEN}`);
      expect(statuses(await client.end(10_000))).toEqual([400]);
      expect(targets).toEqual([]);
    });
  }

  it("show nothing from the request", async () => {
    const client = await RawClient.plain(nginx.http);
    client.write("GET /<script>alert(1)</script> HTTP/1.1\r\nHost: unknown.example.com\r\nConnection: close\r\n\r\n");
    const received = await client.end();
    expect(statuses(received)).toEqual([404]);
    expect(received).not.toMatch(/script|unknown/);
  });

  it("leave no way to ask for the page of an error by its name", async () => {
    for (const target of ["//njet-kic/page", "/%2Fnjet-kic/page", "/x/..//njet-kic/page"]) {
      targets.length = 0;
      const client = await RawClient.plain(nginx.http);
      client.write(`GET ${target} HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
      expect(statuses(await client.end())).toEqual([200]);
      expect(targets).toEqual([target]);
    }
  });

  it("read a pipelined request after an answered one", async () => {
    targets.length = 0;
    const client = await RawClient.plain(nginx.http);
    client.write(`${POST}Content-Length: 3\r\n\r\nabc${GET}Connection: close\r\n\r\n`);
    expect(statuses(await client.end())).toEqual([200, 200]);
    expect(targets).toEqual(["/", "/"]);
  });
});
