/**
 * A process of its own that the `proxy` table measures: the embedded proxy with one upstream. Told what to be by one
 * message; answers with its port, and to every "cpu" with the processor time (microseconds) that it has used so far.
 */
import { Writable } from "node:stream";
import { loadCore } from "../../controller/core-file.js";
import { BufferedLineSink } from "../../controller/observability/line-sink.js";
import { silentLogger } from "../../controller/observability/logger.js";
import { EmbeddedProxy } from "../../controller/proxies/embedded/embedded-proxy.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";

/** What the process is to measure. */
export interface ServingOptions {
  steps: PlanStep[];
  accessLog: boolean;
  metrics: boolean;
}

process.once("message", async (options: ServingOptions) => {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const proxy = new EmbeddedProxy({
    table: new RouteTable(await loadCore()),
    logger: silentLogger,
    http: { address: "127.0.0.1", port: 0 },
    ...(options.accessLog ? { accessLog: new BufferedLineSink(nowhere) } : {}),
    metrics: options.metrics,
  });
  await proxy.listen();
  await proxy.apply({ generation: "1", full: true, steps: options.steps });
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.send?.(proxy.addresses().http?.port);
});
process.once("disconnect", () => process.exit());
