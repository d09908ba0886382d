/** The Envoy part of the table `hosts`: the filter with the core inside against Envoy's own virtual hosts, in one run. */
import { cpus } from "node:os";
import type { Upstream } from "../../controller/model/types.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { bundleFrom } from "../../test/envoy/bundles.js";
import { prepareEnvoy } from "../../test/envoy/running-envoy.js";
import { ask } from "../../test/support/http-client.js";
import { median } from "../measure.js";
import { Running, staticNginx, temporaryFolder } from "../nginx/contestants.js";
import { ENVOY_VERSION, startEnvoy } from "../nginx/envoy.js";
import { memoryOf, pin } from "../nginx/processes.js";
import { measureRounds, type Taken } from "../nginx/rounds.js";
import { addressesOf, hostOf, siteRequests, siteStep, stepsWith } from "../nginx/site.js";
import { peersConfiguration } from "../nginx/static-configuration.js";
import { installed, ToolUnavailable } from "../nginx/tools.js";
import { Wrk } from "../nginx/wrk.js";
import type { Row } from "../report.js";

const TABLE = "hosts";
const SIZES = [10, 10_000];
const MANY = 10_000;
const STARTS = 5;
/** Of two or more processors, one is Envoy's and one that of the load and the peers. */
const PROXIES = 0;
const LOAD = 1;
/** Microseconds of processor time that a request may take more than with Envoy's own routes. */
const MOST_MORE = 25;

/** The peers and hosts of the table `nginx`. */
function bundleOfSites(peerPort: number, hosts: number): Uint8Array {
  const steps = stepsWith(peerPort, ...Array.from({ length: hosts }, (_, index) => siteStep(index)));
  const rules: HostRules[] = [];
  const upstreams: Upstream[] = [];
  for (const step of steps) {
    if (step.step === "set-host") rules.push(step.rules);
    if (step.step === "set-upstream") upstreams.push(step.upstream);
  }
  return bundleFrom(rules, upstreams);
}

/** Envoy with envoy.yaml and the filter. */
async function startFilter(binary: string, bundle: Uint8Array): Promise<Running> {
  const folder = temporaryFolder();
  const { args, port } = await prepareEnvoy(folder, { bundle });
  return Running.start(folder, port, binary, [...args, "--log-level", "error"]);
}

type Start = () => Promise<Running>;

interface Started {
  /** Milliseconds from the start of the program until its last host has answered. */
  time: number;
  /** MB, then. */
  memory: number;
}

/** Starts in turns; the medians. */
async function measureStarts(starts: Record<"native" | "filter", Start>, hosts: number) {
  const found: Record<"native" | "filter", Started[]> = { native: [], filter: [] };
  for (let round = 0; round < STARTS; round++) {
    for (const name of ["native", "filter"] as const) {
      const running = await starts[name]();
      try {
        await running.answering();
        const { status } = await ask(running.port, { host: hostOf(hosts - 1), path: "/cart/items" });
        if (status !== 200) throw new Error(`${name}: ${status} after the start`);
        found[name].push({ time: performance.now() - running.since, memory: memoryOf(running.pids()) });
      } finally {
        await running.close();
      }
    }
  }
  const middle = (all: Started[]): Started => ({
    time: median(all.map(({ time }) => time)),
    memory: median(all.map(({ memory }) => memory)),
  });
  return { native: middle(found.native), filter: middle(found.filter) };
}

async function measureRequests(starts: Record<"native" | "filter", Start>, hosts: number, wrk: Wrk) {
  const running: Running[] = [];
  try {
    for (const name of ["native", "filter"] as const) running.push(await (await starts[name]()).answering());
    const [native, filter] = running;
    return await measureRounds({ native, filter }, siteRequests(hosts), wrk, PROXIES);
  } finally {
    for (const one of running) await one.close();
  }
}

function requestRows(title: string, native: Taken, filter: Taken, goal: boolean): Row[] {
  const row = (name: string, amount: number, unit: string, rest: Partial<Row> = {}): Row => {
    return { table: TABLE, name: `Envoy, ${title}: ${name}`, value: { amount, unit }, ...rest };
  };
  const most = goal ? { goal: { of: "value", atMost: MOST_MORE } as const } : {};
  return [
    row("CPU of a request, native routes", native.cpu, "us", { ratio: 1 }),
    row("CPU of a request, filter", filter.cpu, "us", { ratio: filter.cpu / native.cpu }),
    row("the filter takes more", filter.cpu - native.cpu, "us", most),
    row("memory after the load, native routes", native.memory, "MB", { ratio: 1 }),
    row("memory after the load, filter", filter.memory, "MB", { ratio: filter.memory / native.memory }),
  ];
}

function startRows(title: string, native: Started, filter: Started): Row[] {
  const pair = (name: string, theirs: number, ours: number, unit: string): Row[] => [
    { table: TABLE, name: `Envoy, ${title}: ${name}, native routes`, value: { amount: theirs, unit }, ratio: 1 },
    {
      ...{ table: TABLE, name: `Envoy, ${title}: ${name}, filter`, value: { amount: ours, unit } },
      ...{ ratio: ours / theirs, goal: { of: "ratio", atMost: 1 } },
    },
  ];
  return [
    ...pair("start until a host answers", native.time, filter.time, "ms"),
    ...pair("memory then", native.memory, filter.memory, "MB"),
  ];
}

async function measure(binary: string): Promise<Row[]> {
  const wrk = await Wrk.prepare(LOAD);
  const peers = await staticNginx(1, peersConfiguration, addressesOf(0)[0]);
  try {
    pin(peers.pids(), LOAD);
    const rows: Row[] = [];
    for (const hosts of SIZES) {
      const title = `${hosts.toLocaleString("en-US")} hosts`;
      const bundle = bundleOfSites(peers.port, hosts);
      const starts = {
        native: () => startEnvoy(peers.port, hosts),
        filter: () => startFilter(binary, bundle),
      };
      const { native, filter } = await measureRequests(starts, hosts, wrk);
      rows.push(...requestRows(title, native, filter, hosts === SIZES[0]));
      if (hosts !== MANY) continue;
      const started = await measureStarts(starts, hosts);
      rows.push(...startRows(title, started.native, started.filter));
    }
    return rows;
  } finally {
    wrk.close();
    await peers.close();
  }
}

/** Rows of the Envoy part; none, with the reason printed, where Envoy or what drives it can't be had. */
export async function envoyRows(): Promise<Row[]> {
  if (process.platform !== "linux" || cpus().length < 2) {
    console.error("hosts: Envoy is left out: it needs Linux and two processors");
    return [];
  }
  try {
    const { binary } = await installed<{ binary: string }>("bench/nginx/install-envoy.mjs", ENVOY_VERSION);
    return await measure(binary);
  } catch (error) {
    if (!(error instanceof ToolUnavailable)) throw error;
    console.error(`hosts: Envoy is left out: ${error.message}`);
    return [];
  }
}
