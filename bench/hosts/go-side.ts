/**
 * The Go part of the table `hosts`: finding the route of a request in a Go server, by the core and by Go's own routers.
 * Processor time.
 */
import { execFileSync, type StdioOptions } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadCore } from "../../controller/core-file.js";
import { PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import { goEnvironment, readyGo } from "../../test/conformance/go.js";
import type { Row } from "../report.js";
import { makeWorkload, SIZES } from "../route/workload.js";
import { bundleOfWorkload } from "./workload-bundle.js";

const TABLE = "hosts";
const REQUESTS = 50_000;
const MEASURED = ["1k", "10k", "100k"];
/** From here on the core is to be ahead. */
const GOAL_SIZES = ["10k", "100k"];
const FOLDER = join(PACKAGE_ROOT ?? "", "bench/hosts/go");

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
    const core = await loadCore();
    for (const size of SIZES.filter(({ name }) => MEASURED.includes(name))) {
      const workload = makeWorkload(size, REQUESTS);
      const bundle = `${size.name}.njkb`;
      writeFileSync(join(folder, bundle), bundleOfWorkload(core, workload));
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
