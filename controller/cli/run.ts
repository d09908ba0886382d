import { readdir } from "node:fs/promises";
import type { Core } from "../../core-wasm/binding/core.js";
import { Controller, type ControllerParts } from "../controller.js";
import { HealthClient } from "../health/health-client.js";
import { ControllerMetrics } from "../observability/controller-metrics.js";
import { type EventSink, noEvents } from "../observability/events.js";
import { descriptorSink } from "../observability/line-sink.js";
import { createLogger, type Logger } from "../observability/logger.js";
import { type MetricsOptions, openMetrics } from "./metrics-endpoint.js";
import { type ModelChoices, modelChoices } from "./model-options.js";
import { makeProxy, type ServingOptions, type ServingProxy } from "./serving-proxy.js";
import { PACKAGE_VERSION } from "./version.js";

/** Options of `run` and `start`. */
export interface RunOptions extends MetricsOptions, ModelChoices, ServingOptions {
  /** Folder with the objects; without one they come from a cluster. */
  configDir?: string;
}

/** A controller at work, and how to end it. */
export interface Running {
  controller: Controller;
  logger: Logger;
  /** `metrics` is undefined where that port is not open. */
  ports: { http: number; https: number; metrics: number | undefined };
  metrics: ControllerMetrics;
  /** Resolves on the first SIGTERM or SIGINT, also one that came while the proxy was started. A second one ends the process at once. */
  stopped: Promise<NodeJS.Signals>;
  /** What `/readyz` says; false at the beginning. */
  setReady(ready: boolean): void;
  /** Reads the folder and follows it; what it holds is in force, and the controller ready, when this resolves. */
  watch(folder: string): Promise<void>;
  /** Stops taking requests, lets those under way end, and gives everything back. */
  stop(): Promise<void>;
}

/** What depends on where the objects come from. */
export interface LaunchParts extends Pick<ControllerParts, "source" | "controllerClass" | "onApplied"> {
  /** Told of what happens to the peers of objects. */
  events?: EventSink;
}

/** Starts a controller and its proxy, whose ports are open, no object is read yet. */
export async function launch(
  core: Core,
  options: RunOptions,
  { events = noEvents, ...parts }: LaunchParts = {},
): Promise<Running> {
  const log = descriptorSink(2);
  const access = descriptorSink(1);
  const logger = createLogger({ sink: log, now: Date.now });
  const counts = options.metricsPort !== "off";
  const proxy = await makeProxy({ core, options, logger, access, counts });
  // From here on there may be a server that has to be ended.
  const stopped = stopSignal();
  const metrics = new ControllerMetrics();
  const health = makeHealth(options, logger, proxy, metrics, events);
  let ready = false;
  const endpoint = await openMetrics(
    options,
    [...proxy.metrics(options.metricsPrefix, PACKAGE_VERSION), metrics],
    () => ready && proxy.state().serving,
    logger,
  );
  try {
    await proxy.listen();
  } catch (error) {
    await endpoint?.close();
    throw error;
  }
  const controller = new Controller({
    ...parts,
    checker: core,
    proxy,
    logger,
    metrics,
    health,
    ...modelChoices(options),
  });
  const { http, https } = proxy.addresses();
  return {
    controller,
    logger,
    ports: { http: http?.port ?? 0, https: https?.port ?? 0, metrics: endpoint?.port },
    metrics,
    stopped,
    setReady(value) {
      ready = value;
    },
    async watch(folder) {
      await controller.watch(folder);
      ready = true;
    },
    async stop() {
      // Side by side: a change that waits for a proxy which is away ends only when the proxy is given up.
      await Promise.all([controller.close(), proxy.close(options.drainSeconds * 1000)]);
      // Last of all: while the proxy drains, it is to be seen as not ready.
      await endpoint?.close();
      await Promise.all([access.close(), log.close()]);
    },
  };
}

/** Active health checks for a proxy. Throws an Error that names the option. */
function makeHealth(
  options: RunOptions,
  logger: Logger,
  proxy: ServingProxy,
  metrics: ControllerMetrics,
  events: EventSink,
): HealthClient {
  try {
    return new HealthClient({
      logger,
      events,
      metrics: metrics.health,
      setPeerStates: (states) => proxy.setPeerStates(states),
      ...(options.runDir === undefined ? {} : { runDir: options.runDir }),
    });
  } catch (error) {
    throw new Error(`--run-dir: ${(error as Error).message}`);
  }
}

/** Throws an Error for a folder that is not there: a mistyped name must not become an empty configuration. */
export async function checkFolder(folder: string): Promise<void> {
  try {
    await readdir(folder);
  } catch {
    throw new Error(`--config-dir: ${folder} is no folder that can be read`);
  }
}

function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (asked) process.exit(1);
      asked = true;
      resolve(signal);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

/** `run --config-dir`: serves a folder until it is told to stop. Resolves with the exit status. */
export async function runFolder(core: Core, options: RunOptions & { configDir: string }): Promise<number> {
  await checkFolder(options.configDir);
  const running = await launch(core, options);
  const { stopped } = running;
  const watching = running.watch(options.configDir).then(() => {
    running.logger.info("serving", { configDir: options.configDir, ...running.ports });
  });
  await Promise.race([watching, stopped]);
  const signal = await stopped;
  running.logger.info("draining", { signal });
  await running.stop();
  return 0;
}
