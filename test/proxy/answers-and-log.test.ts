import { describe, expect, it } from "vitest";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask, keepAliveAgent } from "../support/http-client.js";
import { closedPort, httpPeer } from "../support/peers.js";
import { actionHost, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

describe("answers of the proxy itself", () => {
  it("return the body, type, status and headers of a decision, bytes as they are", async () => {
    const { http } = await startProxy([
      actionHost(HOST, {
        kind: "return",
        status: 418,
        contentType: "application/json",
        body: ['{"a":"\xc3\xa9"}'],
        headers: [{ op: "add-response", name: "X-A", value: ["1"], always: true }],
      }),
    ]);
    const answer = await ask(http);
    expect(answer).toMatchObject({ status: 418, body: '{"a":"\xc3\xa9"}' });
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "x-a": "1", "content-length": "10" });
  });

  it("send no body to HEAD and with 204", async () => {
    const { http } = await startProxy([
      actionHost(HOST, { kind: "return", status: 200, contentType: "text/plain", body: ["hello"] }),
      actionHost("none.example.com", { kind: "return", status: 204, contentType: "text/plain", body: ["hello"] }),
    ]);
    const head = await ask(http, { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, body: "" });
    expect(head.headers["content-length"]).toBe("5");
    const none = await ask(http, { host: "none.example.com" });
    expect(none).toMatchObject({ status: 204, body: "" });
    expect(none.headers["content-length"]).toBeUndefined();
  });

  it("redirect to the decision's location", async () => {
    const { http } = await startProxy([
      actionHost(HOST, { kind: "redirect", status: 308, location: ["https://x/y?z"] }),
    ]);
    const answer = await ask(http);
    expect(answer.status).toBe(308);
    expect(answer.headers.location).toBe("https://x/y?z");
  });

  it("keep the connection where the client sends a body along", async () => {
    const { http, proxy } = await startProxy([]);
    const agent = keepAliveAgent();
    for (let i = 0; i < 3; i++) {
      expect((await ask(http, { agent, method: "POST", body: "x".repeat(100_000) })).status).toBe(404);
    }
    expect(proxy.counts().connections).toBe(1);
    agent.destroy();
  });

  it("close the connection where the client waits for 100 Continue", async () => {
    const { http } = await startProxy([]);
    const client = await RawClient.plain(http);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`);
    expect(await client.end()).toMatch(/^HTTP\/1.1 404 .*connection: close/is);
  });

  it("cut a client off that never ends its body", async () => {
    const { http } = await startProxy([], { limits: { lingerTimeout: 100 } });
    const client = await RawClient.plain(http);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 5\r\n\r\nab`);
    expect(await client.end()).toMatch(/^HTTP\/1.1 404 /);
  });

  it("show their own page for a status that has no body", async () => {
    const { http } = await startProxy([]);
    const answer = await ask(http);
    expect(answer.status).toBe(404);
    expect(answer.body).toContain("<h1>404 Not Found</h1>");
  });

  it("are 500 for this request alone where the table fails", async () => {
    const table = makeRoutingTable();
    const decide = table.decide.bind(table);
    table.decide = (request, random) => {
      if (request.target === "/bad") throw new Error("broken");
      return decide(request, random);
    };
    const { http, proxy } = await startProxy([], { table });
    expect((await ask(http, { path: "/bad" })).status).toBe(500);
    expect((await ask(http)).status).toBe(404);
    expect(proxy.counts().exchanges).toBe(0);
  });
});

describe("what the core is shown", () => {
  it("is the raw request, with repeated headers joined and names with an underscore left out", async () => {
    const table = makeRoutingTable();
    let seen: unknown;
    table.decide = (request) => {
      seen = {
        ...request,
        request: undefined,
        repeated: request.header("x-a"),
        cookie: request.header("cookie"),
        underscore: request.header("x_u"),
        absent: request.header("x-none"),
      };
      return { action: "return", status: 404, headers: [] };
    };
    const { http } = await startProxy([], { table });
    const client = await RawClient.plain(http);
    client.write(
      "GET http://h/%41?b=%20#c HTTP/1.1\r\nHost: H.:80\r\nX-A: 1\r\nx-a: \xe9\r\nCookie: a=1\r\nCookie: b=2\r\nX_U: 1\r\n\r\n",
    );
    await client.until((text) => text.includes("404"));
    expect(seen).toMatchObject({
      method: "GET",
      scheme: "http",
      host: "H.:80",
      target: "http://h/%41?b=%20#c",
      protocol: "HTTP/1.1",
      clientAddress: "127.0.0.1",
      clientPort: client.socket.localPort,
      repeated: "1, \xe9",
      cookie: "a=1; b=2",
    });
    expect(seen).toMatchObject({ underscore: undefined, absent: undefined });
    client.destroy();
  });
});

describe("the access log", () => {
  it("has one line a request, with route, upstream, peer, attempts and times", async () => {
    const peer = closing(await httpPeer((_, response) => response.writeHead(201).end("hello")));
    const dead = await closedPort();
    const { http, log } = await startProxy([upstreamStep("web", [dead, peer.port]), proxyHost(HOST, "web")], {
      now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 6),
      requestId: () => "id-1",
    });
    await ask(http, { path: "/a?b" });
    await eventually(() => log.length === 1);
    expect(log[0]).toMatchObject({
      time: "2026-01-02T03:04:05.006Z",
      requestId: "id-1",
      client: "127.0.0.1",
      scheme: "http",
      method: "GET",
      host: HOST,
      target: "/a?b",
      protocol: "HTTP/1.1",
      status: 201,
      bytes: 5,
      resource: "Ingress/default/shop",
      path: "/",
      upstream: "default/web:80",
      peer: `127.0.0.1:${peer.port}`,
      attempts: 2,
      upstreamStatus: [502, 201],
      upstreamErrors: ["ECONNREFUSED"],
    });
    for (const name of ["durationMs", "upstreamConnectMs", "upstreamHeaderMs", "upstreamResponseMs"]) {
      expect(log[0][name]).toBeGreaterThan(0);
    }
  });

  it("can't be forged from a request", async () => {
    const { http, log } = await startProxy([]);
    const client = await RawClient.plain(http);
    client.write('GET /"}\\u0000{"a":" HTTP/1.1\r\nHost: a","status":"200\xff\r\nX-Request-ID: "},{"\r\n\r\n');
    await client.until((text) => text.includes("404"));
    await eventually(() => log.length === 1);
    expect(log[0]).toMatchObject({ status: 404, host: 'a","status":"200\xff', target: '/"}\\u0000{"a":"' });
    client.destroy();
  });

  it("never holds credentials", async () => {
    const { http, log } = await startProxy([]);
    await ask(http, { headers: { Authorization: "Bearer s3cret", Cookie: "sid=s3cret" } });
    await eventually(() => log.length === 1);
    expect(JSON.stringify(log)).not.toContain("s3cret");
  });

  it("is not needed to serve", async () => {
    const { http, proxy } = await startProxy([], { accessLog: undefined });
    expect((await ask(http)).status).toBe(404);
    await eventually(() => proxy.counts().exchanges === 0);
  });
});
