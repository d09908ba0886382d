/** Building 100,000 routes, the size of their images, and replacing one host among few and among many. */
import { measureOnce } from "../measure.js";
import type { Row } from "../report.js";
import { openCoreRoutes } from "./core-adapter.js";
import { fillCore, hostRules } from "./host-rules.js";
import { buildFindMyWay } from "./peers.js";
import { makeWorkload, SIZES, type Workload } from "./workload.js";

const TABLE = "route";
const BUILDS = 3;
const REPLACEMENTS = 400;

/** Nanoseconds for replacing one host of a table that holds a workload; the hosts take turns. */
async function replaceTime(workload: Workload): Promise<number | undefined> {
  const core = await openCoreRoutes();
  if (!core) return undefined;
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

async function coreBuild(workload: Workload): Promise<{ ns: number; bytesPerRoute: number } | undefined> {
  const times: number[] = [];
  let bytesPerRoute = 0;
  for (let i = 0; i < BUILDS; i++) {
    const core = await openCoreRoutes();
    if (!core) return undefined;
    times.push(measureOnce(1, () => fillCore(core, workload)));
    bytesPerRoute = core.matchBytes() / workload.routes.length;
    core.close();
  }
  return { ns: times.sort((a, b) => a - b)[BUILDS >> 1] * 1e6, bytesPerRoute };
}

export async function maintenanceRows(): Promise<Row[]> {
  const [small, , large] = SIZES.map((size) => makeWorkload(size, 0));
  const built = await coreBuild(large);
  const peer = measureOnce(BUILDS, () => void buildFindMyWay(large.routes)) * 1e6;
  const few = await replaceTime(small);
  const many = await replaceTime(large);
  const rows: Row[] = [
    {
      table: TABLE,
      name: "build 100k: find-my-way",
      ns: peer,
      ratio: built && peer / built.ns,
      goal: { of: "ratio", atLeast: 20 },
    },
  ];
  if (!built || few === undefined || many === undefined) return rows;
  return [
    { table: TABLE, name: "build 100k: core", ns: built.ns, ratio: 1 },
    ...rows,
    {
      table: TABLE,
      name: "match section of a literal route",
      value: { amount: built.bytesPerRoute, unit: "bytes" },
      goal: { of: "value", atMost: 120 },
    },
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
