/** Measuring with tinybench: passes over many operations, every case in every round. */
import { Bench } from "tinybench";

/** One thing to measure. A pass does `operations` of it and returns something that depends on all of them. */
export interface Measured {
  name: string;
  operations: number;
  /** Before each pass, outside the time that is measured: fresh strings, mostly. */
  prepare?: () => void;
  pass: () => number;
}

export interface MeasureOptions {
  rounds?: number;
  /** Milliseconds for each case in each round. */
  time?: number;
  /** Passes of each case in each round at least. */
  passes?: number;
}

/**
 * Nanoseconds per operation of each case: the median over the rounds of the median pass of a round. The cases take turns
 * within each round, so that a machine that slows down for a while slows all of them down. The first round warms up and
 * does not count.
 */
export function measure(cases: readonly Measured[], options: MeasureOptions = {}): Map<string, number> {
  const { rounds = 5, time = 150, passes = 8 } = options;
  const medians = new Map<string, number[]>(cases.map((one) => [one.name, []]));
  for (let round = 0; round <= rounds; round++) {
    const bench = new Bench({
      time,
      iterations: passes,
      warmup: round === 0,
      warmupTime: time,
      warmupIterations: 2,
      throws: true,
    });
    for (const one of cases) bench.add(one.name, one.pass, { beforeEach: one.prepare, async: false });
    bench.runSync();
    if (round === 0) continue;
    for (const task of bench.tasks) {
      if (task.result.state !== "completed") throw new Error(`${task.name} ended as ${task.result.state}`);
      medians.get(task.name)?.push(task.result.latency.p50);
    }
  }
  return new Map(cases.map((one) => [one.name, (median(medians.get(one.name) ?? []) * 1e6) / one.operations]));
}

/** Milliseconds that `run` takes: the median of `times` runs, for things too slow to be done thousands of times. */
export function measureOnce(times: number, run: () => void): number {
  const taken: number[] = [];
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    run();
    taken.push(performance.now() - start);
  }
  return median(taken);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
