/** The Node part of the table `hosts`: deciding a request in a Node server, by the core over a bundle and by find-my-way. */
import { loadCore } from "../../controller/core-file.js";
import { BundleRouter } from "../../core-wasm/hosts/node/index.js";
import { FreshStrings } from "../fresh-strings.js";
import { measure } from "../measure.js";
import type { Row } from "../report.js";
import { benchRequest } from "../route/core-adapter.js";
import { buildFindMyWay } from "../route/peers.js";
import { makeWorkload, SIZES, type Workload } from "../route/workload.js";
import { bundleOfWorkload } from "./workload-bundle.js";

const TABLE = "hosts";
const REQUESTS = 20_000;
const MEASURED = ["1k", "10k", "100k"];
/** From here on the core is to be ahead. */
const GOAL_SIZES = ["10k", "100k"];

/** A decision with all that a proxy needs of it: the peer, whose place is given back, the target, the headers. */
function decide(router: BundleRouter, host: string, target: string): number {
  const decision = router.decide(benchRequest(host, target));
  if (decision.action !== "proxy") return decision.status;
  router.done(decision.peer, false);
  return decision.target.length;
}

/** Throws at the first request that the core decides otherwise than the workload says. */
function check(router: BundleRouter, { routes, requests }: Workload): void {
  for (const { host, target, expected } of requests) {
    const decision = router.decide(benchRequest(host, target));
    const found = decision.action === "proxy" ? decision.origin?.path : undefined;
    if (decision.action === "proxy") router.done(decision.peer, false);
    if (found !== routes[expected]?.path) throw new Error(`${host}${target} met ${found}`);
  }
}

async function sizeRows(workload: Workload): Promise<Row[]> {
  const core = await loadCore();
  const bundle = bundleOfWorkload(core, workload);
  const router = new BundleRouter(core);
  const start = performance.now();
  router.load(bundle);
  const loaded = performance.now() - start;
  check(router, workload);
  const other = buildFindMyWay(workload.routes);
  const hosts = new FreshStrings(workload.requests.map(({ host }) => host));
  const targets = new FreshStrings(workload.requests.map(({ target }) => target));
  const finders: [string, (host: string, target: string) => number][] = [
    ["core", (host, target) => decide(router, host, target)],
    ["find-my-way", (host, target) => other.find(host, target)],
  ];
  const times = measure(
    finders.map(([name, find]) => ({
      name,
      operations: REQUESTS,
      prepare() {
        hosts.renew();
        targets.renew();
      },
      pass() {
        let sum = 0;
        for (let i = 0; i < REQUESTS; i++) sum += find(hosts.strings[i], targets.strings[i]);
        return sum;
      },
    })),
  );
  router.free();
  const { name: size } = workload.size;
  const ours = times.get("core") ?? Number.NaN;
  const rows: Row[] = finders.map(([name]) => {
    const ns = times.get(name) ?? Number.NaN;
    const row: Row = { table: TABLE, name: `Node, ${size} routes: ${name}`, ns, ratio: ns / ours };
    if (name !== "core" && GOAL_SIZES.includes(size)) row.goal = { of: "ratio", atLeast: 1 };
    return row;
  });
  const value = { amount: loaded, unit: "ms" };
  return [...rows, { table: TABLE, name: `Node, ${size} routes: taken in by core`, value }];
}

/** Rows of the Node part. Throws where the core decides otherwise than the workload says. */
export async function nodeRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const size of SIZES.filter(({ name }) => MEASURED.includes(name))) {
    rows.push(...(await sizeRows(makeWorkload(size, REQUESTS))));
  }
  return rows;
}
