import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setFlagsFromString } from "node:v8";
import type { Core } from "../../core-wasm/binding/core.js";
import { systemClock } from "../kubernetes/clock.js";
import { Cluster } from "../kubernetes/cluster.js";
import { kubeconfig, serviceAccount } from "../kubernetes/credentials.js";
import { type AdmissionOptions, openAdmission } from "./admission.js";
import { launch, type RunOptions } from "./run.js";

/** Options of `run` for a cluster. */
export interface ClusterRunOptions extends RunOptions, AdmissionOptions {
  kubeconfig?: string;
  serviceAccountDir: string;
  controllerClass: string;
  watchNamespace: string[];
  watchNamespaceSelector?: string;
  publishService?: string;
  publishStatusAddress: string[];
  leaderElectionLease?: string;
  leaderElectionNamespace?: string;
}

/**
 * The heap may grow by half before it is collected. By default V8 lets a small heap grow to several times its size, so that what
 * the lists of the start leave behind stays resident for ever; collecting a hundred megabytes more often costs little, as it is
 * marked beside the work. It is no limit: a heap that needs more gets it.
 */
const HEAP_FLAG = "--heap-growing-percent=50";
/** How often readiness is looked at until it is there. */
const READY_POLL_MS = 10;

/** `run` without a folder: serves the objects of a cluster until it is told to stop. Resolves with the exit status. */
export async function runCluster(core: Core, options: ClusterRunOptions): Promise<number> {
  setFlagsFromString(HEAP_FLAG);
  const { kubeconfig: file, serviceAccountDir } = options;
  const credentials = file === undefined ? serviceAccount(process.env, serviceAccountDir) : kubeconfig(file);
  // A mistyped file must not become a controller that waits for ever.
  await credentials.load();
  let cluster: Cluster | undefined;
  const running = await launch(core, options, {
    source: "cluster",
    controllerClass: options.controllerClass,
    onApplied: (objects) => cluster?.applied(objects),
    events: { record: (event) => cluster?.objectEvents.record(event) },
  });
  const { controller, logger, stopped } = running;
  cluster = new Cluster({
    credentials,
    clock: systemClock,
    wallClock: Date.now,
    random: Math.random,
    logger,
    namespaces: options.watchNamespace,
    namespaceSelector: options.watchNamespaceSelector,
    publishService: options.publishService,
    publishAddresses: options.publishStatusAddress,
    leaseName: options.leaderElectionLease ?? `njet-kic-${options.ingressClass ?? "njet"}`,
    leaseNamespace: options.leaderElectionNamespace,
    controllerName: options.controllerClass,
    identity: `${hostname()}-${randomBytes(4).toString("hex")}`,
    change: (changes) => controller.change(changes),
    stateOf: (ref) => controller.model.problems(ref),
    referencedBy: (ref) => controller.model.referencedBy(ref),
  });
  const joined = cluster;
  running.metrics.leads = () => joined.leads;
  const admission = await openAdmission(
    options,
    {
      model: controller.model,
      checker: core,
      follows: (namespace) => joined.follows(namespace),
      complete: () => joined.readiness().ready,
      logger,
    },
    running.metrics,
  ).catch(async (error: unknown) => {
    await running.stop();
    throw error;
  });
  const ports = { ...running.ports, ...(admission && { validatingWebhook: admission.port }) };
  await cluster.start();
  const timer = setInterval(() => {
    if (!cluster.readiness().ready) return;
    clearInterval(timer);
    void controller.started().then(() => {
      running.setReady(true);
      logger.info("serving", ports);
    });
  }, READY_POLL_MS);
  const signal = await stopped;
  clearInterval(timer);
  logger.info("draining", { signal });
  running.setReady(false);
  await cluster.close();
  await admission?.close();
  await running.stop();
  return 0;
}
