import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { RawClient } from "../support/raw-client.js";
import { hostRules, peers, prefix, route } from "../support/rules.js";
import { bundleFrom, upstream } from "./bundles.js";
import { noEnvoy } from "./installation.js";
import { type Bootstrap, managerOf, RunningEnvoy } from "./running-envoy.js";

const HOST = "example.com";
const POST = `POST / HTTP/1.1\r\nHost: ${HOST}\r\n`;
const TIMEOUT = 60_000;

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface SilentPeer {
  port: number;
  /** Requests that were answered. */
  asked: () => number;
  /** Connections whose request waits in vain. */
  waiting: () => number;
}

/** A peer that counts and answers requests of /fine, and is silent to all others. */
async function silentPeer(): Promise<SilentPeer> {
  let asked = 0;
  const sockets = new Set<Socket>();
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => waiting.delete(socket));
    socket.on("error", () => {});
    socket.on("data", (part) => {
      if (!part.toString("latin1").startsWith("GET /fine ")) {
        waiting.add(socket);
        return;
      }
      asked++;
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked: () => asked, waiting: () => waiting.size };
}

/** Streams may be silent for a short while only. */
function impatient({ static_resources }: Bootstrap): void {
  const [{ routes }] = managerOf(static_resources.listeners[0]).route_config.virtual_hosts as {
    routes: { route: Record<string, unknown> }[];
  }[];
  routes[0].route.idle_timeout = "0.5s";
}

/** No further request of a cluster gets through while one is under way. */
function narrow({ static_resources }: Bootstrap): void {
  for (const cluster of static_resources.clusters) {
    cluster.circuit_breakers = { thresholds: [{ max_requests: 1 }] };
  }
}

/** How often each of two peers answers, of four requests after something else has been met; one of them is out after a failure. */
async function sharesAfter(
  edit: (bootstrap: Bootstrap) => void,
  meet: (envoy: RunningEnvoy, both: readonly SilentPeer[]) => Promise<unknown>,
): Promise<number[]> {
  const both = [await silentPeer(), await silentPeer()];
  const plain = peers(
    "plain",
    both.map(({ port }) => port),
  );
  const set = {
    ...plain,
    peers: plain.peers.map((peer) => ({ ...peer, address: "127.0.0.1" })),
    limits: { maxFails: 1, failTimeout: 600_000 },
  };
  const rules = hostRules([route(prefix("/"), { kind: "proxy", upstream: "plain" })]);
  const envoy = await RunningEnvoy.start({ bundle: bundleFrom([rules], [upstream(set)]), edit });
  closing.push(() => envoy.close());
  await meet(envoy, both);
  for (let i = 0; i < 4; i++) expect((await envoy.get(HOST, "/fine")).status).toBe(200);
  return both.map(({ asked }) => asked()).sort();
}

async function sending(envoy: RunningEnvoy, text: string): Promise<RawClient> {
  const client = await RawClient.plain(envoy.port);
  closing.push(() => client.destroy());
  client.write(text);
  return client;
}

describe.skipIf(noEnvoy)("over Envoy, a peer", { timeout: 120_000 }, () => {
  it("is out after it was silent to a whole request", async () => {
    const shares = await sharesAfter(impatient, async (envoy) => {
      expect((await envoy.get(HOST, "/silent")).status).toBe(504);
    });
    expect(shares).toEqual([0, 4]);
  });

  it("is not out because a client stalls in the middle of its body", async () => {
    const shares = await sharesAfter(impatient, async (envoy) => {
      const client = await sending(envoy, `${POST}Content-Length: 100\r\n\r\nabc`);
      expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 408 /);
    });
    expect(shares).toEqual([2, 2]);
  });

  it("is not out because a client sends a chunk without a length", async () => {
    const shares = await sharesAfter(impatient, async (envoy) => {
      const client = await sending(envoy, `${POST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno length\r\n`);
      expect(await client.end(TIMEOUT)).toMatch(/^HTTP\/1\.1 400 /);
    });
    expect(shares).toEqual([2, 2]);
  });

  it("is not out because more requests come at once than Envoy lets through", async () => {
    const shares = await sharesAfter(narrow, async (envoy, both) => {
      const get = `GET /silent HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
      // The one that is let through waits for ever; which of the two it is, Envoy decides.
      const clients = [await sending(envoy, get), await sending(envoy, get)];
      await Promise.any(clients.map((client) => client.until((text) => text.startsWith("HTTP/1.1 503 "), TIMEOUT)));
      for (const client of clients) client.destroy();
      await envoy.until(async () => both.every(({ waiting }) => waiting() === 0), "lets requests through again");
    });
    expect(shares).toEqual([2, 2]);
  });
});
