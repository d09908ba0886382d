/**
 * The Go part of the table `hosts`: finding the route of a request in a Go server, by the core and by Go's own routers.
 * Processor time.
 */
import { execFileSync, type StdioOptions } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadCore } from "../../controller/core-file.js";
import { BUNDLE_KIND, type BundleRecord, writeBundle } from "../../core-wasm/binding/bundle.js";
import { compilePeerSetImage, compileShardImage } from "../../core-wasm/binding/images.js";
import { goEnvironment, readyGo } from "../../test/conformance/go.js";
import type { Row } from "../report.js";
import { hostRules, UPSTREAMS } from "../route/host-rules.js";
import { makeWorkload, SIZES, type Workload } from "../route/workload.js";

const TABLE = "hosts";
const REQUESTS = 50_000;
const MEASURED = ["1k", "10k", "100k"];
/** From here on the core is to be ahead. */
const GOAL_SIZES = ["10k", "100k"];
/** The sources, from dist/bench/hosts or bench/hosts. */
const FOLDER = fileURLToPath(new URL("../../../bench/hosts/go/", import.meta.url));

interface Figure {
  size: string;
  name: string;
  ns: number;
  /** Milliseconds. */
  loaded: number;
}

/** Rows of the Go part; none, with the reason printed, where there is no Go. */
export async function goRows(): Promise<Row[]> {
  const found = await readyGo();
  if ("skipped" in found) {
    console.error(`hosts: Go is left out: ${found.skipped}`);
    return [];
  }
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-bench-"));
  try {
    const workloads = [];
    for (const size of SIZES.filter(({ name }) => MEASURED.includes(name))) {
      const workload = makeWorkload(size, REQUESTS);
      const bundle = `${size.name}.njkb`;
      writeFileSync(join(folder, bundle), await bundleOfWorkload(workload));
      workloads.push({ name: size.name, routes: workload.routes, requests: workload.requests, bundle });
    }
    writeFileSync(join(folder, "workloads.json"), JSON.stringify(workloads));
    const program = join(folder, "bench-hosts");
    const stdio: StdioOptions = ["ignore", "ignore", "inherit"];
    execFileSync(found.go, ["build", "-o", program, "."], { cwd: FOLDER, env: goEnvironment(), stdio });
    const output = execFileSync(program, [folder], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
    return rowsOf(
      output
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Figure),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function bundleOfWorkload({ size, routes }: Workload): Promise<Uint8Array> {
  const core = await loadCore();
  const records: BundleRecord[] = UPSTREAMS.map((key) => {
    const peers = [1, 2, 3].map((i) => ({ address: `10.0.0.${i}`, port: 8080, weight: 1 }));
    const content = compilePeerSetImage(core, { key, display: key, method: { kind: "round-robin" }, peers });
    return { kind: BUNDLE_KIND.peerSet, key, content };
  });
  for (let first = 0; first < routes.length; first += size.pathsPerHost) {
    const rules = hostRules(routes.slice(first, first + size.pathsPerHost), first);
    records.push({ kind: BUNDLE_KIND.shard, key: routes[first].host, content: compileShardImage(core, rules) });
  }
  return writeBundle(records);
}

function rowsOf(figures: readonly Figure[]): Row[] {
  const rows: Row[] = [];
  for (const size of MEASURED) {
    const ours = figures.find((one) => one.size === size && one.name === "core");
    if (!ours) continue;
    for (const { name, ns } of figures.filter((one) => one.size === size)) {
      const row: Row = { table: TABLE, name: `Go, ${size} routes: ${name}`, ns, ratio: ns / ours.ns };
      if (name !== "core" && GOAL_SIZES.includes(size)) row.goal = { of: "ratio", atLeast: 1 };
      rows.push(row);
    }
    for (const { name, loaded } of figures.filter((one) => one.size === size)) {
      const value = { amount: loaded, unit: "ms" };
      rows.push({ table: TABLE, name: `Go, ${size} routes: taken in by ${name}`, value });
    }
  }
  return rows;
}
