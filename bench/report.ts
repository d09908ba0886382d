/** What a run found, as a table for people and as JSON for comparing runs. */
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";

/** One line of a table. */
export interface Row {
  table: string;
  name: string;
  /** Nanoseconds per operation, the median. Undefined for a figure that is not a time. */
  ns?: number;
  /** How many times the reference's time this case takes; the reference is the core unless the name says otherwise. */
  ratio?: number;
  /** A figure that is not a time, with its unit. */
  value?: { amount: number; unit: string };
  /** What is asked for. */
  goal?: Goal;
}

/** A bound on a row's ratio, time or value. */
export interface Goal {
  of: "ratio" | "ns" | "value";
  atLeast?: number;
  atMost?: number;
}

/** True if a row has the figure that its goal bounds, and keeps to it; undefined if there is nothing to compare. */
export function meetsGoal(row: Row): boolean | undefined {
  const { goal } = row;
  const figure = goal?.of === "value" ? row.value?.amount : goal ? row[goal.of] : undefined;
  if (!goal || figure === undefined) return undefined;
  return figure >= (goal.atLeast ?? -Infinity) && figure <= (goal.atMost ?? Infinity);
}

function goalText(row: Row): string {
  const { goal } = row;
  if (!goal) return "";
  const bound = goal.atLeast !== undefined ? `>= ${goal.atLeast}` : `<= ${goal.atMost}`;
  const met = meetsGoal(row);
  return `${bound}${goal.of === "ratio" ? "x" : ""}${met === undefined ? "" : met ? "  met" : "  MISSED"}`;
}

/** Three or four significant digits, with thousands separated. */
export function figure(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function cells(row: Row): string[] {
  const amount =
    row.ns !== undefined ? figure(row.ns) : row.value ? `${figure(row.value.amount)} ${row.value.unit}` : "";
  return [row.name, amount, row.ratio === undefined ? "" : `${figure(row.ratio)}x`, goalText(row)];
}

/** The rows of one table as lines of text. */
export function renderTable(title: string, rows: readonly Row[]): string {
  const lines = [["case", "ns/op", "ratio", "goal"], ...rows.map(cells)];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const text = lines.map((line) =>
    line
      .map((cell, i) => (i === 1 || i === 2 ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join("  ")
      .trimEnd(),
  );
  text.splice(1, 0, "-".repeat(widths.reduce((sum, width) => sum + width + 2, -2)));
  return `${title}\n${text.join("\n")}\n`;
}

/** Writes `{machine: {cpu, node}, cases: [{table, name, ns, ratio, value, goal, met}]}`; a missing figure is null. */
export function writeJson(file: string, rows: readonly Row[]): void {
  const report = {
    machine: { cpu: cpus()[0]?.model.trim() ?? "unknown", node: process.version },
    cases: rows.map((row) => ({
      table: row.table,
      name: row.name,
      ns: row.ns ?? null,
      ratio: row.ratio ?? null,
      value: row.value ?? null,
      goal: row.goal ?? null,
      met: meetsGoal(row) ?? null,
    })),
  };
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
}
