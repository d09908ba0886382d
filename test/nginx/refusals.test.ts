import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BODIES, GET, HEADS, HIDDEN, HOST, POST } from "../proxy/refused-requests.js";
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
/** Refused by NGINX's own parser with another status. */
const STATUSES = new Map([
  ["CONNECT", 400],
  ["a second Host header behind two thousand others", 431],
]);
/** Passed on as it is: what follows from it is the peer's to say. */
const PASSED = ["a control character in a header value", "an unknown method"];
/** It has no head of an answer. */
const HEADLESS = "HTTP/0.9";

describe.skipIf(noNginx)("NGINX", () => {
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

  it.each(HEADS.filter(([title]) => ![...READ, ...PASSED, HEADLESS].includes(title)))(
    "refuses %s",
    async (title, request, status) => {
      const client = await RawClient.plain(nginx.http);
      client.write(request + HIDDEN);
      const received = await client.end(20_000);
      expect(statuses(received)).toEqual([STATUSES.get(title) ?? status]);
      expect(received).toMatch(/\r\nconnection: close\r\n/i);
      expect(targets).toEqual([]);
    },
  );

  it.each(HEADS.filter(([title]) => PASSED.includes(title)))(
    "leaves %s to the peer",
    async (_title, request, status) => {
      const client = await RawClient.plain(nginx.http);
      client.write(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
      const received = await client.end(20_000);
      // The peer is Node, which refuses it.
      expect(statuses(received)).toEqual([status]);
      expect(received).not.toContain("<html>");
    },
  );

  it("refuses HTTP/0.9, whose answers have no head", async () => {
    const client = await RawClient.plain(nginx.http);
    client.write(`GET /\r\n\r\n${HIDDEN}`);
    expect(await client.end(20_000)).toMatch(/^<!DOCTYPE html>\n<html><head><title>505 HTTP Version Not Supported/);
    expect(targets).toEqual([]);
  });

  it.each(BODIES.filter(([title]) => !READ.includes(title)))("refuses %s", async (_title, body) => {
    const client = await RawClient.plain(nginx.http);
    client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n${body}${HIDDEN}`);
    expect(statuses(await client.end(20_000))).toEqual([400]);
    expect(targets).not.toContain("/hidden");
  });

  const heads = HEADS.filter(([title]) => READ.includes(title)).map(([title, request]) => ({
    title,
    request,
    body: "",
  }));
  const bodies = BODIES.filter(([title]) => READ.includes(title)).map(([title, body]) => {
    return { title, request: `${POST}Transfer-Encoding: chunked\r\n\r\n${body}`, body: "abc" };
  });
  it.each([...heads, ...bodies])("passes $title on in the one way in which it reads it", async ({ request, body }) => {
    const client = await RawClient.plain(nginx.http);
    client.write(`${request}GET /next HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    const received = await client.end(20_000);
    expect(statuses(received)).toEqual([200, 200]);
    expect(targets).toEqual(["/", "/next"]);
    const seen = JSON.parse(/^\{.*\}/m.exec(received)?.[0] ?? "") as Echo;
    expect(seen.body).toBe(body);
    expect(seen.headers["transfer-encoding"] ?? seen.headers.expect).toBeUndefined();
    expect(seen.headers["content-length"] ?? "0").toBe(String(body.length));
  });

  it("shows nothing from the request on its pages", async () => {
    const client = await RawClient.plain(nginx.http);
    client.write("GET /<script>alert(1)</script> HTTP/1.1\r\nHost: unknown.example.com\r\nConnection: close\r\n\r\n");
    const received = await client.end(20_000);
    expect(statuses(received)).toEqual([404]);
    expect(received).not.toMatch(/script|unknown/);
  });

  it("answers a whole request before nonsense on the same connection, then refuses that", async () => {
    const client = await RawClient.plain(nginx.http);
    client.write(`${GET}\r\nnonsense\r\n\r\n${HIDDEN}`);
    expect(statuses(await client.end(20_000))).toEqual([200, 400]);
    expect(targets).toEqual(["/"]);
  });

  it("closes a connection on HTTP/1.0", async () => {
    const client = await RawClient.plain(nginx.http);
    client.write(`GET / HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`);
    expect(statuses(await client.end(20_000))).toEqual([200]);
  });
});
