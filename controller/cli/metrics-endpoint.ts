import { errorCode, type Logger } from "../observability/logger.js";
import { MetricsPage } from "../observability/metrics-page.js";
import { MetricsServer } from "../observability/metrics-server.js";
import type { MetricsSource } from "../observability/metrics-text.js";
import { ProcessMetrics } from "../observability/process-metrics.js";

/** Where other proxies of the family have their metrics too. */
const DEFAULT_PORT = 12001;

export interface MetricsOptions {
  metricsAddress: string;
  /** 0 takes a free port, `off` opens none. Undefined: the default one, and none where another program has it. */
  metricsPort?: number | "off";
  /** First part of the names of the VTS families. */
  metricsPrefix: "njet" | "nginx";
  /** Series that the page holds at most. */
  metricsSeries: number;
}

/** The open port for metrics. */
export interface MetricsEndpoint {
  port: number;
  close(): Promise<void>;
}

/**
 * Opens the port for metrics and readiness. Undefined where it is off, or where nobody asked for a port and the usual
 * one is taken: two controllers on one machine serve all the same. Rejects where a port that was asked for is taken.
 */
export async function openMetrics(
  options: MetricsOptions,
  sources: readonly MetricsSource[],
  ready: () => boolean,
  logger: Logger,
): Promise<MetricsEndpoint | undefined> {
  const { metricsAddress: address, metricsPort, metricsSeries } = options;
  if (metricsPort === "off") return undefined;
  const ownProcess = new ProcessMetrics();
  const page = new MetricsPage([...sources, ownProcess], metricsSeries);
  const server = new MetricsServer({ page, logger, ready });
  try {
    const { port } = await server.listen(address, metricsPort ?? DEFAULT_PORT);
    return {
      port,
      async close() {
        ownProcess.close();
        await server.close();
      },
    };
  } catch (error) {
    ownProcess.close();
    if (metricsPort !== undefined || errorCode(error) !== "EADDRINUSE") throw error;
    logger.warn("no metrics: another program has the port; --metrics-port chooses another", { port: DEFAULT_PORT });
    return undefined;
  }
}
