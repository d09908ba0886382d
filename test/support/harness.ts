import { afterEach } from "vitest";
import type { LineSink } from "../../controller/observability/line-sink.js";
import { silentLogger } from "../../controller/observability/logger.js";
import { EmbeddedProxy } from "../../controller/proxies/embedded/embedded-proxy.js";
import type { EmbeddedProxyOptions } from "../../controller/proxies/embedded/options.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { makeRoutingTable } from "./core.js";
import { planOf } from "./plans.js";

type Cleanup = () => unknown;

const cleanups: Cleanup[] = [];

/** Runs after the current test, the latest first. */
export function cleanup(task: Cleanup): void {
  cleanups.push(task);
}

/** Runs what is to be cleaned up. */
export async function runCleanups(): Promise<void> {
  for (const task of cleanups.splice(0).reverse()) await task();
}

/** Call once in each test file. */
export function cleanUpAfterEach(): void {
  afterEach(runCleanups);
}

/** Closes a thing after the test and gives it back. */
export function closing<T extends { close(): Promise<void> }>(thing: T): T {
  cleanup(() => thing.close());
  return thing;
}

export interface Started {
  proxy: EmbeddedProxy;
  /** Port of the plain listener. */
  http: number;
  /** Port of the TLS listener. */
  https: number;
  /** Access log lines so far, parsed. */
  log: Record<string, unknown>[];
}

/** A proxy on free loopback ports, with `steps` applied; closed after the test. */
export async function startProxy(steps: PlanStep[], options: Partial<EmbeddedProxyOptions> = {}): Promise<Started> {
  const log: Record<string, unknown>[] = [];
  const accessLog: LineSink = { write: (line) => log.push(JSON.parse(line)) };
  const proxy = new EmbeddedProxy({
    table: makeRoutingTable(),
    logger: silentLogger,
    http: { address: "127.0.0.1", port: 0 },
    https: { address: "127.0.0.1", port: 0 },
    accessLog,
    ...options,
  });
  await proxy.listen();
  cleanup(() => proxy.close(0));
  const { failures } = await proxy.apply(planOf(...steps));
  if (failures.length > 0) throw new Error(JSON.stringify(failures));
  const { http, https } = proxy.addresses();
  return { proxy, http: http?.port ?? 0, https: https?.port ?? 0, log };
}

/** Resolves when `holds` does; rejects after `timeout` milliseconds. */
export async function eventually(holds: () => boolean, timeout = 20_000): Promise<void> {
  const deadline = performance.now() + timeout;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`did not come true: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
