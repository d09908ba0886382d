/**
 * Table `nginx`: our NGINX against one that is configured by hand and against Envoy, on the same machine by turns; and how long
 * changes take.
 */
import { cpus, loadavg } from "node:os";
import { median } from "../measure.js";
import type { Row } from "../report.js";
import { ourChanges, reloads } from "./changes.js";
import { type Contestant, OurNginx, type Running, staticNginx } from "./contestants.js";
import { startEnvoy } from "./envoy.js";
import { pin } from "./processes.js";
import { measureRounds, type Taken } from "./rounds.js";
import {
  addressesOf,
  conditionRequests,
  conditionStep,
  type Request,
  regexRequests,
  regexStep,
  SEARCHED,
  siteRequests,
  siteStep,
  stepsWith,
} from "./site.js";
import {
  conditionConfiguration,
  peersConfiguration,
  regexConfiguration,
  type StaticOptions,
  sitesConfiguration,
} from "./static-configuration.js";
import { ToolUnavailable } from "./tools.js";
import { Wrk } from "./wrk.js";

const TABLE = "nginx";
const SIZES = [10, 1_000, 10_000];
const MOST_HOSTS = 10_000;
const RELOADED_HOSTS = 5_000;
/** Of two or more processors, one is the contestants' and one that of the load and the peers. */
const PROXIES = 0;
const LOAD = 1;
const GOALS = { perCore: 0.85, cpu: 1.21, changes: 50 };

const say = (text: string) => process.stderr.write(`${text} (load average ${loadavg()[0].toFixed(1)})\n`);

interface Setting {
  peerPort: number;
  wrk: Wrk;
}

/** Closes in any case what was opened. */
async function withAll<Name extends string, T>(
  openers: Record<Name, () => Promise<Contestant>>,
  use: (contestants: Record<Name, Contestant>) => Promise<T>,
): Promise<T> {
  const opened: [Name, Contestant][] = [];
  try {
    for (const name of Object.keys(openers) as Name[]) opened.push([name, await openers[name]()]);
    return await use(Object.fromEntries(opened) as Record<Name, Contestant>);
  } finally {
    for (const [, one] of opened) await one.close();
  }
}

type Kind = keyof Taken;
const UNITS: Record<Kind, string> = {
  perCore: "requests/s",
  perSecond: "requests/s",
  cpu: "us of CPU",
  memory: "MB",
};

function figureRow(name: string, kind: Kind, taken: Taken, extra: Partial<Row> = {}): Row {
  return {
    table: TABLE,
    name: `${name}, ${TITLES[kind]}`,
    value: { amount: taken[kind], unit: UNITS[kind] },
    ...extra,
  };
}

const TITLES: Record<Kind, string> = {
  perCore: "requests a second of one core",
  perSecond: "requests a second by the clock",
  cpu: "CPU of a request",
  memory: "memory",
};

/** Two rows for a figure: the other's, and ours with how many times the other's that is. */
function pairRows(title: string, other: string, kind: Kind, theirs: Taken, ours: Taken, goal?: Row["goal"]): Row[] {
  return [
    figureRow(`${title}: ${other}`, kind, theirs, { ratio: 1 }),
    figureRow(`${title}: ours`, kind, ours, { ratio: ours[kind] / theirs[kind], goal }),
  ];
}

const AHEAD = { perCore: { of: "ratio", atLeast: 1 }, cpu: { of: "ratio", atMost: 1 } } as const;

/** (a), and at the largest size (b): the same hosts on all. */
async function siteRows({ peerPort, wrk }: Setting, hosts: number): Promise<Row[]> {
  const sites = Array.from({ length: hosts }, (_, index) => siteStep(index));
  const openers: Record<string, () => Promise<Contestant>> = {
    static: () => staticNginx(1, (options) => sitesConfiguration(options, peerPort, hosts)),
    ours: () => OurNginx.start(1, stepsWith(peerPort, ...sites)),
  };
  if (hosts === MOST_HOSTS) openers.envoy = async () => (await startEnvoy(peerPort, hosts)).answering();
  const run = (all: typeof openers) =>
    withAll(all, (contestants) => measureRounds(contestants, siteRequests(hosts), wrk, PROXIES));
  let taken: Record<string, Taken>;
  try {
    taken = await run(openers);
  } catch (error) {
    if (!(error instanceof ToolUnavailable)) throw error;
    console.warn(`the rows of Envoy are skipped: ${error.message}`);
    delete openers.envoy;
    taken = await run(openers);
  }
  const title = `${hosts.toLocaleString("en-US")} hosts`;
  const { ours, envoy } = taken;
  const rows = [
    ...pairRows(title, "static", "perSecond", taken.static, ours),
    ...pairRows(title, "static", "perCore", taken.static, ours, { of: "ratio", atLeast: GOALS.perCore }),
    ...pairRows(title, "static", "cpu", taken.static, ours, { of: "ratio", atMost: GOALS.cpu }),
    ...pairRows(title, "static", "memory", taken.static, ours),
  ];
  if (envoy !== undefined) {
    rows.push(
      ...pairRows(title, "Envoy", "perSecond", envoy, ours),
      ...pairRows(title, "Envoy", "perCore", envoy, ours, AHEAD.perCore),
      ...pairRows(title, "Envoy", "cpu", envoy, ours, AHEAD.cpu),
      ...pairRows(title, "Envoy", "memory", envoy, ours, { of: "ratio", atMost: 1 }),
    );
  }
  say(`${title}: measured`);
  return rows;
}

