/**
 * Table `opennjet`: OpenNJet that we drive, in both carriers, against the same program with a configuration that is written by hand,
 * on the same machine by turns; and how long changes take.
 */
import { cpus, loadavg } from "node:os";
import { PartUnavailable } from "../../controller/proxies/nginx/parts.js";
import {
  CARRIERS,
  type Carrier,
  findOpenNjet,
  type OpenNjetInstallation,
} from "../../controller/proxies/opennjet/parts.js";
import { ourChanges } from "../nginx/changes.js";
import { staticNginx } from "../nginx/contestants.js";
import { pin } from "../nginx/processes.js";
import { measureRounds } from "../nginx/rounds.js";
import { ourChangeRows, pairRows, withAll } from "../nginx/rows.js";
import { addressesOf, siteRequests, siteStep, stepsWith } from "../nginx/site.js";
import { peersConfiguration, sitesConfiguration } from "../nginx/static-configuration.js";
import { Wrk } from "../nginx/wrk.js";
import type { Row } from "../report.js";
import { ourOpenNjet, staticOpenNjet } from "./contestants.js";

const TABLE = "opennjet";
const SIZES: Record<Carrier, readonly number[]> = { core: [10, 1_000, 10_000], locations: [10, 100, 300] };
/**
 * Milliseconds that an OpenNJet has after its start: its workers are told of all locations a second time then, and answer nobody
 * while they refuse them.
 */
const SETTLING = { core: 2_000, locations: 20_000 };
const PROXIES = 0;
const LOAD = 1;

const say = (text: string) => process.stderr.write(`${text} (load average ${loadavg()[0].toFixed(1)})\n`);

interface Setting {
  peerPort: number;
  wrk: Wrk;
  program: OpenNjetInstallation;
}

async function siteRows({ peerPort, wrk, program }: Setting, carrier: Carrier, hosts: number): Promise<Row[]> {
  const sites = Array.from({ length: hosts }, (_, index) => siteStep(index));
  const openers = {
    static: () => staticOpenNjet(program, 1, (options) => sitesConfiguration(options, peerPort, hosts)),
    ours: () => ourOpenNjet(carrier)(1, stepsWith(peerPort, ...sites)),
  };
  const taken = await withAll(openers, (contestants) => measureRounds(contestants, siteRequests(hosts), wrk, PROXIES));
  const title = `${carrier}, ${hosts.toLocaleString("en-US")} hosts`;
  say(`${title}: measured`);
  const pair = { table: TABLE, title, other: "static", theirs: taken.static, ours: taken.ours };
  return (["perSecond", "perCore", "cpu", "memory"] as const).flatMap((kind) => pairRows(pair, kind));
}

async function changeRows(peerPort: number, carrier: Carrier): Promise<Row[]> {
  const hosts = Math.max(...SIZES[carrier]);
  const report = await ourChanges(peerPort, hosts, {
    start: ourOpenNjet(carrier),
    settling: SETTLING[carrier],
  });
  for (const failure of report.load.failures) say(`a request failed during changes: ${failure}`);
  say(`changes in ${carrier}: measured`);
  const change = `${carrier}: a change at ${hosts.toLocaleString("en-US")} hosts, until it acts in both workers`;
  return ourChangeRows(TABLE, change, report);
}

/** Rows of the table; none where `NJET_PREFIX` names no OpenNJet, with the reason printed. Needs Linux, wrk and a C compiler. */
export async function openNjetTable(): Promise<Row[]> {
  let program: OpenNjetInstallation;
  try {
    program = await findOpenNjet(process.env.NJET_PREFIX, "locations");
  } catch (error) {
    if (!(error instanceof PartUnavailable)) throw error;
    console.warn(`the table is skipped: ${error.message}`);
    return [];
  }
  if (process.platform !== "linux" || cpus().length < 2) throw new Error("this table needs Linux and two processors");
  say("begun");
  const wrk = await Wrk.prepare(LOAD);
  const peers = await staticNginx(1, peersConfiguration, addressesOf(0)[0]);
  const setting = { peerPort: peers.port, wrk, program };
  try {
    pin(peers.pids(), LOAD);
    const rows: Row[] = [];
    for (const carrier of CARRIERS) rows.push(...(await changeRows(peers.port, carrier)));
    for (const carrier of CARRIERS) {
      for (const hosts of SIZES[carrier]) rows.push(...(await siteRows(setting, carrier, hosts)));
    }
    say("ended");
    return rows;
  } finally {
    wrk.close();
    await peers.close();
  }
}
