/** How long a change takes until it acts, while requests go on: ours by a plan, the static one by a reload. */
import { type ChildProcess, fork } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { KeptConnection } from "../control-plane/kept-connection.js";
import { Random } from "../random.js";
import { type Driven, ourNginx, staticNginx } from "./contestants.js";
import { type LoadReport, STABLE_HOSTS } from "./load.js";
import { addressesOf, addressPrefix, hostOf, SERVICES, servicesOf, siteStep, stepsWith, upstreamStep } from "./site.js";
import { sitesConfiguration } from "./static-configuration.js";

const WORKERS = 2;
const CHANGES = 400;
const RELOADS = 7;

export interface ChangeReport {
  /** Milliseconds of each change. */
  times: number[];
  load: LoadReport;
}

/** The client that goes on. */
class Load {
  private constructor(private readonly child: ChildProcess) {}

  static async start(port: number): Promise<Load> {
    const load = new Load(fork(fileURLToPath(new URL("load.js", import.meta.url))));
    load.child.send(port);
    await load.message();
    return load;
  }

  async stop(): Promise<LoadReport> {
    this.child.send("report");
    const report = (await this.message()) as LoadReport;
    this.child.disconnect();
    return report;
  }

  private message(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error("the load's process ended"));
      this.child.once("exit", ended);
      this.child.once("message", (value) => {
        this.child.off("exit", ended);
        resolve(value);
      });
    });
  }
}

/** Services of a host after `version` changes. */
function servicesAt(index: number, version: number): [number, number] {
  const [root, cart] = servicesOf(index);
  return [(root + version) % SERVICES, (cart + version) % SERVICES];
}

/** How changes of ours are made and timed. */
export interface ChangeOptions {
  /** What is driven; our NGINX without. */
  start?: (workers: number, steps: readonly PlanStep[]) => Promise<Driven>;
  /** Milliseconds that it has before the first change. */
  settling?: number;
}

/**
 * Times from a plan until all workers have acknowledged it: of a host's routes and of a service's peers, by turns. Each
 * change is seen by the next request, or the run ends.
 */
export async function ourChanges(
  peerPort: number,
  hosts: number,
  { start = ourNginx, settling = 2_000 }: ChangeOptions = {},
): Promise<ChangeReport> {
  const sites = Array.from({ length: hosts }, (_, index) => siteStep(index));
  const ours = await start(WORKERS, stepsWith(peerPort, ...sites));
  const random = new Random(9);
  const times: number[] = [];
  try {
    const load = await Load.start(ours.port);
    const connection = await KeptConnection.open(ours.port);
    await sleep(settling);
    for (let version = 1; version <= CHANGES; version++) {
      const index = STABLE_HOSTS + random.next(hosts - STABLE_HOSTS);
      const service = random.next(SERVICES);
      const addresses = addressesOf(service).slice(0, 1 + (version % 3));
      const step =
        version % 2 ? siteStep(index, servicesAt(index, version)) : upstreamStep(service, peerPort, addresses);
      const begun = performance.now();
      await ours.apply([step]);
      times.push(performance.now() - begun);
      if (version % 2) {
        const expected = addressPrefix(servicesAt(index, version)[1]);
        const { body } = await connection.ask(hostOf(index), "/cart");
        if (!body.startsWith(expected)) throw new Error(`an acknowledged change does not act: ${body}`);
      }
      await sleep(random.next(40));
    }
    connection.close();
    return { times, load: await load.stop() };
  } finally {
    await ours.close();
  }
}

/** Times from a signal until the new configuration answers on a new connection. */
export async function reloads(peerPort: number, hosts: number): Promise<ChangeReport> {
  const index = hosts - 1;
  const textAt = (version: number) => (options: Parameters<typeof sitesConfiguration>[0]) =>
    sitesConfiguration(options, peerPort, hosts, (i) => (i === index ? servicesAt(i, version) : servicesOf(i)));
  const running = await staticNginx(WORKERS, textAt(0));
  const times: number[] = [];
  try {
    const load = await Load.start(running.port);
    await sleep(2_000);
    for (let version = 1; version <= RELOADS; version++) {
      const options = { folder: running.folder, workers: WORKERS, port: running.port };
      writeFileSync(join(running.folder, "nginx.conf"), textAt(version)(options));
      const expected = addressPrefix(servicesAt(index, version)[1]);
      const begun = performance.now();
      process.kill(running.pid, "SIGHUP");
      while (!(await answersFrom(running.port, hostOf(index), expected))) await sleep(2);
      times.push(performance.now() - begun);
      await sleep(1_500);
    }
    return { times, load: await load.stop() };
  } finally {
    await running.close();
  }
}

async function answersFrom(port: number, host: string, expected: string): Promise<boolean> {
  const connection = await KeptConnection.open(port);
  try {
    return (await connection.ask(host, "/cart")).body.startsWith(expected);
  } catch {
    // An old worker has taken the connection, and ends.
    return false;
  } finally {
    connection.close();
  }
}
