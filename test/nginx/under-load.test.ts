import { X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { httpPeer, type Peer } from "../support/peers.js";
import { certificateStep, keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, servedCertificate } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { holderOf, ownBytes, type Served, served } from "./served-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const WEBSOCKET =
  `GET /chat HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/** Rounds of changes: each is one of a route and one of endpoints, every tenth a renewal too, every twentieth a peer's health. */
const ROUNDS = 2_000;
/** The round after which 500 changes have been made. */
const SETTLED = 240;
/** Rounds over which memory is looked at, then and at the end. */
const WINDOW = 200;

/** A peer that answers at once, and sends back what comes over a WebSocket. */
async function startPeer(): Promise<Peer> {
  const peer = closing(await httpPeer((request, response) => request.resume() && response.end("served")));
  peer.server.on("upgrade", (_request, socket) => {
    socket.on("error", () => undefined);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello");
    socket.on("data", (chunk: Buffer) => socket.write(chunk));
  });
  return peer;
}

/** A host whose answers tell which change of its route they come from. */
function routeOf(round: number): PlanStep {
  return proxyHost(HOST, "web", [
    { op: "add-response", name: "X-Round", value: [String(round)], always: true },
    { op: "set-request", name: "X-Round", value: [String(round)] },
  ]);
}

function endpoints(peers: readonly Peer[], round: number): PlanStep {
  const ports = peers.filter((_, i) => i !== round % peers.length).map(({ port }) => port);
  return upstreamStep("web", ports, {}, { limits: { maxFails: 1, failTimeout: 10_000 } });
}

async function openWebSocket({ http }: Served): Promise<RawClient> {
  const client = await RawClient.plain(http);
  cleanup(() => client.socket.destroy());
  client.write(WEBSOCKET);
  await client.until((text) => text.endsWith("\r\n\r\nhello"));
  return client;
}

/** SHA-256 of the certificate that a new handshake gets, as OpenSSL writes it. */
async function certificateOf({ https }: Served): Promise<string> {
  return (await servedCertificate(https, HOST)).fingerprint256;
}

/** Requests over TLS, each with a handshake of its own, until it is told to stop. Answers how many, and what went wrong. */
function handshakes({ https }: Served): { stop(): Promise<{ made: number; failures: string[] }> } {
  let going = true;
  const failures: string[] = [];
  let made = 0;
  const work = (async () => {
    for (; going; made++) {
      const what = await ask(https, { host: HOST, tls: true }).then(({ status }) => status, String);
      if (what !== 200) failures.push(String(what));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  const stop = async () => {
    going = false;
    await work;
    return { made, failures };
  };
  cleanup(stop);
  return { stop };
}

/** Requests on connections that come at once: those are spread over all workers. */
async function burst({ http, https }: Served): Promise<void> {
  const plain = Array.from({ length: 50 }, () => ask(http, { host: HOST }));
  const overTls = Array.from({ length: 5 }, () => ask(https, { host: HOST, tls: true }));
  for (const { status } of await Promise.all([...plain, ...overTls])) expect(status).toBe(200);
}

/** The least memory of each worker over a time: between two collections of garbage it goes up. */
class LeastMemory {
  readonly bytes: number[];

  constructor(private readonly pids: readonly number[]) {
    this.bytes = pids.map(() => Number.POSITIVE_INFINITY);
  }

  look(): void {
    for (const [i, pid] of this.pids.entries()) this.bytes[i] = Math.min(this.bytes[i], ownBytes(pid));
  }
}

describe.skipIf(noNginx)("NGINX under load", () => {
  it("takes thousands of changes without a failed request, a dropped WebSocket, another worker or more memory", async () => {
    const nginx = await served();
    const peers = [await startPeer(), await startPeer(), await startPeer(), await startPeer()];
    const pairs = Array.from({ length: 7 }, (_, i) => {
      const pair = makeCertificate(`pair ${i}`, HOST);
      return { ...pair, fingerprint: `${i}` };
    });
    const { proxy } = nginx;
    await proxy.apply(planOf(certificateStep(HOST, pairs[0]), endpoints(peers, 0), routeOf(0)));
    const pids = await nginx.workerPids();
    const sockets = await Promise.all([1, 2, 3, 4].map(() => openWebSocket(nginx)));
    const load = new Load(nginx.http, HOST, {}, 4);
    const overTls = handshakes(nginx);
    // What traffic alone makes a worker take (code that is compiled, buffers) is not to be taken for that of changes.
    for (let i = 0; i < 60; i++) await burst(nginx);
    const renewed: string[] = [];
    const [before, after] = [new LeastMemory(pids), new LeastMemory(pids)];
    for (let round = 1; round <= ROUNDS; round++) {
      const steps = [endpoints(peers, round), routeOf(round)];
      const renews = round % 10 === 0;
      if (renews) steps.unshift(certificateStep(HOST, pairs[(round / 10) % pairs.length]));
      if (round % 20 === 0) {
        const state = (round / 20) % 2 === 0 ? "up" : "down";
        proxy.setPeerStates([{ upstream: keyOf("web"), address: "127.0.0.1", port: peers[0].port, state }]);
      }
      const { failures: refused } = await proxy.apply(planOf(...steps));
      expect(refused).toEqual([]);
      if (round % 100 === 0) {
        // A change that was acknowledged acts on the very next request, whichever worker takes it.
        for (let i = 0; i < 4; i++) {
          expect((await ask(nginx.http, { host: HOST })).headers["x-round"]).toBe(String(round));
        }
        renewed.push(await certificateOf(nginx));
        for (const socket of sockets) socket.write("still there");
      }
      if (round > SETTLED && round <= SETTLED + WINDOW) before.look();
      if (round > ROUNDS - WINDOW) after.look();
    }
    await load.stop();
    const { made, failures } = await overTls.stop();
    expect(load.failures).toEqual([]);
    expect(failures).toEqual([]);
    expect(load.answered).toBeGreaterThan(ROUNDS);
    for (const socket of sockets) {
      socket.write("at the end");
      await socket.until((text) => text.endsWith("at the end"));
    }
    expect(await nginx.workerPids()).toEqual(pids);
    const prints = pairs.map(({ chain }) => new X509Certificate(chain).fingerprint256);
    expect(renewed).toEqual(Array.from({ length: ROUNDS / 100 }, (_, i) => prints[((i + 1) * 10) % pairs.length]));
    const growth = after.bytes.map((bytes, i) => bytes / before.bytes[i] - 1);
    console.log(
      `${load.answered} requests and ${made} handshakes during ${2.1 * ROUNDS} changes; ` +
        `memory of workers ${after.bytes.map((bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`).join(", ")}, ` +
        `growth ${growth.map((part) => `${(part * 100).toFixed(1)} %`).join(", ")}`,
    );
    for (const part of growth) expect(part).toBeLessThanOrEqual(0.05);
  }, 300_000);

  it("loses with a killed worker what that worker held, and nothing else", async () => {
    const nginx = await served();
    const waiting: (() => void)[] = [];
    const peer = closing(
      await httpPeer((request, response) => {
        request.resume();
        if (request.url === "/slow") waiting.push(() => response.end("served"));
        else response.end("served");
      }),
    );
    await nginx.proxy.apply(planOf(upstreamStep("web", [peer.port]), proxyHost(HOST, "web")));
    const pids = await nginx.workerPids();
    const clients: { client: RawClient; holder: number | undefined }[] = [];
    const heldBy = (pid: number) => clients.filter(({ holder }) => holder === pid).length;
    // Connections that come at once are spread; a worker that waits takes single ones.
    for (let burst = 0; burst < 12 && pids.some((pid) => heldBy(pid) < 3); burst++) {
      clients.push(...(await Promise.all(Array.from({ length: 25 }, slowClient))));
    }
    await eventually(() => waiting.length === clients.length);

    async function slowClient() {
      const client = await RawClient.plain(nginx.http);
      cleanup(() => client.socket.destroy());
      client.write(`GET /slow HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
      await eventually(() => holderAt(client) !== undefined);
      return { client, holder: holderAt(client) };
    }

    function holderAt(client: RawClient): number | undefined {
      const { port } = client.socket.address() as AddressInfo;
      return holderOf(port, nginx.http, pids);
    }

    const [killed, stays] = pids;
    process.kill(killed, "SIGKILL");
    await eventually(() => clients.every(({ client, holder }) => holder !== killed || client.closed));
    for (const answer of waiting) answer();
    for (const { client, holder } of clients) {
      if (holder === killed) expect(client.received).toBe("");
      else await client.until((text) => text.endsWith("served"));
    }
    expect([heldBy(killed), heldBy(stays)].every((count) => count > 0)).toBe(true);
    // The worker in its place has the whole state from its first request on.
    for (let i = 0; i < 50; i++) expect((await ask(nginx.http, { host: HOST })).status).toBe(200);
    const { failures } = await nginx.proxy.apply(planOf(proxyHost("other.example.com", "web")));
    expect(failures).toEqual([]);
    const now = await nginx.workerPids();
    expect(now).toContain(stays);
    expect(now).not.toContain(killed);
    expect((await ask(nginx.http, { host: "other.example.com" })).status).toBe(200);
  });
});
