/** How much of a processor core the probing of 10,000 peers takes: the real process, against a real server. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { HealthClient } from "../../controller/health/health-client.js";
import type { ProbeProcessFigures } from "../../controller/health/messages.js";
import type { Upstream } from "../../controller/model/types.js";
import { silentLogger } from "../../controller/observability/logger.js";
import type { Row } from "../report.js";

const PEERS = 10_000;
const INTERVAL = 5_000;
/** Every peer has been probed twice by then. */
const WARM_UP = 11_000;
const MEASURED = 20_000;
const SERVER = fileURLToPath(new URL("./peer-server.js", import.meta.url));

/** Distinct addresses of 127.0.0.0/8, all answered by one server. */
function upstreamAt(port: number): Upstream {
  const peers = Array.from({ length: PEERS }, (_, i) => ({
    address: `127.0.${1 + (i >> 8)}.${i & 255}`,
    port,
    weight: 1,
  }));
  return {
    peers: { key: "VirtualServer/bench/health/all", display: "bench/all:80", method: { kind: "round-robin" }, peers },
    transport: { tls: false, protocol: "http" },
    healthCheck: {
      type: "http",
      tls: false,
      path: "/healthz",
      headers: [],
      interval: INTERVAL,
      jitter: 0,
      fails: 1,
      passes: 1,
      connectTimeout: 4000,
      readTimeout: 4000,
      sendTimeout: 4000,
      grpcService: "",
      persistent: false,
    },
  };
}

async function startServer(): Promise<{ child: ChildProcessWithoutNullStreams; port: number }> {
  const child = spawn(process.execPath, [SERVER]);
  const port = await new Promise<number>((resolve) => child.stdout.once("data", (text) => resolve(Number(text))));
  return { child, port };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The first report of the process after `ms`; they come every two seconds. */
async function figuresAfter(client: HealthClient, ms: number): Promise<ProbeProcessFigures> {
  await pause(ms);
  const before = client.figures;
  while (client.figures === before || client.figures === undefined) await pause(1);
  return client.figures;
}

/** Measures it. Throws where a probe failed: the figures would be of something else. */
export async function probingRows(table: string): Promise<Row[]> {
  const { child, port } = await startServer();
  let up = 0;
  const client = new HealthClient({
    logger: silentLogger,
    events: { record() {} },
    setPeerStates: (states) => {
      up += states.filter(({ state }) => state === "up").length;
    },
  });
  try {
    const upstream = upstreamAt(port);
    client.update(new Map([[upstream.peers.key, upstream]]));
    client.ready();
    const from = await figuresAfter(client, WARM_UP);
    const to = await figuresAfter(client, MEASURED);
    if (up !== PEERS || to.failed > 0) throw new Error(`${up} peers up, ${to.failed} probes failed`);
    const cpu = to.cpuMs - from.cpuMs;
    const probes = to.ended - from.ended;
    const wall = to.upMs - from.upMs;
    return [
      {
        table,
        name: "probing 10,000 peers every 5 s: CPU of the probe process",
        value: { amount: (cpu / wall) * 100, unit: "% of a core" },
        goal: { of: "value", atMost: 60 },
      },
      { table, name: "one HTTP probe: CPU", value: { amount: (cpu / probes) * 1000, unit: "us" } },
      { table, name: "probes that ended in a second", value: { amount: (probes / wall) * 1000, unit: "1/s" } },
      { table, name: "memory of the probe process", value: { amount: to.rss / 2 ** 20, unit: "MiB" } },
      {
        table,
        name: "memory, against the begin of the measurement",
        value: { amount: to.rss / from.rss, unit: "times" },
      },
    ];
  } finally {
    await client.close();
    child.stdin.end();
  }
}
