import type { RoutingTable } from "../../../core-wasm/binding/api.js";
import type { PeerStatus } from "../../../core-wasm/binding/decision.js";
import { labelText, type MetricsSource, type MetricsText } from "../../observability/metrics-text.js";
import type { PeerQueues } from "./peer-queues.js";
import type { UpstreamRegistry } from "./upstream-registry.js";

const STATES = ["unchecked", "up", "down", "draining"] as const;
const PEERS = "njet_kic_upstream_peers";
const OUT = "njet_kic_upstream_peers_out";
const WAITING = "njet_kic_queue_length";
const TIMEOUTS = "njet_kic_queue_timeouts_total";
const OVERFLOWS = "njet_kic_queue_overflows_total";

/** Peers of upstreams by state, and the queues before them: what the core knows when the page is asked for. */
export class BalancingMetrics implements MetricsSource {
  constructor(
    private readonly table: Pick<RoutingTable, "peersOf">,
    private readonly upstreams: UpstreamRegistry,
    private readonly queues: PeerQueues,
  ) {}

  *write(page: MetricsText): Iterable<void> {
    const rows: { labels: string; states: Record<string, number>; out: number }[] = [];
    for (const key of this.upstreams.keys()) {
      if (!page.reserve(STATES.length + 1)) continue;
      rows.push({ labels: labelText("upstream", key), ...countPeers(this.table.peersOf(key)) });
      yield;
    }
    page.family(PEERS, "gauge", "Peers by state: of active checks, or draining because their endpoint goes away");
    for (const { labels, states } of rows) {
      for (const state of STATES) page.sample(PEERS, `${labels},${labelText("state", state)}`, states[state]);
    }
    page.family(OUT, "gauge", "Peers that are out because of failed requests");
    for (const { labels, out } of rows) page.sample(OUT, labels, out);
    yield;
    this.writeQueues(page);
    yield;
  }

  private writeQueues(page: MetricsText): void {
    const queues = this.queues.status().filter(() => page.reserve(3));
    page.family(WAITING, "gauge", "Requests that wait for a place at a peer");
    for (const { upstream, length } of queues) page.sample(WAITING, labelText("upstream", upstream), length);
    page.family(TIMEOUTS, "counter", "Requests that waited for a place in vain");
    for (const { upstream, timeouts } of queues) page.sample(TIMEOUTS, labelText("upstream", upstream), timeouts);
    page.family(OVERFLOWS, "counter", "Requests for which the queue had no place");
    for (const { upstream, overflows } of queues) page.sample(OVERFLOWS, labelText("upstream", upstream), overflows);
  }
}

function countPeers(peers: readonly PeerStatus[]): { states: Record<string, number>; out: number } {
  const states: Record<string, number> = { unchecked: 0, up: 0, down: 0, draining: 0 };
  let out = 0;
  for (const peer of peers) {
    states[peer.draining ? "draining" : peer.state]++;
    if (peer.out) out++;
  }
  return { states, out };
}
