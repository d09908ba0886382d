/** Table `proxy`: processor time that the embedded proxy spends on a request, system calls included. */
import { type ChildProcess, fork } from "node:child_process";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { fileURLToPath } from "node:url";
import type { Row } from "../report.js";
import type { ServingOptions } from "./serving-process.js";

const TABLE = "proxy";
const CONNECTIONS = 32;
const REQUESTS = 10_000;
const ROUNDS = 9;
const HOST = "shop.example.com";
const BODY = "x".repeat(1024);
const REQUEST = Buffer.from(
  `GET /cart/items?sort=price HTTP/1.1\r\nHost: ${HOST}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n` +
    "Accept: text/html,application/xhtml+xml\r\nAccept-Language: en\r\nAccept-Encoding: gzip, br\r\nCookie: theme=dark\r\n\r\n",
);

const CASES: { name: string; options: Omit<ServingOptions, "steps"> }[] = [
  { name: "one request, access log and metrics", options: { accessLog: true, metrics: true } },
  { name: "one request, access log, no metrics", options: { accessLog: true, metrics: false } },
  { name: "one request, neither", options: { accessLog: false, metrics: false } },
];

/** A peer on loopback that answers 1 KiB. */
async function startPeer(): Promise<Server> {
  const server = createServer((_request, response) => response.end(BODY));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** The proxy as a process, with its port. */
class Serving {
  private constructor(
    private readonly child: ChildProcess,
    readonly port: number,
  ) {}

  static async start(options: ServingOptions): Promise<Serving> {
    const child = fork(fileURLToPath(new URL("serving-process.js", import.meta.url)));
    child.send(options);
    return new Serving(child, await answerOf(child));
  }

  /** Processor time so far, in microseconds. */
  cpu(): Promise<number> {
    this.child.send("cpu");
    return answerOf(this.child);
  }

  stop(): void {
    this.child.disconnect();
  }
}

function answerOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error("the proxy's process ended"));
    child.once("exit", ended);
    child.once("message", (value) => {
      child.off("exit", ended);
      resolve(value as number);
    });
  });
}

/** Sends `count` requests over keep-alive connections, each one when the answer before it is whole. */
async function load(port: number, count: number): Promise<void> {
  let left = count;
  const client = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      let received = "";
      const next = () => {
        if (left-- > 0) socket.write(REQUEST);
        else socket.end(resolve);
      };
      socket.on("connect", next);
      socket.on("error", reject);
      socket.on("data", (chunk: Buffer) => {
        received += chunk.toString("latin1");
        if (!received.endsWith(BODY)) return;
        if (!received.startsWith("HTTP/1.1 200 ")) reject(new Error(received.slice(0, 80)));
        received = "";
        next();
      });
    });
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
}

function stepsFor(port: number): ServingOptions["steps"] {
  const key = "VirtualServer/default/shop/web";
  return [
    {
      step: "set-upstream",
      upstream: {
        peers: {
          key,
          display: "default/web:80",
          method: { kind: "round-robin" },
          peers: [{ address: "127.0.0.1", port, weight: 1 }],
        },
        transport: { tls: false, protocol: "http" },
      },
    },
    {
      step: "set-host",
      rules: {
        pattern: { kind: "exact", host: HOST },
        guards: [],
        routes: [
          {
            path: { kind: "prefix", path: "/", stopsRegex: false },
            label: "/",
            resource: "VirtualServer/default/shop",
            matches: [],
            outcome: { kind: "proxy", upstream: key },
          },
        ],
      },
    },
  ];
}

/**
 * Microseconds of processor time per request, the least over rounds in which the cases take turns: whatever else the
 * machine does only ever adds to it.
 */
export async function proxyTable(): Promise<Row[]> {
  const peer = await startPeer();
  const steps = stepsFor((peer.address() as AddressInfo).port);
  const proxies = await Promise.all(CASES.map(({ options }) => Serving.start({ ...options, steps })));
  const taken: number[][] = CASES.map(() => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (let turn = 0; turn < proxies.length; turn++) {
      // Each comes first in one round and last in another.
      const i = (round + turn) % proxies.length;
      const proxy = proxies[i];
      const before = await proxy.cpu();
      await load(proxy.port, REQUESTS);
      const used = (await proxy.cpu()) - before;
      // The first round warms up.
      if (round > 0) taken[i].push(used / REQUESTS);
    }
  }
  for (const proxy of proxies) proxy.stop();
  peer.close();
  peer.closeAllConnections();
  return CASES.map(({ name }, i) => ({
    table: TABLE,
    name,
    value: { amount: Math.min(...taken[i]), unit: "us of CPU" },
  }));
}
