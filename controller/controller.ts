import type { PatternChecker } from "../core-wasm/binding/api.js";
import type { FileProblem } from "./files/file-problem.js";
import { FolderSource } from "./files/folder-source.js";
import type { SourceKind } from "./model/classes.js";
import { pieceOf } from "./model/pieces.js";
import { type ModelOptions, type ModelUpdate, type ObjectChange, RoutingModel } from "./model/routing-model.js";
import type { Upstream } from "./model/types.js";
import type { ControllerMetrics } from "./observability/controller-metrics.js";
import type { Logger } from "./observability/logger.js";
import type { Applied, ApplyFailure, Proxy as DrivenProxy } from "./proxies/proxy.js";
import type { Plan, PlanStep } from "./reconcile/plan.js";
import { Planner } from "./reconcile/plan-changes.js";

/** Active health checks, as a controller feeds them. */
export interface HealthChecks {
  /** Upstreams that are different now. */
  update(upstreams: ReadonlyMap<string, Upstream | undefined>): void;
  /** Everything that is there at the start has been given. */
  ready(): void;
  close(): Promise<void>;
}

/** What a controller is made of. */
export interface ControllerParts {
  checker: PatternChecker;
  proxy: DrivenProxy;
  logger: Logger;
  /** Counts what is done; nothing is counted without. */
  metrics?: ControllerMetrics;
  ingressClass?: string;
  controllerClass?: string;
  /** What may be referred to in other namespaces. */
  crossNamespace?: ModelOptions["crossNamespace"];
  /** Where the objects come from; a folder by default. */
  source?: SourceKind;
  /** Told, once a change is in force, of the objects (`Kind/namespace/name`) whose state may be another one now. */
  onApplied?: (objects: ReadonlySet<string>) => void;
  /** Undefined: no peer is checked. */
  health?: HealthChecks;
}

/**
 * Keeps a proxy in step with the objects of a folder or a cluster: changes go through the model into plans, and plans into
 * the proxy, one after another. Whatever is wrong with an object, a file or a step is logged, and everything else goes on.
 */
export class Controller {
  readonly model: RoutingModel;
  readonly #planner = new Planner();
  readonly #proxy: DrivenProxy;
  readonly #logger: Logger;
  readonly #onApplied: (objects: ReadonlySet<string>) => void;
  readonly #metrics: ControllerMetrics | undefined;
  readonly #health: HealthChecks | undefined;
  #source: FolderSource | undefined;
  #applying: Promise<void> = Promise.resolve();
  /** What has changed while a plan is under way. */
  #waiting: ModelUpdate | undefined;
  /** What was last said about an object, so that it is said once. */
  readonly #said = new Map<string, string>();

  constructor(parts: ControllerParts) {
    this.#proxy = parts.proxy;
    this.#logger = parts.logger;
    this.#onApplied = parts.onApplied ?? (() => {});
    this.#metrics = parts.metrics;
    this.#health = parts.health;
    this.model = new RoutingModel({
      checker: parts.checker,
      source: parts.source ?? "folder",
      ...(parts.ingressClass === undefined ? {} : { ingressClass: parts.ingressClass }),
      ...(parts.crossNamespace === undefined ? {} : { crossNamespace: parts.crossNamespace }),
      ...(parts.controllerClass === undefined ? {} : { controllerClass: parts.controllerClass }),
    });
  }

  /** Takes changes in; resolves when they are in force in the proxy. */
  change(changes: readonly ObjectChange[]): Promise<void> {
    const update = this.model.update(changes);
    this.#report(update.objects);
    if (this.#waiting !== undefined) {
      mergeUpdate(this.#waiting, update);
      return this.#applying;
    }
    this.#waiting = update;
    this.#applying = this.#applying.then(() => this.#applyWaiting());
    return this.#applying;
  }

  /** Brings what has gathered while the plan before was under way into the proxy, as one plan. */
  async #applyWaiting(): Promise<void> {
    const update = this.#waiting;
    this.#waiting = undefined;
    if (update === undefined) return;
    const plan = this.#planner.planChanges(update);
    if (plan.steps.length > 0) {
      const { failures, retried = [] } = await this.#apply(plan);
      const settled = this.model.settle([...plan.steps, ...retried], failures);
      this.#report(settled);
      for (const object of settled) update.objects.add(object);
      // After the proxy has them: a new peer is probed when it can be used.
      this.#health?.update(update.upstreams);
    }
    this.#onApplied(update.objects);
  }

