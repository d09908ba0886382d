import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { type Echo, echo, httpPeer, httpsPeer } from "../support/peers.js";
import { actionHost, proxyHost, upstreamStep } from "../support/plans.js";
import { noNginx } from "./installation.js";
import { RequestNginx, type RequestNginxOptions } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function startEcho(options: RequestNginxOptions = {}) {
  const peer = closing(await httpPeer(echo));
  return {
    peer,
    nginx: await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")], options),
  };
}

async function echoed(port: number, options: Parameters<typeof ask>[1] = {}): Promise<Echo> {
  const answer = await ask(port, options);
  expect(answer.status, answer.body).toBe(200);
  return JSON.parse(answer.body) as Echo;
}

describe.skipIf(noNginx)("NGINX", () => {
  it("passes method, raw target, Host header and body to the peer", async () => {
    const { nginx } = await startEcho();
    const options = { method: "POST", host: "Shop.Example.com:8080", path: "/a//b/%2e?x=%20&y=[1]", body: "hello" };
    const seen = await echoed(nginx.http, options);
    expect(seen).toMatchObject({ method: "POST", target: "/a//b/%2e?x=%20&y=[1]", body: "hello" });
    expect(seen.headers).toMatchObject({ "content-length": "5", host: "Shop.Example.com:8080" });
  });

  it("says who the client is, and believes nothing that it says of itself", async () => {
    const { nginx } = await startEcho();
    const claims = {
      "X-Forwarded-For": "1.2.3.4",
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Host": "evil",
      "X-Forwarded-Port": "1",
      "X-Real-IP": "1.2.3.4",
      Forwarded: "for=1.2.3.4",
    };
    const { headers } = await echoed(nginx.http, { headers: claims });
    expect(headers).toMatchObject({
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": HOST,
      "x-forwarded-port": String(nginx.http),
      "x-real-ip": "127.0.0.1",
    });
    expect(headers.forwarded).toBeUndefined();
    expect(headers["x-request-id"]).toMatch(/^[0-9a-f]{32}$/);
  });

  it("gives each request that has no id one of its own, and keeps the id of one that has", async () => {
    const { nginx } = await startEcho();
    const idOf = async (headers: Record<string, string> = {}) =>
      (await echoed(nginx.http, { headers })).headers["x-request-id"];
    const given = new Set<unknown>();
    // More than one block of random bytes has ids for.
    for (let i = 0; i < 600; i++) given.add(await idOf());
    expect(given.size).toBe(600);
    for (const id of given) expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(await idOf({ "X-Request-ID": "mine-1" })).toBe("mine-1");
    expect(await idOf({ "X-Request-ID": "" })).toMatch(/^[0-9a-f]{32}$/);
    expect(await idOf({ "X-Request-ID": "not one" })).toMatch(/^[0-9a-f]{32}$/);
  });

  it("keeps what a trusted proxy says, and adds to it", async () => {
    const { nginx } = await startEcho({ trustedProxies: ["127.0.0.0/8"] });
    const said = { "X-Forwarded-For": "9.9.9.9, 192.0.2.7", "X-Forwarded-Proto": "https", Forwarded: "for=192.0.2.7" };
    const { headers } = await echoed(nginx.http, { headers: said });
    expect(headers).toMatchObject({
      "x-forwarded-for": "9.9.9.9, 192.0.2.7, 127.0.0.1",
      "x-forwarded-proto": "https",
      "x-real-ip": "192.0.2.7",
      forwarded: "for=192.0.2.7",
    });
  });

  it("drops headers of one connection, those that Connection names, and names with an underscore", async () => {
    const { nginx } = await startEcho();
    const { headers } = await echoed(nginx.http, {
      headers: {
        Connection: "close, X-Mine",
        "X-Mine": "1",
        "Keep-Alive": "5",
        "Proxy-Authorization": "x",
        X_A: "1",
        "X-B": "2",
      },
    });
    expect(headers["x-b"]).toBe("2");
    for (const name of ["x-mine", "keep-alive", "proxy-authorization", "x_a"])
      expect(headers[name], name).toBeUndefined();
  });

  it("drops what any of several Connection headers names", async () => {
    const { nginx } = await startEcho();
    const headers = { Connection: ["close", "X-Mine", "x-other"], "X-Mine": "1", "X-Other": "2", "X-Kept": "3" };
    const seen = await echoed(nginx.http, { headers });
    expect(seen.headers).toMatchObject({ "x-kept": "3" });
    expect(Object.keys(seen.headers)).not.toEqual(expect.arrayContaining(["x-mine"]));
    expect(Object.keys(seen.headers)).not.toEqual(expect.arrayContaining(["x-other"]));
  });

  it.each([1, 126, 127, 128, 129, 400])(
    "drops what Connection names, and keeps an id, among %i others",
    async (count) => {
      const { nginx } = await startEcho();
      const others = Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-Other-${i}`, `${i}`]));
      const { headers } = await echoed(nginx.http, {
        headers: { ...others, Connection: "close, X-Mine", "X-Mine": "1", "X-Request-ID": "given" },
      });
      expect(headers["x-mine"]).toBeUndefined();
      expect(headers).toMatchObject({ "x-request-id": "given", [`x-other-${count - 1}`]: `${count - 1}` });
    },
  );

  it("does not let Connection take away what the peer's safety rests on", async () => {
    const { nginx } = await startEcho();
    const { headers } = await echoed(nginx.http, {
      headers: { Connection: "close, Authorization, X-Forwarded-For, Host", Authorization: "Basic x" },
    });
    expect(headers).toMatchObject({ authorization: "Basic x", "x-forwarded-for": "127.0.0.1", host: HOST });
  });

  it("changes headers of the request and of the answer as the decision says", async () => {
    const peer = closing(
      await httpPeer((request, response) => {
        response.setHeader("X-Secret", "1");
        response.setHeader("Server", "peer");
        echo(request, response);
      }),
    );
    const { http } = await RequestNginx.start([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web", [
        { op: "set-request", name: "X-Tenant", value: ["blue"] },
        { op: "set-request", name: "X-Forwarded-For", value: ["nobody"] },
        { op: "set-request", name: "Cookie", value: [] },
        { op: "set-request", name: "Host", value: ["inner"] },
        { op: "add-response", name: "X-Added", value: [{ kind: "variable", name: "uri" }], always: false },
        { op: "hide-response", name: "X-Secret" },
        { op: "pass-response", name: "Server" },
      ]),
    ]);
    const answer = await ask(http, { path: "/p", headers: { Cookie: "a=b" } });
    const seen = JSON.parse(answer.body) as Echo;
    expect(seen.headers).toMatchObject({ "x-tenant": "blue", "x-forwarded-for": "nobody", host: "inner" });
    expect(seen.headers.cookie).toBeUndefined();
    expect(answer.headers).toMatchObject({ "x-added": "/p", server: "peer" });
    expect(answer.headers["x-secret"]).toBeUndefined();
  });

  it("drops the client's headers where the decision says so", async () => {
    const peer = closing(await httpPeer(echo));
    const { http } = await RequestNginx.start([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web", [{ op: "drop-request" }, { op: "set-request", name: "X-Own", value: ["1"] }]),
    ]);
    const seen = await echoed(http, { method: "POST", body: "abc", headers: { Authorization: "x", "X-A": "1" } });
    expect(seen.body).toBe("abc");
    expect(seen.headers).toMatchObject({ "x-own": "1", host: HOST });
    expect(seen.headers.authorization ?? seen.headers["x-a"]).toBeUndefined();
  });

  it("speaks TLS to peers that want it", async () => {
    const peer = closing(await httpsPeer(echo));
    const { http } = await RequestNginx.start([
      upstreamStep("web", [peer.port], { tls: true }),
      proxyHost(HOST, "web"),
    ]);
    expect((await echoed(http, { path: "/x%20y" })).target).toBe("/x%20y");
  });

  it("rewrites the target", async () => {
    const peer = closing(await httpPeer(echo));
    const { http } = await RequestNginx.start([
      upstreamStep("web", [peer.port]),
      actionHost(HOST, {
        kind: "proxy",
        upstream: "Ingress/default/shop/web",
        rewrite: { kind: "prefix", text: "/inner/" },
      }),
    ]);
    expect((await echoed(http, { path: "/a%20b?x=1" })).target).toBe("/inner/a%20b?x=1");
  });

  it("answers redirects, returned bodies, 404 and 503 like the embedded proxy", async () => {
    const { http } = await RequestNginx.start([
      actionHost("go.example.com", {
        kind: "redirect",
        status: 308,
        location: ["https://", { kind: "variable", name: "host" }, "/x"],
      }),
      actionHost("say.example.com", {
        kind: "return",
        status: 418,
        contentType: "text/plain",
        body: ["short and stout"],
      }),
      upstreamStep("none", []),
      proxyHost("empty.example.com", "none"),
    ]);
    const redirect = await ask(http, { host: "go.example.com" });
    expect([redirect.status, redirect.headers.location]).toEqual([308, "https://go.example.com/x"]);
    const said = await ask(http, { host: "say.example.com" });
    expect([said.status, said.headers["content-type"], said.body]).toEqual([418, "text/plain", "short and stout"]);
    const head = await ask(http, { host: "say.example.com", method: "HEAD" });
    expect([head.status, head.headers["content-length"], head.body]).toEqual([418, "15", ""]);
    const empty = await ask(http, { host: "empty.example.com" });
    expect([empty.status, empty.body]).toEqual([
      503,
      "<!DOCTYPE html>\n<html><head><title>503 Service Unavailable</title></head>\n<body><h1>503 Service Unavailable</h1></body></html>\n",
    ]);
    expect((await ask(http, { host: "unknown.example.com" })).status).toBe(404);
  });
});
