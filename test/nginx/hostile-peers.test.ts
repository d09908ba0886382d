import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closing, runCleanups } from "../support/harness.js";
import { tcpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";
import { askHttp2 } from "../support/raw-http2.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

const HOST = "shop.example.com";
const LIMITED = "limited.example.com";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SWITCHING = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello";
const EVIL = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
const UPGRADE: [string, string][] = [
  ["connection", "upgrade"],
  ["upgrade", "websocket"],
];

describe.skipIf(noNginx)("a peer behind NGINX", () => {
  let nginx: RequestNginx;
  /** What the peer sends for each request. */
  let answer = OK;
  let heard = "";

  beforeAll(async () => {
    const peer = await tcpPeer((socket) => {
      socket.on("data", (part) => {
        heard += part.toString("latin1");
        if (!heard.includes("\r\n\r\n")) return;
        socket.write(answer, "latin1");
        setTimeout(() => socket.end(), 20);
      });
    });
    closing(peer);
    nginx = await RequestNginx.start([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web"),
      upstreamStep("limited", [peer.port], { clientMaxBodySize: 100 }),
      proxyHost(LIMITED, "limited"),
    ]);
  }, 60_000);
  afterAll(runCleanups);

  /** Everything that comes for a request and one behind it, the second with a good answer. */
  async function exchange(sent: string, headers = ""): Promise<string> {
    answer = sent;
    heard = "";
    const client = await RawClient.plain(nginx.http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n${headers}\r\n`);
    return client.end(20_000);
  }

  function overHttp2(path: string, host = HOST, more: [string, string][] = [], body?: string) {
    heard = "";
    const head: [string, string][] = [
      [":method", "GET"],
      [":scheme", "https"],
      [":path", path],
      [":authority", host],
    ];
    return askHttp2(nginx.https, [...head, ...more], body);
  }

  it.each([
    ["an interim answer, for which NGINX does not wait for the final one", `HTTP/1.1 103 Early Hints\r\n\r\n${EVIL}`],
    ["100 without being asked", `HTTP/1.1 100 Continue\r\n\r\n${EVIL}`],
    ["101 without being asked", SWITCHING],
    ["the status 000", OK.replace("200", "000")],
    ["the status 099", OK.replace("200", "099")],
    ["the status 600", OK.replace("200", "600")],
    ["the status 999", OK.replace("200", "999")],
  ])("that answers %s gives 502", async (_title, sent) => {
    const received = await exchange(sent);
    expect(statuses(received)).toEqual([502]);
    expect(received).not.toMatch(/evil|hello/);
  });

  it.each([
    ["no HTTP at all", `garbage\r\n\r\n${EVIL}`],
    ["zero bytes", "\0\0\0\0"],
    ["a status of four digits", OK.replace("200", "2000")],
    ["a bare CR in its reason", OK.replace("OK", "O\rX-B: K")],
  ])("that answers %s gives nothing to the client, whose connection ends", async (_title, sent) => {
    expect(await exchange(sent)).toBe("");
  });

  it("that is no HTTP server gives nothing to a client of HTTP/2 either", async () => {
    answer = `garbage\r\n\r\n${EVIL}`;
    expect(await overHttp2("/")).toEqual({ heads: 0, body: "", reset: true });
  });

  it.each([
    ["where the client has asked for h2c", "Upgrade: h2c\r\n"],
    ["where the client's Connection does not say so", "Upgrade: websocket\r\n"],
  ])("makes no tunnel %s", async (_title, headers) => {
    const received = await exchange(SWITCHING, headers);
    expect(statuses(received)).toEqual([502]);
    expect(heard).not.toMatch(/upgrade/i);
  });

  it("makes no tunnel of a stream of HTTP/2, and the worker goes on", async () => {
    const { workers } = await nginx.client.state();
    answer = SWITCHING;
    for (const headers of [UPGRADE, UPGRADE.slice(1)]) {
      const { body } = await overHttp2("/", HOST, headers);
      expect(body).toContain("502 Bad Gateway");
      expect(heard).not.toMatch(/upgrade/i);
    }
    expect((await nginx.client.state()).workers.map(({ pid }) => pid)).toEqual(workers.map(({ pid }) => pid));
    expect(nginx.errorLog()).not.toContain("[alert]");
  });

  it("gets no body of a GET over HTTP/2 beyond the limit, though nothing states its length", async () => {
    answer = OK;
    expect((await overHttp2("/", LIMITED, [], "a".repeat(100))).body).toBe("ok");
    expect((await overHttp2("/", LIMITED, [], "a".repeat(101))).body).toContain("413 Payload Too Large");
    expect(heard).toBe("");
  });

  it("can't send a client elsewhere inside NGINX, nor show what is about its own connection", async () => {
    const headers = [
      "X-Accel-Redirect: @https_0",
      "X-Accel-Limit-Rate: 1",
      "Upgrade: h2,h2c",
      "Trailer: X",
      "Proxy-Authenticate: x",
      "Keep-Alive: timeout=9",
      "Location: http://upstream_balancer/x",
    ];
    const received = await exchange(OK.replace("\r\n", `\r\n${headers.join("\r\n")}\r\n`));
    expect(statuses(received)).toEqual([200]);
    expect(received).not.toMatch(/^(x-accel|upgrade|trailer|proxy-authenticate|keep-alive)/im);
    expect(received).toContain("\r\nLocation: http://upstream_balancer/x\r\n");
  });

  it("hears nothing of trailers that are not passed on", async () => {
    await exchange(OK, "Trailer: X-Sum\r\n");
    expect(heard).not.toMatch(/trailer/i);
  });

  it("is asked for the target of an absolute form without a path, as one with a port is", async () => {
    answer = OK;
    for (const host of [HOST, `${HOST}:80`]) {
      heard = "";
      const client = await RawClient.plain(nginx.http);
      client.write(`GET http://${host}?q HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(statuses(await client.end(20_000))).toEqual([200]);
      expect(heard).toMatch(/^GET \/\?q HTTP/);
    }
  });

  it("leaves a log of JSON, whatever it answers and whatever clients break off", async () => {
    await exchange(OK.replace("200", "000"));
    await exchange("garbage\r\n\r\n");
    await overHttp2("/x\r\nHost: evil");
    await exchange(OK, "X-Request-ID: last\r\n");
    const log = () => nginx.accessLog();
    await nginx.logged(HOST, 1);
    expect(log().every(({ status }) => typeof status === "number")).toBe(true);
    expect(log().some(({ status }) => status === 0)).toBe(true);
  });
});
