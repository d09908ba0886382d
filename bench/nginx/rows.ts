/** Rows of tables whose contestants carry the same load, and what the contestants of one comparison have in common. */
import { median } from "../measure.js";
import type { Row } from "../report.js";
import type { ChangeReport } from "./changes.js";
import type { Contestant } from "./contestants.js";
import { roundRatio, type Taken } from "./rounds.js";

/** Closes in any case what was opened. */
export async function withAll<Name extends string, T>(
  openers: Record<Name, () => Promise<Contestant>>,
  use: (contestants: Record<Name, Contestant>) => Promise<T>,
): Promise<T> {
  const opened: [Name, Contestant][] = [];
  try {
    for (const name of Object.keys(openers) as Name[]) opened.push([name, await openers[name]()]);
    return await use(Object.fromEntries(opened) as Record<Name, Contestant>);
  } finally {
    for (const [, one] of opened) await one.close();
  }
}

export type Kind = Exclude<keyof Taken, "rounds">;
const UNITS: Record<Kind, string> = {
  perCore: "requests/s",
  perSecond: "requests/s",
  cpu: "us of CPU",
  memory: "MB",
};

function figureRow(table: string, name: string, kind: Kind, taken: Taken, extra: Partial<Row> = {}): Row {
  return {
    table,
    name: `${name}, ${TITLES[kind]}`,
    value: { amount: taken[kind], unit: UNITS[kind] },
    ...extra,
  };
}

const TITLES: Record<Kind, string> = {
  perCore: "requests a second of one core",
  perSecond: "requests a second by the clock",
  cpu: "CPU of a request",
  memory: "memory",
};

export interface Pair {
  table: string;
  title: string;
  /** What the other one is called. */
  other: string;
  theirs: Taken;
  ours: Taken;
}

/** Two rows for a figure: the other's, and ours with how many times the other's that is. */
export function pairRows({ table, title, other, theirs, ours }: Pair, kind: Kind, goal?: Row["goal"]): Row[] {
  const ratio = kind === "memory" ? ours.memory / theirs.memory : roundRatio(ours, theirs, kind);
  return [
    figureRow(table, `${title}: ${other}`, kind, theirs, { ratio: 1 }),
    figureRow(table, `${title}: ours`, kind, ours, { ratio, goal }),
  ];
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
}

/** Rows of changes that we make under load. `most`: milliseconds that the p99 may have. */
export function ourChangeRows(table: string, change: string, { times, load }: ChangeReport, most?: number): Row[] {
  const none = { of: "value", atMost: 0 } as const;
  const row = (name: string, amount: number, unit: string, goal?: Row["goal"]): Row => {
    return { table, name, value: { amount, unit }, goal };
  };
  return [
    row(`${change}, p50`, median(times), "ms"),
    row(
      `${change}, p99`,
      percentile(times, 0.99),
      "ms",
      most === undefined ? undefined : { of: "value", atMost: most },
    ),
    row(`requests that failed meanwhile, of ${load.sent}`, load.failed, "requests", none),
    row("connections that were closed meanwhile", load.closedIdle, "connections", none),
  ];
}
