import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { UpstreamTransport } from "../../controller/model/types.js";
import type { EmbeddedProxyOptions } from "../../controller/proxies/embedded/options.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { closedPort, httpPeer, tcpPeer } from "../support/peers.js";
import { type Balancing, keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const POST = `POST / HTTP/1.1\r\nHost: ${HOST}\r\n`;

/** A proxy before peers that it counts requests for, and what the core holds of them. */
async function serve(
  ports: number[],
  transport: Partial<UpstreamTransport> = {},
  limits: Balancing["limits"] = { maxConns: 10 },
  options: Partial<EmbeddedProxyOptions> = {},
) {
  const table = makeRoutingTable();
  const steps = [upstreamStep("web", ports, transport, { limits }), proxyHost(HOST, "web")];
  const started = await startProxy(steps, { table, ...options });
  const peers = () => table.peersOf(keyOf("web"));
  return {
    ...started,
    /** Requests under way at all peers. */
    held: () => peers().reduce((sum, { conns }) => sum + conns, 0),
    /** Ports of the peers that are out by failures. */
    out: () => peers().flatMap(({ out, port }) => (out ? [port] : [])),
  };
}

/** A peer that reads a request and then does what `act` says. */
async function rawPeer(act: (socket: Socket) => void): Promise<number> {
  const peer = closing(
    await tcpPeer((socket) => {
      socket.on("end", () => socket.end());
      socket.on("data", (chunk) => {
        if (/^[A-Z]+ /.test(chunk.toString("latin1"))) act(socket);
      });
    }),
  );
  return peer.port;
}

function answering(status: number, body = "x") {
  return httpPeer((_, response) => response.writeHead(status).end(body));
}

describe("the place at a peer", () => {
  it("is held while a request is under way, and given back when it is answered", async () => {
    let finish: (() => void) | undefined;
    const peer = closing(
      await httpPeer((_, response) => {
        finish = () => response.end("x");
      }),
    );
    const { http, held } = await serve([peer.port]);
    const answer = ask(http);
    await eventually(() => finish !== undefined);
    expect(held()).toBe(1);
    finish?.();
    await answer;
    await eventually(() => held() === 0);
  });

  it.each<[string, () => Promise<number>, Partial<UpstreamTransport>]>([
    ["refuses the connection", closedPort, {}],
    ["resets it", () => rawPeer((socket) => socket.resetAndDestroy()), {}],
    ["answers nonsense", () => rawPeer((socket) => socket.end("nonsense\r\n\r\n")), {}],
    [
      "answers with a framing that is not to be trusted",
      () => rawPeer((socket) => socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")),
      {},
    ],
    ["does not answer in time", () => rawPeer(() => undefined), { readTimeout: 50 }],
    [
      "stops in the middle of its answer",
      () => rawPeer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")),
      { readTimeout: 50 },
    ],
    ["answers 503", async () => closing(await answering(503)).port, { nextUpstream: ["http_503"] }],
  ])("is given back once where the peer %s", async (_title, makePeer, transport) => {
    const { http, held, proxy } = await serve([await makePeer(), await makePeer()], transport);
    for (let i = 0; i < 3; i++) await ask(http).catch(() => undefined);
    await eventually(() => proxy.counts().exchanges === 0);
    expect(held()).toBe(0);
  });

  it("is given back where the client leaves before the answer, or in the middle of it", async () => {
    for (const begins of [false, true]) {
      const peer = closing(await httpPeer((_, response) => (begins ? response.write("begun") : undefined)));
      const { http, held, out, proxy } = await serve([peer.port], {}, { maxConns: 10, maxFails: 1 });
      const client = await RawClient.plain(http);
      client.write(GET);
      if (begins) await client.until((received) => received.includes("begun"));
      else await eventually(() => held() === 1);
      client.destroy();
      await eventually(() => proxy.counts().exchanges === 0);
      expect(held()).toBe(0);
      expect(out()).toEqual([]);
    }
  });

  it("is given back where the request is refused before it was sent", async () => {
    const peer = closing(await answering(200));
    const { http, held } = await serve([peer.port], { clientMaxBodySize: 10 });
    expect((await ask(http, { method: "POST", body: "x".repeat(11) })).status).toBe(413);
    expect(held()).toBe(0);
  });

  it("is held by a tunnel until that ends", async () => {
    const port = await rawPeer((socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
    );
    const { http, held } = await serve([port]);
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
    await client.until((received) => received.includes(" 101 "));
    expect(held()).toBe(1);
    client.destroy();
    await eventually(() => held() === 0);
  });

  it("is given back though the peer has left its upstream meanwhile, and does not count for the next one", async () => {
    let finish: (() => void) | undefined;
    const leaves = closing(
      await httpPeer((_, response) => {
        finish = () => response.end("x");
      }),
    );
    const comes = closing(await answering(200));
    const { http, held, proxy } = await serve([leaves.port]);
    const answer = ask(http);
    await eventually(() => finish !== undefined);
    await proxy.apply(planOf(upstreamStep("web", [comes.port], {}, { limits: { maxConns: 10 } })));
    expect(held()).toBe(0);
    finish?.();
    expect((await answer).status).toBe(200);
    await eventually(() => proxy.counts().exchanges === 0);
    expect(held()).toBe(0);
  });
});

describe("a failure that takes a peer out", () => {
  const limits = { maxFails: 1, failTimeout: 10_000 };

  it.each<[string, () => Promise<number>, Partial<UpstreamTransport>]>([
    ["a refused connection", closedPort, {}],
    ["a connection that breaks", () => rawPeer((socket) => socket.resetAndDestroy()), {}],
    ["an answer that does not come in time", () => rawPeer(() => undefined), { readTimeout: 50 }],
    ["an answer that is no HTTP", () => rawPeer((socket) => socket.end("nonsense\r\n\r\n")), { nextUpstream: [] }],
    [
      "a status that next-upstream lists",
      async () => closing(await answering(503)).port,
      { nextUpstream: ["http_503"] },
    ],
  ])("is %s", async (_title, makePeer, transport) => {
    const bad = await makePeer();
    const good = closing(await answering(200));
    const { http, out, log } = await serve([bad, good.port], transport, limits, { clock: () => 1000 });
    for (let i = 0; i < 6; i++) await ask(http);
    expect(out()).toEqual([bad]);
    // The bad peer was met once, with or without another try.
    await eventually(() => log.length === 6);
    const met = log.filter(({ upstreamStatus }) => JSON.stringify(upstreamStatus) !== "[200]");
    expect(met).toHaveLength(1);
  });

  it("is no status that next-upstream does not list", async () => {
    const [bad, good] = [closing(await answering(503)), closing(await answering(200))];
    const { http, out } = await serve([bad.port, good.port], {}, limits);
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await ask(http)).status);
    expect(statuses.sort()).toEqual([200, 200, 503, 503]);
    expect(out()).toEqual([]);
  });

  it.each<[string, (client: RawClient) => void, number | undefined]>([
    ["stalls in the middle of its body", (client) => client.write(`${POST}Content-Length: 9\r\n\r\nabc`), 408],
    [
      "sends a chunk without a length",
      (client) => client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno length\r\n`),
      400,
    ],
    [
      "does not read its answer",
      (client) => {
        client.socket.pause();
        client.write(`GET /large HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
      },
      undefined,
    ],
  ])("is none of a client that %s", async (_title, misbehave, status) => {
    const peer = () =>
      httpPeer((request, response) => {
        request.on("error", () => {}).resume();
        if (request.url === "/large") response.end(Buffer.alloc(64 << 20));
      });
    // Two of them: a failure of the only one would not take it out.
    const [first, second] = [closing(await peer()), closing(await peer())];
    const clock = { clock: () => 1000, limits: { bodyTimeout: 300, sendTimeout: 300 } };
    const { http, out, log } = await serve([first.port, second.port], { readTimeout: 50 }, limits, clock);
    const client = await RawClient.plain(http);
    misbehave(client);
    if (status !== undefined) expect(await client.end()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await eventually(() => log.length === 1);
    client.destroy();
    expect(out()).toEqual([]);
  });

  it("is forgiven after the fail timeout, and by the next success", async () => {
    let broken = true;
    const bad = closing(
      await httpPeer((request, response) => (broken ? request.socket.resetAndDestroy() : response.end("bad"))),
    );
    const good = closing(await httpPeer((_, response) => response.end("good")));
    let now = 1000;
    const { http, out } = await serve([bad.port, good.port], {}, limits, { clock: () => now });
    const bodies = async (count: number) => {
      const found = new Set<string>();
      for (let i = 0; i < count; i++) found.add((await ask(http)).body);
      return [...found].sort();
    };
    expect(await bodies(4)).toEqual(["good"]);
    expect(out()).toEqual([bad.port]);
    broken = false;
    expect(await bodies(4)).toEqual(["good"]);
    now += 10_001;
    expect(await bodies(4)).toEqual(["bad", "good"]);
    expect(out()).toEqual([]);
  });

  it("never empties an upstream: the last peers are tried though they are out", async () => {
    let broken = true;
    const peer = closing(
      await httpPeer((request, response) => (broken ? request.socket.resetAndDestroy() : response.end("back"))),
    );
    const { http } = await serve([peer.port, await closedPort()], {}, limits, { clock: () => 1000 });
    for (let i = 0; i < 3; i++) expect((await ask(http)).status).toBe(502);
    broken = false;
    for (let i = 0; i < 3; i++) expect((await ask(http)).body).toBe("back");
  });
});

describe("a peer that comes back with slow start", () => {
  it("gets few requests at first, and its whole share once the time is over", async () => {
    const [slow, other] = [
      closing(await httpPeer((_, response) => response.end("slow"))),
      closing(await httpPeer((_, response) => response.end("other"))),
    ];
    let now = 1000;
    const { http, proxy } = await serve([slow.port, other.port], {}, { slowStart: 10_000 }, { clock: () => now });
    const state = (is: "down" | "up") =>
      proxy.setPeerStates([{ upstream: keyOf("web"), address: "127.0.0.1", port: slow.port, state: is }]);
    const share = async () => {
      let met = 0;
      for (let i = 0; i < 40; i++) if ((await ask(http)).body === "slow") met++;
      return met;
    };
    state("down");
    expect(await share()).toBe(0);
    state("up");
    const first = await share();
    now += 5_000;
    const half = await share();
    now += 5_001;
    const whole = await share();
    expect(first).toBeLessThan(5);
    expect(half).toBeGreaterThan(first);
    expect(half).toBeLessThan(18);
    expect(whole).toBeGreaterThanOrEqual(18);
  });
});
