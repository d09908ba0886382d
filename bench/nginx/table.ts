/**
 * Table `nginx`: our NGINX against one that is configured by hand and against Envoy, on the same machine by turns; and how long
 * changes take.
 */
import { cpus, loadavg } from "node:os";
import { median } from "../measure.js";
import type { Row } from "../report.js";
import { ourChanges, reloads } from "./changes.js";
import { type Contestant, ourNginx, type Running, staticNginx } from "./contestants.js";
import { startEnvoy } from "./envoy.js";
import { pin } from "./processes.js";
import { measureRounds, type Taken } from "./rounds.js";
import { ourChangeRows, pairRows, withAll } from "./rows.js";
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

const AHEAD = { perCore: { of: "ratio", atLeast: 1 }, cpu: { of: "ratio", atMost: 1 } } as const;

/** (a), and at the largest size (b): the same hosts on all. */
async function siteRows({ peerPort, wrk }: Setting, hosts: number): Promise<Row[]> {
  const sites = Array.from({ length: hosts }, (_, index) => siteStep(index));
  const openers: Record<string, () => Promise<Contestant>> = {
    static: () => staticNginx(1, (options) => sitesConfiguration(options, peerPort, hosts)),
    ours: () => ourNginx(1, stepsWith(peerPort, ...sites)),
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
  const against = { table: TABLE, title, other: "static", theirs: taken.static, ours };
  const rows = [
    ...pairRows(against, "perSecond"),
    ...pairRows(against, "perCore", { of: "ratio", atLeast: GOALS.perCore }),
    ...pairRows(against, "cpu", { of: "ratio", atMost: GOALS.cpu }),
    ...pairRows(against, "memory"),
  ];
  if (envoy !== undefined) {
    const beside = { ...against, other: "Envoy", theirs: envoy };
    rows.push(
      ...pairRows(beside, "perSecond"),
      ...pairRows(beside, "perCore", AHEAD.perCore),
      ...pairRows(beside, "cpu", AHEAD.cpu),
      ...pairRows(beside, "memory", { of: "ratio", atMost: 1 }),
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
    ours: () => ourNginx(1, stepsWith(peerPort, step)),
  };
  const taken = await withAll(openers, (contestants) => measureRounds(contestants, requests, wrk, PROXIES));
  say(`${title}: measured`);
  const against = { table: TABLE, title, other: "static", theirs: taken.static, ours: taken.ours };
  return [
    ...pairRows(against, "perSecond"),
    ...pairRows(against, "perCore", AHEAD.perCore),
    ...pairRows(against, "cpu", AHEAD.cpu),
  ];
}

async function changeRows(peerPort: number): Promise<Row[]> {
  const ours = await ourChanges(peerPort, MOST_HOSTS);
  say("changes: measured");
  const theirs = await reloads(peerPort, RELOADED_HOSTS);
  say("reloads: measured");
  const row = (name: string, amount: number, unit: string): Row => {
    return { table: TABLE, name, value: { amount, unit } };
  };
  const change = "a change at 10,000 hosts, until both workers have it";
  const reload = "a reload of the static one with 5,000 hosts, until it answers";
  for (const failure of ours.load.failures) say(`a request failed during changes: ${failure}`);
  return [
    ...ourChangeRows(TABLE, change, ours, GOALS.changes),
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
