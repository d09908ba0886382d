/** Building 100,000 routes, the size of their images, and replacing one host among few and among many. */
import { measureOnce, median } from "../measure.js";
import type { Row } from "../report.js";
import { CoreRoutes } from "./core-adapter.js";
import { fillCore, hostRules } from "./host-rules.js";
import { buildFindMyWay } from "./peers.js";
import { makeWorkload, SIZES, type Workload } from "./workload.js";

const TABLE = "route";
const BUILDS = 3;
const REPLACEMENTS = 400;

/** Nanoseconds for replacing one host of a table that holds a workload; the hosts take turns. */
function replaceTime(workload: Workload): number {
  const core = new CoreRoutes();
  fillCore(core, workload);
  const { hosts, routes, size } = workload;
  let turn = 0;
  const replaceOne = () => {
    const host = (turn++ * 7919) % hosts.length;
    const first = host * size.pathsPerHost;
    core.setHost(hostRules(routes.slice(first, first + size.pathsPerHost), first));
  };
  for (let i = 0; i < REPLACEMENTS; i++) replaceOne();
  const milliseconds = measureOnce(REPLACEMENTS, replaceOne);
  core.close();
  return milliseconds * 1e6;
}

/** Nanoseconds for filling an empty table. */
function buildTime(workload: Workload): number {
  const times: number[] = [];
  for (let i = 0; i < BUILDS; i++) {
    const core = new CoreRoutes();
    times.push(measureOnce(1, () => fillCore(core, workload)));
    core.close();
  }
  return median(times) * 1e6;
}

function sizeRows({ routes, size }: Workload): Row[] {
  const core = new CoreRoutes();
  let match = 0;
  let records = 0;
  for (let first = 0; first < routes.length; first += size.pathsPerHost) {
    const bytes = core.matchBytes(hostRules(routes.slice(first, first + size.pathsPerHost), first));
    match += bytes.match;
    records += bytes.routes;
  }
  core.close();
  const each = (bytes: number) => ({ amount: bytes / routes.length, unit: "bytes" });
  return [
    {
      table: TABLE,
      name: "match section, of each literal route",
      value: each(match),
      goal: { of: "value", atMost: 120 },
    },
    { table: TABLE, name: "match section and route record", value: each(match + records) },
  ];
}

export function maintenanceRows(): Row[] {
  const [small, , large] = SIZES.map((size) => makeWorkload(size, 0));
  const built = buildTime(large);
  const peer = measureOnce(BUILDS, () => void buildFindMyWay(large.routes)) * 1e6;
  const few = replaceTime(small);
  const many = replaceTime(large);
  return [
    { table: TABLE, name: "build 100k: core", ns: built, ratio: 1 },
    {
      table: TABLE,
      name: "build 100k: find-my-way",
      ns: peer,
      ratio: peer / built,
      goal: { of: "ratio", atLeast: 20 },
    },
    ...sizeRows(large),
    { table: TABLE, name: "replace one host among 1k routes", ns: few, ratio: 1 },
    {
      table: TABLE,
      name: "replace one host among 100k routes",
      ns: many,
      ratio: many / few,
      goal: { of: "ratio", atMost: 2 },
    },
  ];
}