  /** Hands a plan to the proxy; resolves with what it refused, and what else it has tried. */
  async #apply(plan: Plan): Promise<Pick<Applied, "failures" | "retried">> {
    const begun = performance.now();
    try {
      const { generation, failures, retried = [] } = await this.#proxy.apply(plan);
      const taken = performance.now() - begun;
      const refused = failures.filter(({ inForce }) => !inForce).length;
      this.#metrics?.applied(plan, taken / 1000, refused);
      this.#countCertificates([...plan.steps, ...retried], failures);
      const duration = Math.round(taken * 10) / 10;
      this.#logger.info("applied", { generation, steps: plan.steps.length, failures: refused, ms: duration });
      return { failures, retried };
    } catch (error) {
      this.#metrics?.applyFailed();
      this.#logger.error("apply failed; the last good state stays in force", { generation: plan.generation, error });
      const message = error instanceof Error ? error.message : "unknown failure";
      return { failures: plan.steps.map((step) => ({ ...pieceOf(step), code: "PROXY_STEP_FAILED", message })) };
    }
  }

  /** Reads a folder and follows it from then on; resolves when what it holds is in force. */
  async watch(folder: string): Promise<void> {
    const said = new Set<string>();
    const source = new FolderSource(folder, (changes) => {
      void this.change(changes);
      const problems = source.problems().map((problem) => JSON.stringify(problem));
      for (const text of problems) {
        if (said.has(text)) continue;
        // `message` is the logger's own field.
        const { message: problem, ...place } = JSON.parse(text) as FileProblem;
        this.#logger.warn("file", { ...place, problem });
      }
      said.clear();
      for (const text of problems) said.add(text);
    });
    this.#source = source;
    await source.start();
    await this.started();
  }

  /**
   * Everything that is there at the start has been given; `watch` says so itself. Resolves when it is in force, and nothing
   * besides.
   */
  async started(): Promise<void> {
    this.#applying = this.#applying.then(() => this.#complete());
    await this.#applying;
    this.#health?.ready();
  }

  async #complete(): Promise<void> {
    try {
      await this.#proxy.complete?.();
    } catch (error) {
      this.#metrics?.applyFailed();
      this.#logger.error("what the proxy held from before could not be taken away", { error });
    }
  }

  /** Stops following the folder, and checking peers; the proxy is not touched. */
  async close(): Promise<void> {
    await this.#source?.close();
    await this.#applying;
    await this.#health?.close();
  }

  #countCertificates(steps: readonly PlanStep[], failures: readonly ApplyFailure[]): void {
    const refused = new Set(failures.filter(({ kind }) => kind === "certificate").map(({ piece }) => piece));
    for (const step of steps) {
      if (step.step === "remove-certificate") this.#metrics?.certificate(step.host, undefined);
      // Where one was refused, the last good one is in use.
      if (step.step !== "set-certificate" || refused.has(step.certificate.host)) continue;
      this.#metrics?.certificate(step.certificate.host, step.certificate);
    }
  }

  #report(objects: ReadonlySet<string>): void {
    for (const key of objects) {
      const [kind, namespace, name] = key.split("/") as [
        Parameters<RoutingModel["problems"]>[0]["kind"],
        string,
        string,
      ];
      const state = this.model.problems({ kind, namespace, name });
      this.#metrics?.object(key, state && { kind, state: state.state });
      const problems = state?.problems.map(({ path, code, message }) => ({ path, code, message })) ?? [];
      const text = state === undefined || problems.length === 0 ? "" : JSON.stringify([state.state, problems]);
      if (text === (this.#said.get(key) ?? "")) continue;
      if (text === "") this.#said.delete(key);
      else this.#said.set(key, text);
      if (state === undefined) continue;
      const level = state.state === "Invalid" ? "error" : state.state === "Warning" ? "warn" : "info";
      this.#logger[level]("object", { object: key, state: state.state, reason: state.reason, problems });
    }
  }
}

/** Takes a later update into an earlier one that nobody has applied yet. */
function mergeUpdate(earlier: ModelUpdate, later: ModelUpdate): void {
  for (const [host, rules] of later.hosts) earlier.hosts.set(host, rules);
  for (const [key, upstream] of later.upstreams) earlier.upstreams.set(key, upstream);
  for (const [host, certificate] of later.certificates) earlier.certificates.set(host, certificate);
  for (const object of later.objects) earlier.objects.add(object);
}
