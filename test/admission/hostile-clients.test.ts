import { Agent, request } from "node:https";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import type { AskedModel } from "../../controller/admission/verdict.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { type Answer, whole } from "../support/http-client.js";
import { CERTIFICATE, parseOne, post, reviewFor, server, startAdmission } from "./admission-support.js";

cleanUpAfterEach();

const GOOD = parseOne(server("shop", "shop.example.com"));
const HEAD = "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";

/** How a client is hostile: it holds a connection, and does nothing with it that would end it soon. */
const WAYS: Record<string, (port: number) => Socket> = {
  "that never begin a handshake": (port) => connect({ host: "127.0.0.1", port }),
  "that send half a handshake": (port) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]));
    return socket;
  },
  "that say nothing after their handshake": (port) => encrypted(port),
  "that send their head byte by byte": (port) => dripping(encrypted(port), HEAD.repeat(100)),
  "that send their body byte by byte": (port) => {
    const socket = encrypted(port);
    socket.write(`${HEAD}Content-Length: 4000\r\n\r\n`);
    return dripping(socket, "{".repeat(4000));
  },
};

function encrypted(port: number): TLSSocket {
  return connectTls({ host: "127.0.0.1", port, ca: CERTIFICATE.chain, servername: "webhook.example.com" });
}

/** Sends a text byte by byte. */
function dripping<T extends Socket>(socket: T, text: string): T {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length]), 200);
  socket.on("close", () => clearInterval(timer));
  return socket;
}

/** Keeps `count` clients at it: whoever is turned away comes again. */
function besiege(port: number, count: number, way: (port: number) => Socket): void {
  let going = true;
  const sockets = new Set<Socket>();
  const begin = () => {
    if (!going) return;
    const socket = way(port);
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      sockets.delete(socket);
      // Not at once: it would be a flood, which is for whoever guards the network.
      setTimeout(begin, 500);
    });
  };
  for (let i = 0; i < count; i++) begin();
  cleanup(() => {
    going = false;
    for (const socket of sockets) socket.destroy();
  });
}

/** A review on a connection of an agent, and whether the connection had been used before. */
function reviewed(port: number, agent: Agent): Promise<Answer & { reused: boolean }> {
  return new Promise((resolve, reject) => {
    const names = { ca: CERTIFICATE.chain, servername: "webhook.example.com" };
    const sent = request({ host: "127.0.0.1", port, path: "/validate", method: "POST", agent, ...names }, (response) =>
      whole(response).then((answer) => resolve({ ...answer, reused: sent.reusedSocket }), reject),
    );
    sent.setHeader("Content-Type", "application/json");
    sent.on("error", reject);
    sent.end(JSON.stringify(reviewFor(GOOD)));
  });
}

/** Resolves with what a call answers; it is tried some times, and not as long as it takes for limits of time to help. */
async function soon<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries === 5) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

describe("reviews are answered", () => {
  for (const [what, way] of Object.entries(WAYS)) {
    it(`while a hundred clients hold connections ${what}`, async () => {
      const { port } = await startAdmission("", { patience: 0 });
      besiege(port, 100, way);
      await settled();
      for (let i = 0; i < 10; i++) expect((await soon(() => answered(post(port, reviewFor(GOOD))))).status).toBe(200);
    }, 120_000);

    it(`on the connection that they have always come on, while a hundred clients hold others ${what}`, async () => {
      const { port } = await startAdmission("", { patience: 0 });
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      cleanup(() => agent.destroy());
      await reviewed(port, agent);
      besiege(port, 100, way);
      await settled();
      for (let i = 0; i < 10; i++) {
        const { status, reused } = await soon(() => answered(reviewed(port, agent)));
        expect([status, reused]).toEqual([200, true]);
      }
    }, 120_000);
  }

  /** The limits are reached. */
  function settled(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 1_500));
  }

  /** Rejects where others are in the way. */
  async function answered<T extends Answer>(asked: Promise<T>): Promise<T> {
    const answer = await asked;
    if (answer.status === 429) throw new Error("too many requests");
    return answer;
  }
});

it("of reviews that come at once, one is answered after the other, and other work has its turn in between", async () => {
  let turn = 0;
  const turns: number[] = [];
  const timer = setInterval(() => turn++, 1);
  cleanup(() => clearInterval(timer));
  // Each takes its time, as one with the worst of patterns does.
  const model: AskedModel = {
    probe: () => {
      turns.push(turn);
      for (const until = performance.now() + 30; performance.now() < until; );
      return { state: undefined, displaced: [] };
    },
    problems: () => undefined,
  };
  const { port } = await startAdmission("", { model });
  const body = JSON.stringify(reviewFor(GOOD));
  const clients = await Promise.all(Array.from({ length: 10 }, () => allButTheEnd(port, body)));
  for (const { end } of clients) end();
  expect(await Promise.all(clients.map(({ status }) => status))).toEqual(Array(10).fill("HTTP/1.1 200 OK"));
  expect(new Set(turns).size).toBe(10);
});

/** A request that is sent, its last byte aside. */
async function allButTheEnd(port: number, body: string): Promise<{ end(): void; status: Promise<string> }> {
  const socket = encrypted(port);
  cleanup(() => socket.destroy());
  const head = `${HEAD}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.write(head + body.slice(0, -1), () => resolve());
  });
  const status = new Promise<string>((resolve) => {
    socket.once("data", (chunk: Buffer) => resolve(chunk.toString("latin1").split("\r\n")[0]));
  });
  return { end: () => socket.write(body.slice(-1)), status };
}
