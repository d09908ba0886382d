// Runs in a network namespace of its own, where every address 10.x.x.x is this machine: a real API server, the command,
// peers with cluster addresses, and clients. Arguments: the folder with the programs. Prints what was observed, as JSON.
import { type ChildProcess, spawn } from "node:child_process";
import { Agent, createServer, request } from "node:http";
import { fileURLToPath } from "node:url";
import type { KubeObject } from "../../real/kube/client.js";
import { TestCluster } from "../../real/kube/cluster.js";
import { ingress, ingressClass, service, slice } from "../objects.js";

const MAIN = fileURLToPath(new URL("../../../controller/cli/main.js", import.meta.url));
const HOST = "shop.example.com";
const PEERS = ["10.1.0.1", "10.1.0.2", "10.1.0.3"];
const DEADLINE = 30_000;

/** Answers with its own address. */
async function peer(address: string): Promise<void> {
  const server = createServer((_, response) => response.end(address));
  await new Promise<void>((resolve) => server.listen(8080, address, resolve));
}

function ask(port: number, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, headers: { Host: HOST }, ...(agent ? { agent } : {}) },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        answer.on("error", reject);
        answer.on("end", () => resolve(answer.statusCode === 200 ? text : `status ${answer.statusCode}`));
      },
    );
    sent.on("error", reject);
    sent.end();
  });
}

async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + DEADLINE;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The command, and the port that it serves http on. */
async function run(kubeconfig: string): Promise<{ child: ChildProcess; port: number }> {
  const ports = [
    "--address",
    "127.0.0.1",
    "--http-port",
    "0",
    "--https-port",
    "0",
    "--metrics-port",
    "off",
    "--no-access-log",
  ];
  const child = spawn(process.execPath, [MAIN, "run", "--kubeconfig", kubeconfig, ...ports], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  let port = 0;
  await until("the command serves", () => {
    const line = log.split("\n").find((text) => text.includes('"message":"serving"'));
    if (line !== undefined) port = (JSON.parse(line) as { http: number }).http;
    return port !== 0;
  });
  return { child, port };
}

/** How often each peer answers `count` requests, one after another. */
async function shares(port: number, count: number): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  for (let index = 0; index < count; index++) {
    const answer = await ask(port);
    answers[answer] = (answers[answer] ?? 0) + 1;
  }
  return answers;
}

function terminating(name: string, address: string): KubeObject {
  const conditions = { ready: false, serving: true, terminating: true };
  return { ...slice(name, "shop", []), endpoints: [{ addresses: [address], conditions }] };
}

const cluster = await TestCluster.start(process.argv[2]);
let child: ChildProcess | undefined;
try {
  const { admin } = cluster;
  await Promise.all(PEERS.map(peer));
  await admin.applyAll([ingressClass("njet", "njet.org/ingress-controller"), service("shop"), ingress("shop")]);
  await admin.applyAll([slice("shop-1", "shop", PEERS.slice(0, 2)), slice("shop-2", "shop", PEERS.slice(1, 3))]);
  const running = await run(cluster.kubeconfig());
  child = running.child;
  const { port } = running;

  const duplicates = await shares(port, 30);

  // Load on kept connections while endpoints move and the API server dies and comes back.
  const failures: string[] = [];
  let [answered, going] = [0, true];
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const load = Promise.all(
    [1, 2, 3, 4].map(async () => {
      for (; going; answered++) {
        const answer = await ask(port, agent).catch(String);
        if (!PEERS.includes(answer)) failures.push(answer);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }),
  );
  const only = async (address: string) => {
    const seen = await shares(port, 6);
    return Object.keys(seen).join() === address;
  };
  await admin.delete(slice("shop-2", "", []));
  await admin.apply(slice("shop-1", "shop", [PEERS[0]]));
  await until("only the first peer answers", () => only(PEERS[0]));
  const before = answered;
  await cluster.killApiServer();
  await until("requests go on without an API server", () => answered > before + 100);
  await cluster.startApiServer();
  await cluster.admin.apply(slice("shop-1", "shop", [PEERS[2]]));
  await until("only the third peer answers", () => only(PEERS[2]));
  await cluster.admin.apply(slice("shop-2", "shop", [PEERS[1]]));
  await cluster.admin.apply(terminating("shop-1", PEERS[2]));
  await until("the terminating peer gets nothing new", () => only(PEERS[1]));
  going = false;
  await load;
  agent.destroy();

  const ended = new Promise((resolve) => child?.once("exit", resolve));
  child.kill("SIGTERM");
  const status = await ended;
  process.stdout.write(JSON.stringify({ duplicates, failures, answered, status }));
} finally {
  child?.kill("SIGKILL");
  await cluster.stop();
}
process.exit(0);
