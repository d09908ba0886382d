/** Table `control-plane`: how fast changes of a cluster act, and what that costs, with a real API server. */
import { fileURLToPath } from "node:url";
import { namespaceCommand, runProgram } from "../../test/kubernetes/traffic/namespace.js";
import { kubePrograms } from "../../test/real/kube/cluster.js";
import type { Goal, Row } from "../report.js";
import { CHANGE_KINDS } from "./changes.js";
import type { ScenarioReport } from "./scenario.js";

const TABLE = "control-plane";
const SCENARIO = fileURLToPath(new URL("scenario.js", import.meta.url));
const SITES = [1_000, 5_000];
const STARTS = 3;
/** The goals are those for the larger number of sites. */
const GOAL_SITES = 5_000;

/** Of the values the one below which the share `part` of them lies. */
function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}

function rowsOf(report: ScenarioReport, small: ScenarioReport | undefined): Row[] {
  const { sites, starts, memory, latencies, cpu, requests, load } = report;
  const row = (name: string, amount: number, unit: string, atMost?: number): Row => {
    const goal: Goal | undefined = atMost === undefined || sites < GOAL_SITES ? undefined : { of: "value", atMost };
    return { table: TABLE, name: `${sites.toLocaleString("en-US")}: ${name}`, value: { amount, unit }, goal };
  };
  const rows = [
    row(
      "start until all hosts answer",
      quantile(
        starts.map(({ seconds }) => seconds),
        0.5,
      ),
      "s",
      5,
    ),
    row(
      "  CPU of it",
      quantile(
        starts.map((start) => start.cpu),
        0.5,
      ),
      "s",
    ),
    row("start until every Ingress has its status", report.statusSeconds, "s"),
    row("RSS at rest", memory.rest, "MB", 300),
    row(`RSS before ${memory.changes.toLocaleString("en-US")} further changes`, memory.before, "MB"),
    row("  and after them", memory.after, "MB"),
  ];
  for (const kind of CHANGE_KINDS) {
    const p50 = row(`${kind}, p50`, quantile(latencies[kind], 0.5), "ms");
    if (small !== undefined) {
      p50.ratio = quantile(latencies[kind], 0.5) / quantile(small.latencies[kind], 0.5);
      p50.goal = { of: "ratio", atMost: 1.5 };
    }
    rows.push(p50, row(`${kind}, p99`, quantile(latencies[kind], 0.99), "ms", 50));
  }
  rows.push(
    row("endpoint change while status is written, p50", quantile(report.whileStatus, 0.5), "ms"),
    row("  p99", quantile(report.whileStatus, 0.99), "ms"),
    row("CPU for requests alone, of one core", cpu.requests, "%"),
    row("CPU for requests and changes, of one core", cpu.changes, "%"),
    row("CPU for changes: the difference", cpu.changes - cpu.requests, "%", 30),
    row("requests sent", requests.sent, "requests"),
    row("requests failed", requests.failed, "requests", 0),
    row("load average of the machine, before", load[0], ""),
    row("  and at the end", load[1], ""),
  );
  return rows;
}

/** Rejects where the API server can't run or no network namespace can be made: the reason has been printed. */
export async function controlPlaneTable(): Promise<Row[]> {
  const programs = await kubePrograms();
  const way = namespaceCommand();
  if (programs === undefined || way === undefined) throw new Error("control-plane: what it needs is not here");
  const rows: Row[] = [];
  let small: ScenarioReport | undefined;
  for (const sites of SITES) {
    const args = [programs, String(sites), String(STARTS)];
    const report = (await runProgram(way, SCENARIO, args, (text) => process.stderr.write(text))) as ScenarioReport;
    for (const failure of report.requests.failures) process.stderr.write(`failed: ${failure}\n`);
    rows.push(...rowsOf(report, small));
    small ??= report;
  }
  return rows;
}
