/**
 * Runs in a network namespace of its own, where every address 10.x.x.x is this machine: a real etcd and kube-apiserver,
 * the command, peers and clients. Arguments: the folder with the programs of the API server, the number of sites, how
 * often the command is started. Prints a `ScenarioReport` as JSON; progress goes to standard error.
 */
import { type ChildProcess, fork } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { TestCluster } from "../../test/real/kube/cluster.js";
import { CHANGE_KINDS, type ChangeKind, Changes } from "./changes.js";
import { ControllerProcess } from "./controller-process.js";
import { KeptConnection } from "./kept-connection.js";
import type { LoadReport } from "./load.js";
import { addressPrefix, hostOf, siteName } from "./site.js";

/** What was found with one number of sites. */
export interface ScenarioReport {
  sites: number;
  /** One entry for each start: seconds until every host answered, CPU seconds used until then. */
  starts: { seconds: number; cpu: number }[];
  /** Seconds from the start until the status of every Ingress was written. */
  statusSeconds: number;
  /** Milliseconds of endpoint changes while status was being written. */
  whileStatus: number[];
  /** MB: at rest after the start, before and after many more changes. */
  memory: { rest: number; before: number; after: number; changes: number };
  /** Milliseconds of each change. */
  latencies: Record<ChangeKind, number[]>;
  /** Share of one core, in percent: with requests alone, and with requests and changes. */
  cpu: { requests: number; changes: number };
  requests: LoadReport;
  /** Load average of the machine, at the beginning and at the end. */
  load: [number, number];
}

const [programs, sitesText, startsText] = process.argv.slice(2);
const sites = Number(sitesText);
const starts = Number(startsText);
const SAMPLES = 150;
const BACKGROUND_PER_SECOND = 20;
const WINDOW_MS = 6_000;
const TURNS = 3;
const MANY = 4_000;

const say = (text: string) => process.stderr.write(`${text}\n`);
const children: { kill(): unknown }[] = [];
process.once("exit", () => {
  for (const child of children) child.kill();
});

function start(name: string): ChildProcess {
  const child = fork(fileURLToPath(new URL(`${name}.js`, import.meta.url)));
  children.push(child);
  return child;
}

function messageOf<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error("a process of the benchmark ended"));
    child.once("exit", ended);
    child.once("message", (value) => {
      child.off("exit", ended);
      resolve(value as T);
    });
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A folder as a pod of the admin's rights would find it: that is how the command runs in a cluster. */
function serviceAccount(cluster: TestCluster): string {
  const folder = join(cluster.folder, "account");
  mkdirSync(folder, { mode: 0o700 });
  const { users } = JSON.parse(readFileSync(cluster.kubeconfig(), "utf8")) as { users: { user: { token: string } }[] };
  writeFileSync(join(folder, "token"), users[0].user.token, { mode: 0o600 });
  writeFileSync(join(folder, "namespace"), "default");
  copyFileSync(cluster.caFile, join(folder, "ca.crt"));
  return folder;
}

/** Asks again until the site answers as it should. */
async function answers(connection: KeptConnection, index: number): Promise<void> {
  for (;;) {
    const { status, body } = await connection.ask(hostOf(siteName(index)), "/shop");
    if (status === 200 && body.startsWith(addressPrefix(index))) return;
    await sleep(2);
  }
}

async function connection(port: number): Promise<KeptConnection> {
  for (;;) {
    const opened = await KeptConnection.open(port).catch(() => undefined);
    if (opened !== undefined) return opened;
    await sleep(5);
  }
}

/**
 * Starts the command and waits until all hosts answer: first some from everywhere, so that asking is not what takes the
 * time; then every single one is held to it, and one that needed longer moves the time.
 */
async function startController(account: string, server: string, port: number) {
  const controller = new ControllerProcess(account, server, port);
  children.push(controller);
  const first = await connection(port);
  const sample = 50;
  for (let i = 0; i <= sample; i++) await answers(first, Math.min(sites - 1, Math.floor((i * sites) / sample)));
  let seconds = (performance.now() - controller.started) / 1000;
  const cpu = controller.cpu();
  let next = 0;
  const sweep = async () => {
    const own = await connection(port);
    while (next < sites) {
      const index = next++;
      const { status } = await own.ask(hostOf(siteName(index)), "/shop");
      if (status === 200) continue;
      await answers(own, index);
      seconds = (performance.now() - controller.started) / 1000;
    }
    own.close();
  };
  await Promise.all([sweep(), sweep(), sweep(), sweep()]);
  first.close();
  say(`${sites} sites: all answer after ${seconds.toFixed(2)} s (${cpu.toFixed(2)} s of CPU)`);
  return { controller, seconds, cpu };
}

