import { describe, expect, it } from "vitest";
import type { SessionCookie } from "../../controller/model/types.js";
import { sessionCookieText } from "../../controller/proxies/embedded/session-cookie.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { type Answer, ask } from "../support/http-client.js";
import { httpPeer, type Peer, tcpPeer } from "../support/peers.js";
import { keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const COOKIE: SessionCookie = { name: "srv", httpOnly: false, secure: false };

function named(name: string): Promise<Peer> {
  return httpPeer((request, response) => {
    const status = Number(/^\/status\/(\d+)/.exec(request.url ?? "")?.[1] ?? 200);
    response.writeHead(status, status === 302 ? { Location: "/" } : {}).end(name);
  });
}

async function serve(cookie = COOKIE) {
  const peers = [closing(await named("a")), closing(await named("b")), closing(await named("c"))];
  const ports = peers.map(({ port }) => port);
  const step = (draining: number[] = [], of = ports) =>
    upstreamStep(
      "web",
      of,
      { nextUpstream: ["error", "http_503"] },
      {
        cookie,
        peers: of.map((port) => ({
          address: "127.0.0.1",
          port,
          weight: 1,
          ...(draining.includes(port) && { draining: true }),
        })),
      },
    );
  const started = await startProxy([step(), proxyHost(HOST, "web")], { now: () => Date.UTC(2026, 0, 1) });
  const portOf = (name: string) => ports["abc".indexOf(name)];
  return { ...started, peers, ports, step, portOf };
}

/** The cookie that an answer sets, without its attributes. */
function cookieOf(answer: Answer): string | undefined {
  return answer.headers["set-cookie"]?.map((text) => text.split(";")[0]).find((text) => text.startsWith("srv="));
}

describe("a session cookie", () => {
  it("is set for a new client, and leads it to the same peer from then on", async () => {
    const { http } = await serve();
    const clients = new Map<string, string>();
    for (let i = 0; i < 9; i++) {
      const answer = await ask(http);
      const cookie = cookieOf(answer);
      expect(cookie).toMatch(/^srv=[0-9a-f]{8}$/);
      clients.set(cookie ?? "", answer.body);
    }
    expect([...clients.values()].sort()).toEqual(["a", "b", "c"]);
    for (const [cookie, peer] of clients) {
      for (let i = 0; i < 4; i++) {
        const answer = await ask(http, { headers: { Cookie: `x=y; ${cookie}` } });
        expect(answer.body).toBe(peer);
        expect(cookieOf(answer)).toBeUndefined();
      }
    }
  });

  it.each(["0", "zzzzzzzz", "00000000", "deadbeef", "x".repeat(3000), '"; path=/x'])(
    "that is no peer's (%#) is replaced",
    async (value) => {
      const { http } = await serve();
      const answer = await ask(http, { headers: { Cookie: `srv=${value}` } });
      expect(answer.status).toBe(200);
      expect(cookieOf(answer)).toMatch(/^srv=[0-9a-f]{8}$/);
    },
  );

  it("comes with redirects and errors of the peer, beside the peer's own cookies", async () => {
    const { http } = await serve();
    for (const status of [302, 404, 500]) {
      const answer = await ask(http, { path: `/status/${status}` });
      expect(answer.status).toBe(status);
      expect(cookieOf(answer)).toBeDefined();
    }
    const peer = closing(await httpPeer((_, response) => response.setHeader("Set-Cookie", ["a=1", "b=2"]).end("x")));
    const { http: other } = await startProxy([
      upstreamStep("web", [peer.port], {}, { cookie: COOKIE }),
      proxyHost(HOST, "web"),
    ]);
    const { headers } = await ask(other);
    expect(headers["set-cookie"]).toEqual(["a=1", "b=2", expect.stringMatching(/^srv=/)]);
  });

  it("does not come with the proxy's own answers", async () => {
    const { http } = await startProxy([upstreamStep("web", [1], {}, { cookie: COOKIE }), proxyHost(HOST, "web")]);
    const answer = await ask(http);
    expect(answer.status).toBe(502);
    expect(cookieOf(answer)).toBeUndefined();
  });

  it("comes with the answer that begins a tunnel", async () => {
    const peer = closing(
      await tcpPeer((socket) => {
        socket.on("data", () =>
          socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
        );
      }),
    );
    const { http } = await startProxy([
      upstreamStep("web", [peer.port], {}, { cookie: COOKIE }),
      proxyHost(HOST, "web"),
    ]);
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
    expect(await client.until((received) => received.includes("\r\n\r\n"))).toMatch(/Set-Cookie: srv=[0-9a-f]{8}\r\n/);
  });

  it("of a peer that fails moves the client to another one, with a new cookie", async () => {
    const { http, peers, ports, portOf } = await serve();
    const first = await ask(http);
    const cookie = cookieOf(first) ?? "";
    await peers[ports.indexOf(portOf(first.body))].close();
    const moved = await ask(http, { headers: { Cookie: cookie } });
    expect(moved.status).toBe(200);
    expect(moved.body).not.toBe(first.body);
    const next = cookieOf(moved) ?? "";
    expect(next).not.toBe(cookie);
    for (let i = 0; i < 4; i++) expect((await ask(http, { headers: { Cookie: next } })).body).toBe(moved.body);
  });

  it("of a peer that answers 503, where that is listed, moves the client to another one", async () => {
    const { http } = await serve();
    const first = await ask(http);
    const cookie = cookieOf(first) ?? "";
    const answer = await ask(http, { path: "/status/503", headers: { Cookie: cookie } });
    // All of them answer so; the cookie is that of the peer whose answer is seen.
    expect(answer.status).toBe(503);
    expect(cookieOf(answer)).not.toBe(cookie);
  });

  it("of a peer that checks have down moves the client, and back up it takes its clients again", async () => {
    const { http, proxy, portOf } = await serve();
    const first = await ask(http);
    const headers = { Cookie: cookieOf(first) ?? "" };
    const state = (is: "down" | "up") =>
      proxy.setPeerStates([{ upstream: keyOf("web"), address: "127.0.0.1", port: portOf(first.body), state: is }]);
    state("down");
    expect((await ask(http, { headers })).body).not.toBe(first.body);
    state("up");
    expect((await ask(http, { headers })).body).toBe(first.body);
  });

  it("of a peer that drains keeps the client there, while new clients go elsewhere", async () => {
    const { http, proxy, portOf, step } = await serve();
    const first = await ask(http);
    const headers = { Cookie: cookieOf(first) ?? "" };
    await proxy.apply(planOf(step([portOf(first.body)])));
    for (let i = 0; i < 6; i++) {
      expect((await ask(http, { headers })).body).toBe(first.body);
      expect((await ask(http)).body).not.toBe(first.body);
    }
  });

  it("of a peer that has left moves the client; that of the others stays", async () => {
    const { http, proxy, ports, portOf, step } = await serve();
    const answers = [await ask(http), await ask(http), await ask(http)];
    const [leaves, ...stay] = answers;
    await proxy.apply(
      planOf(
        step(
          [],
          ports.filter((port) => port !== portOf(leaves.body)),
        ),
      ),
    );
    const moved = await ask(http, { headers: { Cookie: cookieOf(leaves) ?? "" } });
    expect(moved.body).not.toBe(leaves.body);
    expect(cookieOf(moved)).toBeDefined();
    for (const answer of stay) {
      expect((await ask(http, { headers: { Cookie: cookieOf(answer) ?? "" } })).body).toBe(answer.body);
    }
  });

  it("with a time is renewed with each answer", async () => {
    const { http, proxy } = await serve({ ...COOKIE, expires: 3_600_000 });
    const cookie = cookieOf(await ask(http)) ?? "";
    const answer = await ask(http, { headers: { Cookie: cookie } });
    expect(answer.headers["set-cookie"]).toEqual([`${cookie}; expires=Thu, 01 Jan 2026 01:00:00 GMT; max-age=3600`]);
    await eventually(() => proxy.counts().exchanges === 0);
  });
});

describe("the text of a session cookie", () => {
  it.each<[Partial<SessionCookie>, string]>([
    [{}, ""],
    [{ path: "/shop" }, "; path=/shop"],
    [{ expires: 90_000 }, "; expires=Thu, 01 Jan 1970 00:01:30 GMT; max-age=90"],
    [{ expires: "max" }, "; expires=Thu, 31 Dec 2037 23:55:55 GMT; max-age=315360000"],
    [{ domain: ".example.com" }, "; domain=.example.com"],
    [{ httpOnly: true, secure: true }, "; httponly; secure"],
    [{ secure: true, sameSite: "None" }, "; secure; samesite=none"],
    [
      { expires: 1000, domain: "a.example", httpOnly: true, secure: true, sameSite: "Strict", path: "/" },
      "; expires=Thu, 01 Jan 1970 00:00:01 GMT; max-age=1; domain=a.example; httponly; secure; samesite=strict; path=/",
    ],
  ])("of %j has the attributes of NGINX", (attributes, text) => {
    expect(sessionCookieText({ ...COOKIE, ...attributes }, "0a1b2c3d", 0)).toBe(`srv=0a1b2c3d${text}`);
  });
});
