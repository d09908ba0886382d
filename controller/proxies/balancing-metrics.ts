import { labelText, type MetricsSource, type MetricsText } from "../observability/metrics-text.js";

const STATES = ["unchecked", "up", "down", "draining"] as const;
const PEERS = "njet_kic_upstream_peers";
const OUT = "njet_kic_upstream_peers_out";
const WAITING = "njet_kic_queue_length";
const TIMEOUTS = "njet_kic_queue_timeouts_total";
const OVERFLOWS = "njet_kic_queue_overflows_total";

/** Numbers of peers of an upstream: by state, each in one of them, and those that are out because of failed requests, where known. */
export type PeerNumbers = Record<(typeof STATES)[number], number> & { out?: number };

/** The queue before the peers of an upstream. */
export interface QueueCounts {
  /** Requests that wait. */
  length: number;
  timeouts: number;
  overflows: number;
}

export interface BalancingSubject {
  /** By upstream key; `count` is asked only for what has a place on the page. */
  peers(): Iterable<{ upstream: string; count(): PeerNumbers }>;
  /** By upstream key, those that have a queue. */
  queues(): Iterable<{ upstream: string } & QueueCounts>;
}

/** Peers of upstreams by state, and the queues before them. */
export class BalancingMetrics implements MetricsSource {
  constructor(private readonly subject: BalancingSubject) {}

  *write(page: MetricsText): Iterable<void> {
    const rows: { labels: string; numbers: PeerNumbers }[] = [];
    for (const { upstream, count } of this.subject.peers()) {
      if (!page.reserve(STATES.length + 1)) continue;
      rows.push({ labels: labelText("upstream", upstream), numbers: count() });
      yield;
    }
    page.family(PEERS, "gauge", "Peers by state: of active checks, or draining because their endpoint goes away");
    for (const { labels, numbers } of rows) {
      for (const state of STATES) page.sample(PEERS, `${labels},${labelText("state", state)}`, numbers[state]);
    }
    page.family(OUT, "gauge", "Peers that are out because of failed requests");
    for (const { labels, numbers } of rows) if (numbers.out !== undefined) page.sample(OUT, labels, numbers.out);
    yield;
    this.writeQueues(page);
    yield;
  }

  private writeQueues(page: MetricsText): void {
    const queues = [...this.subject.queues()].filter(() => page.reserve(3));
    page.family(WAITING, "gauge", "Requests that wait for a place at a peer");
    for (const { upstream, length } of queues) page.sample(WAITING, labelText("upstream", upstream), length);
    page.family(TIMEOUTS, "counter", "Requests that waited for a place in vain");
    for (const { upstream, timeouts } of queues) page.sample(TIMEOUTS, labelText("upstream", upstream), timeouts);
    page.family(OVERFLOWS, "counter", "Requests for which the queue had no place");
    for (const { upstream, overflows } of queues) page.sample(OVERFLOWS, labelText("upstream", upstream), overflows);
  }
}
