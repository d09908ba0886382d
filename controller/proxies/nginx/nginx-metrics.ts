import { labelText, type MetricsSource, type MetricsText } from "../../observability/metrics-text.js";
import { BalancingMetrics, type BalancingSubject } from "../balancing-metrics.js";
import { VtsMetrics } from "../vts-metrics.js";
import type { ControlClient } from "./control-client.js";
import { CounterHistory, type Counters } from "./counters.js";
import type { StateKeeper } from "./state-keeper.js";

/** Milliseconds: an NGINX that is slower is left out of a page. */
const ANSWER_TIME = 5_000;

export interface NginxSubject {
  client: Pick<ControlClient, "counters">;
  /** Undefined before NGINX was started. */
  keeper(): StateKeeper | undefined;
  /** Times that NGINX was started again. */
  restarts(): number;
  /** Peers by upstream and state. */
  peers: BalancingSubject["peers"];
  now(): number;
}

/** What NGINX has counted, as families `<prefix>_vts_*`; and whether it and its workers hold what they were given. */
export class NginxMetrics implements MetricsSource {
  private counters: Counters | undefined;
  private readonly history = new CounterHistory();
  private readonly started: number;

  /** `version` is that of the program. */
  constructor(
    private readonly prefix: string,
    private readonly version: string,
    private readonly subject: NginxSubject,
  ) {
    this.started = subject.now();
  }

  async gather(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), ANSWER_TIME);
    });
    const asked = this.subject.client.counters().catch(() => undefined);
    const content = await Promise.race([asked, late]);
    clearTimeout(timer);
    // Without an answer the page says what was last known: a counter that goes away and comes back would look like a restart.
    if (content !== undefined) this.counters = this.history.take(content);
  }

  *write(page: MetricsText): Iterable<void> {
    this.writeState(page);
    yield;
    const { counters } = this;
    if (counters === undefined) return;
    const vts = new VtsMetrics({
      prefix: this.prefix,
      version: this.version,
      started: this.started,
      now: this.subject.now,
      traffic: counters,
      connections: () => counters.connections,
      peers: () => counters.peers(),
    });
    yield* vts.write(page);
    const balancing = new BalancingMetrics({
      peers: () => this.subject.peers(),
      queues: () => counters.queues(),
    });
    yield* balancing.write(page);
  }

  /** What each worker has in force, and what has gone wrong on the way there. */
  private writeState(page: MetricsText): void {
    const keeper = this.subject.keeper();
    const up = keeper?.summary !== undefined;
    page.single("njet_kic_nginx_up", "gauge", "1 if NGINX answered when it was last asked", up ? 1 : 0);
    const restarts = "Times that NGINX was started again because it had died";
    page.single("njet_kic_nginx_restarts_total", "counter", restarts, this.subject.restarts());
    if (keeper === undefined) return;
    const { drifts, outages, lateWorkers, journalErrors, batches } = keeper.counts;
    const family = "njet_kic_nginx_worker_in_step";
    page.family(family, "gauge", "1 for each worker that holds what was last accepted");
    for (const { id, pid, sum } of keeper.summary?.workers ?? []) {
      const labels = `${labelText("worker", String(id))},${labelText("pid", String(pid))}`;
      page.sample(family, labels, sum === keeper.sum ? 1 : 0);
    }
    const counter = (name: string, help: string, value: number) =>
      page.single(`njet_kic_nginx_${name}_total`, "counter", help, value);
    counter("batches", "Batches of changes that NGINX was given", batches);
    counter("drifts", "Times that NGINX or a worker held something else than it was given", drifts);
    counter("outages", "Times that NGINX did not answer", outages);
    counter("late_workers", "Times that a worker did not acknowledge a change in time", lateWorkers);
    counter("journal_errors", "Times that the state could not be written to disk", journalErrors);
  }
}
