import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import type { Core } from "../../core-wasm/binding/core.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import { Controller, type ControllerParts } from "../controller.js";
import { HealthClient } from "../health/health-client.js";
import { ControllerMetrics } from "../observability/controller-metrics.js";
import { type EventSink, noEvents } from "../observability/events.js";
import { descriptorSink } from "../observability/line-sink.js";
import { createLogger, type Logger } from "../observability/logger.js";
import { EmbeddedProxy } from "../proxies/embedded/embedded-proxy.js";
import { type MetricsOptions, openMetrics } from "./metrics-endpoint.js";
import { type ModelChoices, modelChoices } from "./model-options.js";
import { PACKAGE_VERSION } from "./version.js";

/** Options of `run` and `start`. */
export interface RunOptions extends MetricsOptions, ModelChoices {
  /** Folder with the objects; without one they come from a cluster. */
  configDir?: string;
  httpPort: number;
  httpsPort: number;
  /** Address that both ports are bound to. */
  address: string;
  accessLog: boolean;
  /** Folder with tls.crt and tls.key, for handshakes that no object has a certificate for. */
  defaultCertificate?: string;
  trustedProxies: string[];
  /** How long requests under way may take to end after SIGTERM. */
  drainSeconds: number;
  /** Folder that stays over a restart: health checks go on while the controller is away. */
  runDir?: string;
}

/** A controller at work, and how to end it. */
export interface Running {
  controller: Controller;
  logger: Logger;
  /** `metrics` is undefined where that port is not open. */
  ports: { http: number; https: number; metrics: number | undefined };
  metrics: ControllerMetrics;
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

/** Starts a controller with the embedded proxy; its ports are open, no object is read yet. */
export async function launch(
  core: Core,
  options: RunOptions,
  { events = noEvents, ...parts }: LaunchParts = {},
): Promise<Running> {
  const log = descriptorSink(2);
  const access = descriptorSink(1);
  const logger = createLogger({ sink: log, now: Date.now });
  const proxy = new EmbeddedProxy({
    table: new RouteTable(core),
    logger,
    http: { address: options.address, port: options.httpPort },
    https: { address: options.address, port: options.httpsPort },
    trustedProxies: options.trustedProxies,
    metrics: options.metricsPort !== "off",
    ...(options.accessLog ? { accessLog: access } : {}),
    ...(options.defaultCertificate === undefined ? {} : { defaultCertificate: readPair(options.defaultCertificate) }),
  });
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
    setReady(value) {
      ready = value;
    },
    async watch(folder) {
      await controller.watch(folder);
      ready = true;
    },
    async stop() {
      await controller.close();
      // Last of all: while the proxy drains, it is to be seen as not ready.
      await proxy.close(options.drainSeconds * 1000);
      await endpoint?.close();
      await Promise.all([access.close(), log.close()]);
    },
  };
}

/** Active health checks for a proxy. Throws an Error that names the option. */
function makeHealth(
  options: RunOptions,
  logger: Logger,
  proxy: EmbeddedProxy,
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

/** The pair of a folder. Throws an Error that names the option and says nothing of what the files hold. */
function readPair(folder: string): { chain: string; key: string } {
  const read = (name: string) => {
    try {
      return readFileSync(join(folder, name), "utf8");
    } catch {
      throw new Error(`--default-certificate: ${join(folder, name)} does not exist or cannot be read`);
    }
  };
  const pair = { chain: read("tls.crt"), key: read("tls.key") };
  try {
    createSecureContext({ cert: pair.chain, key: pair.key });
  } catch {
    throw new Error(`--default-certificate: tls.crt and tls.key in ${folder} are no PEM certificate with its key`);
  }
  return pair;
}

/** Throws an Error for a folder that is not there: a mistyped name must not become an empty configuration. */
export async function checkFolder(folder: string): Promise<void> {
  try {
    await readdir(folder);
  } catch {
    throw new Error(`--config-dir: ${folder} is no folder that can be read`);
  }
}

/** Resolves on the first SIGTERM or SIGINT. A second one ends the process at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
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
  const stopped = stopSignal();
  await running.watch(options.configDir);
  running.logger.info("serving", { configDir: options.configDir, ...running.ports });
  const signal = await stopped;
  running.logger.info("draining", { signal });
  await running.stop();
  return 0;
}
