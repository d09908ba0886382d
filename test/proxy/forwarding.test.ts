import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, startProxy } from "../support/harness.js";
import { ask, keepAliveAgent } from "../support/http-client.js";
import { type Echo, echo, httpPeer, httpsPeer } from "../support/peers.js";
import { actionHost, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function startEcho(options: Parameters<typeof startProxy>[1] = {}) {
  const peer = closing(await httpPeer(echo));
  return { peer, ...(await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")], options)) };
}

async function echoed(port: number, options: Parameters<typeof ask>[1] = {}): Promise<Echo> {
  const answer = await ask(port, options);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.body) as Echo;
}

describe("forwarding", () => {
  it("passes method, raw target and body to the peer", async () => {
    const { http } = await startEcho();
    const seen = await echoed(http, { method: "POST", path: "/a//b/%2e?x=%20&y=[1]", body: "hello" });
    expect(seen).toMatchObject({ method: "POST", target: "/a//b/%2e?x=%20&y=[1]", body: "hello" });
    expect(seen.headers["content-length"]).toBe("5");
  });

  it("passes the Host header as the client sent it", async () => {
    const { http } = await startEcho();
    const seen = await echoed(http, { host: "Shop.Example.com:8080" });
    expect(seen.headers.host).toBe("Shop.Example.com:8080");
  });

  it("passes a chunked body on as a chunked body", async () => {
    const { http } = await startEcho();
    const seen = await echoed(http, { method: "PUT", headers: { "Transfer-Encoding": "chunked" }, body: "abc" });
    expect(seen.body).toBe("abc");
    expect(seen.headers["transfer-encoding"]).toBe("chunked");
  });

  it("tells the peer who the client is and how it came", async () => {
    const { http } = await startEcho();
    const { headers } = await echoed(http);
    expect(headers).toMatchObject({
      "x-real-ip": "127.0.0.1",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": HOST,
      "x-forwarded-port": String(http),
    });
  });

  it("replaces what an untrusted client claims about itself", async () => {
    const { http } = await startEcho();
    const { headers } = await echoed(http, {
      headers: {
        "X-Forwarded-For": "1.2.3.4",
        "X-Real-IP": "1.2.3.4",
        "X-Forwarded-Proto": "https",
        Forwarded: "for=1.2.3.4",
      },
    });
    expect(headers).toMatchObject({
      "x-forwarded-for": "127.0.0.1",
      "x-real-ip": "127.0.0.1",
      "x-forwarded-proto": "http",
    });
    expect(headers.forwarded).toBeUndefined();
  });

  it("believes a trusted proxy about the client and adds it to X-Forwarded-For", async () => {
    const { http, log } = await startEcho({ trustedProxies: ["127.0.0.0/8", "10.0.0.0/8"] });
    const { headers } = await echoed(http, {
      headers: { "X-Forwarded-For": "6.6.6.6, 1.2.3.4, 10.0.0.9", "X-Forwarded-Proto": "https" },
    });
    expect(headers["x-forwarded-for"]).toBe("6.6.6.6, 1.2.3.4, 10.0.0.9, 127.0.0.1");
    expect(headers).toMatchObject({ "x-real-ip": "1.2.3.4", "x-forwarded-proto": "https" });
    expect(log[0].client).toBe("1.2.3.4");
  });

  it("keeps a sane request id and replaces any other", async () => {
    const { http } = await startEcho({ requestId: () => "made-here" });
    expect((await echoed(http, { headers: { "X-Request-ID": "abc-123" } })).headers["x-request-id"]).toBe("abc-123");
    for (const bad of ["a b", "x".repeat(129), "é"]) {
      expect((await echoed(http, { headers: { "X-Request-ID": bad } })).headers["x-request-id"]).toBe("made-here");
    }
  });

  it("removes hop-by-hop headers and what Connection names", async () => {
    const { http } = await startEcho();
    const { headers } = await echoed(http, {
      headers: {
        Connection: "close, X-Secret-Hop",
        "X-Secret-Hop": "1",
        "Keep-Alive": "timeout=5",
        "Proxy-Connection": "keep-alive",
        "Proxy-Authorization": "Basic x",
        TE: "gzip, trailers;q=0.5",
        "X-Kept": "1",
      },
    });
    for (const name of ["x-secret-hop", "keep-alive", "proxy-connection", "proxy-authorization"]) {
      expect(headers[name]).toBeUndefined();
    }
    expect(headers).toMatchObject({ te: "trailers", "x-kept": "1" });
  });

  it("does not let Connection take the client's identity headers away", async () => {
    const { http } = await startEcho();
    const { headers } = await echoed(http, { headers: { Connection: "close, X-Forwarded-For, X-Real-IP, Host" } });
    expect(headers).toMatchObject({ "x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", host: HOST });
  });

  it("drops header names with an underscore unless they are allowed", async () => {
    const dropping = await startEcho();
    expect((await echoed(dropping.http, { headers: { x_user: "1" } })).headers.x_user).toBeUndefined();
    const allowing = await startEcho({ allowUnderscoreHeaders: true });
    expect((await echoed(allowing.http, { headers: { x_user: "1" } })).headers.x_user).toBe("1");
  });

  it("keeps repeated request headers apart and in order", async () => {
    const { http } = await startEcho();
    const { raw } = await echoed(http, { headers: { "X-A": ["1", "2"], "X-B": "3" } });
    const own = raw.flatMap((name, i) => (i % 2 === 0 && /^X-[AB]$/.test(name) ? [`${name}=${raw[i + 1]}`] : []));
    expect(own).toEqual(["X-A=1", "X-A=2", "X-B=3"]);
  });

  it("keeps repeated response headers apart, in order and as spelled", async () => {
    const peer = closing(
      await httpPeer((_, response) =>
        response.writeHead(200, ["Set-Cookie", "a=1", "X-Odd-CASE", "x", "Set-Cookie", "b=2"]).end(),
      ),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const { raw } = await ask(http);
    expect(raw.slice(0, 6)).toEqual(["Set-Cookie", "a=1", "X-Odd-CASE", "x", "Set-Cookie", "b=2"]);
  });

  it("hides the peer's Date, Server and X-Accel headers and sends its own", async () => {
    const peer = closing(
      await httpPeer((_, response) => {
        response
          .writeHead(200, { Date: "yesterday", Server: "secret/1.2", "X-Accel-Expires": "1", "X-Pad": "1" })
          .end();
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const { headers } = await ask(http);
    expect(headers.server).toBe("njet-kic");
    expect(Number.isNaN(Date.parse(headers.date ?? ""))).toBe(false);
    expect(headers["x-accel-expires"] ?? headers["x-pad"]).toBeUndefined();
  });

  it("carries out the header changes of a decision", async () => {
    const peer = closing(
      await httpPeer((request, response) => {
        response
          .writeHead(200, { "X-Hide-Me": "1", Server: "own/1", "X-Seen": JSON.stringify(request.headers) })
          .end("ok");
      }),
    );
    const { http } = await startProxy([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web", [
        { op: "set-request", name: "X-Set", value: ["one"] },
        { op: "set-request", name: "X-Gone", value: [""] },
        { op: "set-request", name: "Host", value: ["inner.example.com"] },
        { op: "hide-response", name: "x-hide-me" },
        { op: "pass-response", name: "server" },
        { op: "add-response", name: "X-Added", value: ["yes"], always: false },
      ]),
    ]);
    const { headers } = await ask(http, { headers: { "X-Set": "client", "X-Gone": "client" } });
    const seen = JSON.parse(headers["x-seen"] as string) as Record<string, string>;
    expect(seen).toMatchObject({ "x-set": "one", host: "inner.example.com" });
    expect(seen["x-gone"]).toBeUndefined();
    expect(headers).toMatchObject({ "x-added": "yes", server: "own/1" });
    expect(headers["x-hide-me"]).toBeUndefined();
  });

  it("adds a response header to errors only where it is marked always", async () => {
    const peer = closing(await httpPeer((_, response) => response.writeHead(500).end()));
    const { http } = await startProxy([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web", [
        { op: "add-response", name: "X-Plain", value: ["1"], always: false },
        { op: "add-response", name: "X-Always", value: ["1"], always: true },
      ]),
    ]);
    const { headers } = await ask(http);
    expect(headers["x-always"]).toBe("1");
    expect(headers["x-plain"]).toBeUndefined();
  });

  it("makes header injection through a decision impossible", async () => {
    const peer = closing(await httpPeer(echo));
    const { http } = await startProxy([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web", [
        { op: "set-request", name: "X-In", value: ["a\r\nX-Evil: 1"] },
        { op: "set-request", name: "Bad\r\nName", value: ["a"] },
        { op: "set-request", name: "Transfer-Encoding", value: ["chunked"] },
        { op: "add-response", name: "X-Out", value: ["a\r\nX-Evil: 1\0"], always: true },
      ]),
      actionHost("r.example.com", { kind: "redirect", status: 302, location: ["/a\r\nX-Evil: 1"] }),
    ]);
    const answer = await ask(http);
    expect(answer.headers["x-out"]).toBe("a%0D%0AX-Evil: 1%00");
    const seen = (JSON.parse(answer.body) as Echo).headers;
    expect(seen["x-in"]).toBe("a%0D%0AX-Evil: 1");
    expect(seen["x-evil"]).toBeUndefined();
    expect(seen["transfer-encoding"]).toBeUndefined();
    const redirect = (await ask(http, { host: "r.example.com" })).headers;
    expect(redirect.location).toMatch(/^\/a.*X-Evil/);
    expect(redirect["x-evil"]).toBeUndefined();
  });

  it("answers HEAD, 204 and 304 without a body and keeps the connection in step", async () => {
    const peer = closing(
      await httpPeer((request, response) => {
        if (request.url === "/204") response.writeHead(204).end();
        else if (request.url === "/304") response.writeHead(304, { ETag: '"x"' }).end();
        else response.writeHead(200, { "Content-Length": "5" }).end("hello");
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.plain(http);
    const head = (method: string, path: string) => `${method} ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
    client.write(head("HEAD", "/") + head("GET", "/204") + head("GET", "/304") + head("GET", "/"));
    await client.until((text) => text.endsWith("hello"));
    expect(statuses(client.received)).toEqual([200, 204, 304, 200]);
    expect(client.received.split("hello").length).toBe(2);
    client.destroy();
  });

  it("passes trailers to a client that asks for them", async () => {
    const peer = closing(
      await httpPeer((_, response) => {
        response.writeHead(200, { Trailer: "X-Sum" });
        response.write("body");
        response.addTrailers({ "X-Sum": "42" });
        response.end();
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    expect((await ask(http, { headers: { TE: "trailers" } })).trailers).toEqual({ "x-sum": "42" });
    expect((await ask(http)).trailers).toEqual({});
  });

  it("reuses connections to a peer", async () => {
    const { http, peer } = await startEcho();
    for (let i = 0; i < 20; i++) await echoed(http, { method: "POST", body: "x" });
    expect(peer.accepted()).toBe(1);
  });

  it("closes each connection to a peer where keep-alive is off", async () => {
    const peer = closing(await httpPeer(echo));
    const { http } = await startProxy([upstreamStep("web", [peer.port], { keepalive: 0 }), proxyHost(HOST, "web")]);
    for (let i = 0; i < 3; i++) await echoed(http);
    expect(peer.accepted()).toBe(3);
  });

  it("keeps the client's connection for further requests", async () => {
    const { http, proxy } = await startEcho();
    const agent = keepAliveAgent();
    for (let i = 0; i < 5; i++) await echoed(http, { agent, method: "POST", body: "x" });
    expect(proxy.counts().connections).toBe(1);
    agent.destroy();
  });

  it("talks TLS to peers, one connection for many hosts", async () => {
    const peer = closing(await httpsPeer(echo));
    const { http } = await startProxy([
      upstreamStep("web", [peer.port], { tls: true }),
      proxyHost(HOST, "web"),
      proxyHost("other.example.com", "web"),
    ]);
    for (const host of [HOST, "other.example.com", HOST])
      expect((await echoed(http, { host })).headers.host).toBe(host);
    expect(peer.accepted()).toBe(1);
  });

  it("ignores interim answers of a peer", async () => {
    const peer = closing(
      await httpPeer((_, response) => {
        response.writeEarlyHints({ link: "</style.css>; rel=preload" });
        response.end("ok");
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    expect(await ask(http)).toMatchObject({ status: 200, body: "ok" });
  });

  it("sends an answer's head before its first body byte is there", async () => {
    const peer = closing(
      await httpPeer((_, response) => {
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        response.flushHeaders();
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    expect(await client.until((text) => text.includes("\r\n\r\n"))).toContain("text/event-stream");
    client.destroy();
  });
});
