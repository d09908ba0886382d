import type { Logger } from "../observability/logger.js";
import { plain } from "../resources/problem.js";
import type { ApiClient } from "./api-client.js";
import { statusOf } from "./api-error.js";
import { isRecord } from "./api-object.js";
import type { Clock } from "./clock.js";
import { LEASE_TIMES, LeaseMachine, type LeaseSpec, type LeaseTimes } from "./lease.js";

export interface LeaderElectionOptions {
  client: ApiClient;
  clock: Clock;
  /** Milliseconds since 1970. */
  wallClock: () => number;
  random: () => number;
  logger: Logger;
  namespace: string;
  /** Name of the Lease. */
  name: string;
  /** Of this replica, unlike that of any other. */
  identity: string;
  onLead: () => void;
  times?: LeaseTimes;
}

/** Takes part in the election of the one replica that writes status and Events, until it is closed. */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #times: LeaseTimes;
  readonly #machine: LeaseMachine;
  readonly #end = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #led = false;
  #resourceVersion: string | undefined;
  #said = "";

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#times = options.times ?? LEASE_TIMES;
    this.#machine = new LeaseMachine(options.identity, this.#times);
  }

  /** Whether this replica leads at this moment. */
  get leads(): boolean {
    return this.#machine.leads(this.#options.clock.now());
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Ends taking part; gives the lease away if it is ours, so that another replica need not wait for it to run out. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#running;
    const { clock, wallClock } = this.#options;
    const spec = this.#machine.release(clock.now(), wallClock());
    if (spec !== undefined) await this.#write(spec, AbortSignal.timeout(2000)).catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { clock, random, logger, identity } = this.#options;
    const { signal } = this.#end;
    while (!signal.aborted) {
      await this.#attempt(signal).catch((error: unknown) => this.#say(error));
      const leads = this.leads;
      if (leads !== this.#led) {
        this.#led = leads;
        logger.info(leads ? "leading" : "no longer leading", { identity });
        if (leads) this.#options.onLead();
      }
      const pause = this.#times.retryPeriod * (1 + random() / 5);
      // A lease that runs out is taken when it does. One that should be free, but could not be taken, is not asked for at once.
      const free = Math.ceil(this.#machine.freeIn(clock.now()));
      await clock.sleep(free > 0 ? Math.min(pause, free) : pause, signal);
    }
  }

  async #attempt(end: AbortSignal): Promise<void> {
    const { clock, wallClock, client } = this.#options;
    const signal = AbortSignal.any([end, AbortSignal.timeout(this.#times.renewDeadline / 2)]);
    const lease = await client.request({ method: "GET", path: this.#path(), signal }).catch((error: unknown) => {
      if (statusOf(error) === 404) return undefined;
      throw error;
    });
    const metadata = isRecord(lease) && isRecord(lease.metadata) ? lease.metadata : {};
    this.#resourceVersion = typeof metadata.resourceVersion === "string" ? metadata.resourceVersion : undefined;
    this.#machine.observe(isRecord(lease) ? (lease.spec ?? {}) : undefined, clock.now());
    const begun = clock.now();
    const spec = this.#machine.attempt(begun, wallClock());
    if (spec === undefined) return;
    try {
      await this.#write(spec, signal);
    } catch (error) {
      // Another replica was faster.
      if (statusOf(error) === 409) return;
      throw error;
    }
    this.#machine.observe(spec, clock.now());
    this.#machine.renewed(begun);
    this.#said = "";
  }

  /** The resourceVersion makes sure that nobody wrote since the lease was read. */
  async #write(spec: LeaseSpec, signal: AbortSignal): Promise<void> {
    const { client, name, namespace } = this.#options;
    const version = this.#resourceVersion;
    const metadata = { name, namespace, ...(version === undefined ? {} : { resourceVersion: version }) };
    const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
    const request =
      version === undefined
        ? { method: "POST" as const, path: this.#path(false) }
        : { method: "PUT" as const, path: this.#path() };
    const written = await client.request({ ...request, body, signal });
    const answered = isRecord(written) && isRecord(written.metadata) ? written.metadata.resourceVersion : undefined;
    if (typeof answered === "string") this.#resourceVersion = answered;
  }

  #path(named = true): string {
    const { namespace, name } = this.#options;
    const collection = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
    return named ? `${collection}/${encodeURIComponent(name)}` : collection;
  }

  #say(error: unknown): void {
    if (this.#end.signal.aborted) return;
    const problem = plain(error instanceof Error ? error.message : String(error));
    if (problem === this.#said) return;
    this.#said = problem;
    this.#options.logger.warn("cannot take part in the election of a leader", { problem });
  }
}
