/** Table `route`: finding the route of a request, in four sizes, and what building and changing routes costs. */
import { FreshStrings } from "../fresh-strings.js";
import { type Measured, measure } from "../measure.js";
import type { Goal, Row } from "../report.js";
import { conditionRows } from "./conditions.js";
import { CoreRoutes } from "./core-adapter.js";
import { fillCore } from "./host-rules.js";
import { maintenanceRows } from "./maintenance.js";
import { buildFindMyWay, buildMaps, buildMemoirist, type Router } from "./peers.js";
import { makeWorkload, meanBytes, SIZES, type Workload } from "./workload.js";

const TABLE = "route";

/** Requests of a pass: enough that the routes of a large table are not all in the caches from the pass before. */
const REQUESTS = 20_000;

/** What the core has to reach, as the ratio of another router's time to its own. */
const GOALS: Record<string, Record<string, number>> = {
  "find-my-way": { "1k": 3, "10k": 8, "100k": 10 },
  memoirist: { "1k": 1.7, "10k": 5, "100k": 5 },
  "Map that strips segments": { "1k": 1.2, "10k": 1.2, "100k": 1.5 },
};

/** Throws at the first request that a router answers otherwise than the workload says. */
function checkDecisions(name: string, router: Router, { requests }: Workload): void {
  for (const { host, target, expected } of requests) {
    const found = router.find(host, target);
    if (found !== expected) throw new Error(`${name}: ${host}${target} gave route ${found} instead of ${expected}`);
  }
}

function routerCase(name: string, router: Router, hosts: FreshStrings, targets: FreshStrings): Measured {
  return {
    name,
    operations: hosts.strings.length,
    prepare: () => {
      hosts.renew();
      targets.renew();
    },
    pass: () => {
      let sum = 0;
      for (let i = 0; i < hosts.strings.length; i++) sum += router.find(hosts.strings[i], targets.strings[i]);
      return sum;
    },
  };
}

/**
 * Checks the core: by its own account every request meets the right route, and what the timed call answers names that
 * route and no other.
 */
function checkCore(core: CoreRoutes, workload: Workload): void {
  const numberOf = core.numberOf(workload);
  checkDecisions("core", { find: numberOf }, workload);
  const names = new Map<number, number>();
  const numbers = new Map<number, number>();
  for (const { host, target, expected } of workload.requests) {
    const name = core.find(host, target);
    if (!names.has(expected)) names.set(expected, name);
    if (!numbers.has(name)) numbers.set(name, expected);
    if (names.get(expected) !== name || numbers.get(name) !== expected) {
      throw new Error(`core: ${host}${target} is answered with ${name}, which is another route's name`);
    }
  }
}

function sizeRows(workload: Workload): Row[] {
  const core = new CoreRoutes();
  fillCore(core, workload);
  checkCore(core, workload);
  const others: [string, Router][] = [
    ["find-my-way", buildFindMyWay(workload.routes)],
    ["memoirist", buildMemoirist(workload.routes)],
    ["Map that strips segments", buildMaps(workload.routes)],
  ];
  for (const [name, router] of others) checkDecisions(name, router, workload);
  const routers: [string, Router][] = [["core", core], ...others];
  const hosts = new FreshStrings(workload.requests.map((request) => request.host));
  const targets = new FreshStrings(workload.requests.map((request) => request.target));
  const times = measure(routers.map(([name, router]) => routerCase(name, router, hosts, targets)));
  core.close();

  const reference = times.get("core") ?? Number.NaN;
  return routers.map(([name]) => {
    const ns = times.get(name) ?? Number.NaN;
    const least = GOALS[name]?.[workload.size.name];
    const goal: Goal | undefined = least === undefined ? undefined : { of: "ratio", atLeast: least };
    return { table: TABLE, name: `${workload.size.name}: ${name}`, ns, ratio: ns / reference, goal };
  });
}

/** Measures the table. Throws if a router decides otherwise than the workload says. */
export function routeTable(): Row[] {
  const rows: Row[] = [];
  for (const size of SIZES) {
    const workload = makeWorkload(size, REQUESTS);
    if (size.name === "1k") {
      const bytes = meanBytes(workload.requests);
      rows.push({ table: TABLE, name: "host and target of a request", value: { amount: bytes, unit: "bytes" } });
    }
    rows.push(...sizeRows(workload));
  }
  return [...rows, ...maintenanceRows(), ...conditionRows()];
}
