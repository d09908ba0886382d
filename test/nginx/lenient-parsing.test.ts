import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BODIES, HEADS, HIDDEN, HOST, POST } from "../proxy/malformed-requests.js";
import { runCleanups } from "../support/harness.js";
import { type Echo, echo, httpPeer, type Peer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

/** What NGINX's own parser reads in one way, where the embedded proxy refuses. The peer gets that reading, written anew. */
const READ = [
  "a bare LF after the request line",
  "a header without a colon",
  "an unknown expectation",
  "a chunk size with a space behind it",
  "a chunk size that ends with a bare LF",
  "a Content-Length among the trailers",
];
/** Passed on as it is: what follows from it is the peer's to say. */
const PASSED = ["a control character in a header value", "an unknown method"];

describe.skipIf(noNginx)("where NGINX's parser takes more than the embedded proxy", () => {
  const targets: string[] = [];
  let peer: Peer;
  let nginx: RequestNginx;

  beforeAll(async () => {
    peer = await httpPeer((request, response) => {
      targets.push(request.url ?? "");
      echo(request, response);
    });
    nginx = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
  }, 60_000);
  beforeEach(() => {
    targets.length = 0;
  });
  afterAll(async () => {
    await runCleanups();
    await peer.close();
  });

  const heads = HEADS.filter(([title]) => READ.includes(title)).map(([title, request]) => {
    return { title, request, body: "" };
  });
  const bodies = BODIES.filter(([title]) => READ.includes(title)).map(([title, body]) => {
    return { title, request: `${POST}Transfer-Encoding: chunked\r\n\r\n${body}`, body: "abc" };
  });
  it.each([...heads, ...bodies])(
    "$title is passed on in the one way in which it is read",
    async ({ request, body }) => {
      const client = await RawClient.plain(nginx.http);
      client.write(`${request}GET /next HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
      const received = await client.end(20_000);
      expect(statuses(received)).toEqual([200, 200]);
      expect(targets).toEqual(["/", "/next"]);
      const seen = JSON.parse(/^\{.*\}/m.exec(received)?.[0] ?? "") as Echo;
      expect(seen.body).toBe(body);
      expect(seen.headers["transfer-encoding"] ?? seen.headers.expect).toBeUndefined();
      expect(seen.headers["content-length"] ?? "0").toBe(String(body.length));
    },
  );

  it.each(HEADS.filter(([title]) => PASSED.includes(title)))(
    "%s is left to the peer",
    async (_title, request, status) => {
      const client = await RawClient.plain(nginx.http);
      client.write(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
      const received = await client.end(20_000);
      // The peer is Node, which refuses it.
      expect(statuses(received)).toEqual([status]);
      expect(received).not.toContain("<html>");
    },
  );

  it("HTTP/0.9 gets the page of a 505, as its answers have no head", async () => {
    const client = await RawClient.plain(nginx.http);
    client.write(`GET /\r\n\r\n${HIDDEN}`);
    expect(await client.end(20_000)).toMatch(/^<!DOCTYPE html>\n<html><head><title>505 HTTP Version Not Supported/);
    expect(targets).toEqual([]);
  });

  it("a head with more headers than NGINX takes is refused, whatever stands behind them", async () => {
    const found = HEADS.find(([title]) => title.startsWith("a second Host header behind"));
    const client = await RawClient.plain(nginx.http);
    client.write(`${found?.[1]}${HIDDEN}`);
    expect(["400", "431"]).toContain(String(statuses(await client.end(20_000))));
    expect(targets).toEqual([]);
  });
});