/** Where the static one searches. */
async function searchRows(
  { peerPort, wrk }: Setting,
  title: string,
  step: ReturnType<typeof regexStep>,
  requests: Request[],
  textOf: (options: StaticOptions, peerPort: number) => string,
): Promise<Row[]> {
  const openers = {
    static: () => staticNginx(1, (options) => textOf(options, peerPort)),
    ours: () => OurNginx.start(1, stepsWith(peerPort, step)),
  };
  const taken = await withAll(openers, (contestants) => measureRounds(contestants, requests, wrk, PROXIES));
  say(`${title}: measured`);
  return [
    ...pairRows(title, "static", "perSecond", taken.static, taken.ours),
    ...pairRows(title, "static", "perCore", taken.static, taken.ours, AHEAD.perCore),
    ...pairRows(title, "static", "cpu", taken.static, taken.ours, AHEAD.cpu),
  ];
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
}

async function changeRows(peerPort: number): Promise<Row[]> {
  const ours = await ourChanges(peerPort, MOST_HOSTS);
  say("changes: measured");
  const theirs = await reloads(peerPort, RELOADED_HOSTS);
  say("reloads: measured");
  const row = (name: string, amount: number, unit: string, goal?: Row["goal"]): Row => {
    return { table: TABLE, name, value: { amount, unit }, goal };
  };
  const none = { of: "value", atMost: 0 } as const;
  const change = "a change at 10,000 hosts, until both workers have it";
  const reload = "a reload of the static one with 5,000 hosts, until it answers";
  for (const failure of ours.load.failures) say(`a request failed during changes: ${failure}`);
  return [
    row(`${change}, p50`, median(ours.times), "ms"),
    row(`${change}, p99`, percentile(ours.times, 0.99), "ms", { of: "value", atMost: GOALS.changes }),
    row(`requests that failed meanwhile, of ${ours.load.sent}`, ours.load.failed, "requests", none),
    row(`connections that were closed meanwhile`, ours.load.closedIdle, "connections", none),
    row(`${reload}, p50`, median(theirs.times), "ms"),
    row(`${reload}, the longest of ${theirs.times.length}`, Math.max(...theirs.times), "ms"),
    row(`requests that failed meanwhile, of ${theirs.load.sent}`, theirs.load.failed, "requests"),
    row(`connections that were closed meanwhile`, theirs.load.closedIdle, "connections"),
  ];
}

/** Rows of the table. Needs Linux, Debian's NGINX and wrk, and a C compiler; throws what is missing. */
export async function nginxTable(): Promise<Row[]> {
  if (process.platform !== "linux" || cpus().length < 2) throw new Error("this table needs Linux and two processors");
  say("begun");
  const wrk = await Wrk.prepare(LOAD);
  const first = addressesOf(0)[0];
  const peers: Running = await staticNginx(1, peersConfiguration, first);
  const setting = { peerPort: peers.port, wrk };
  try {
    pin(peers.pids(), LOAD);
    const rows: Row[] = [];
    for (const hosts of SIZES) rows.push(...(await siteRows(setting, hosts)));
    const regexes = `${SEARCHED} regex routes`;
    rows.push(...(await searchRows(setting, regexes, regexStep(), regexRequests(), regexConfiguration)));
    const conditions = `${SEARCHED} conditions`;
    rows.push(...(await searchRows(setting, conditions, conditionStep(), conditionRequests(), conditionConfiguration)));
    rows.push(...(await changeRows(setting.peerPort)));
    say("ended");
    return rows;
  } finally {
    wrk.close();
    await peers.close();
  }
}