/** Share of one core over a while, in percent. */
async function share(controller: ControllerProcess, during: () => Promise<unknown>): Promise<number> {
  const [before, begun] = [controller.cpu(), performance.now()];
  await during();
  return ((controller.cpu() - before) * 100_000) / (performance.now() - begun);
}

const load: [number, number] = [loadavg()[0], 0];
const cluster = await TestCluster.start(programs, { flags: ["--max-requests-inflight=1000"] });
try {
  const { admin } = cluster;
  const account = serviceAccount(cluster);
  await admin.apply({
    apiVersion: "networking.k8s.io/v1",
    kind: "IngressClass",
    metadata: { name: "njet" },
    spec: { controller: "njet.org/ingress-controller" },
  });
  const peers = start("peers");
  await messageOf(peers);
  const changes = new Changes(admin, sites);
  say(`${sites} sites: being made`);
  const populating = performance.now();
  await changes.populate();
  say(`${sites} sites: there after ${((performance.now() - populating) / 1000).toFixed(0)} s`);
  const without = async () => {
    const ingresses = await admin.list("/apis/networking.k8s.io/v1/namespaces/default/ingresses");
    return ingresses.filter(({ status }) => !JSON.stringify(status ?? "").includes("192.0.2.10")).length;
  };

  const report: ScenarioReport["starts"] = [];
  const port = await freePort();
  let running = await startController(account, cluster.server, port);
  const whileStatus: number[] = [];
  const poller = await connection(port);
  for (let i = 0; i < 60; i++) {
    whileStatus.push(await changes.time("endpoint change", poller));
    await sleep(10);
  }
  poller.close();
  for (;;) {
    if ((await without()) === 0) break;
    await sleep(250);
  }
  const statusSeconds = (performance.now() - running.controller.started) / 1000;
  say(`${sites} sites: all have their status after ${statusSeconds.toFixed(1)} s`);
  // The first start meets an API server that has just written everything; further ones are like those of every day.
  for (let i = 0; i < starts; i++) {
    await running.controller.stop();
    await sleep(1000);
    running = await startController(account, cluster.server, port);
    report.push({ seconds: running.seconds, cpu: running.cpu });
  }
  const { controller } = running;
  await sleep(8000);
  const rest = controller.memory();
  say(`${sites} sites: ${rest.toFixed(0)} MB at rest`);

  const requests = start("load");
  requests.send(port);
  await messageOf(requests);
  await sleep(3000);
  const stop = changes.background(BACKGROUND_PER_SECOND);
  await sleep(1000);
  const connected = await connection(port);
  const latencies: ScenarioReport["latencies"] = { "new host": [], "path change": [], "endpoint change": [] };
  for (let i = 0; i < SAMPLES; i++) {
    for (const kind of CHANGE_KINDS) {
      latencies[kind].push(await changes.time(kind, connected));
      await sleep(Math.random() * 30);
    }
  }
  connected.close();
  await stop();
  // After the samples, when all code is as warm as it gets; in turns, so that a busy machine slows down both alike.
  const cpu = { requests: 0, changes: 0 };
  for (let turn = 0; turn < TURNS; turn++) {
    cpu.requests += (await share(controller, () => sleep(WINDOW_MS))) / TURNS;
    const stopAgain = changes.background(BACKGROUND_PER_SECOND);
    const both = async () => {
      const end = performance.now() + WINDOW_MS;
      for (let i = 0; performance.now() < end; i++) {
        await changes.make(CHANGE_KINDS[i % 3]);
        await sleep(300);
      }
    };
    cpu.changes += (await share(controller, both)) / TURNS;
    await stopAgain();
  }
  const before = controller.memory();
  await changes.many(MANY);
  await sleep(5000);
  const after = controller.memory();
  requests.send("report");
  const requestReport = await messageOf<LoadReport>(requests);
  load[1] = loadavg()[0];
  if (controller.errors !== "") say(`the command logged errors:\n${controller.errors}`);
  await controller.stop();
  const result: ScenarioReport = {
    sites,
    starts: report,
    statusSeconds,
    whileStatus,
    memory: { rest, before, after, changes: MANY },
    latencies,
    cpu,
    requests: requestReport,
    load,
  };
  process.stdout.write(JSON.stringify(result));
} finally {
  await cluster.stop();
}
process.exit(0);
