import type { HealthMetrics } from "./health-metrics.js";
import { labelText, type MetricsSource, type MetricsText } from "./metrics-text.js";

const TRANSITIONS = "njet_kic_health_transitions_total";
const CHECKED = "njet_kic_health_checked_peers";

/** Counts what active health checks find out. */
export class HealthCounters implements HealthMetrics, MetricsSource {
  /** By upstream key, then by the labels of the transition. */
  private readonly transitions = new Map<string, Map<string, number>>();
  private counts: Readonly<Record<string, number>> = {};

  /** A peer of an upstream (its key) has gone from one state to another. */
  peerTransition(upstream: string, from: string, to: string): void {
    const ofUpstream = this.transitions.get(upstream) ?? new Map<string, number>();
    this.transitions.set(upstream, ofUpstream);
    const labels = [labelText("upstream", upstream), labelText("from", from), labelText("to", to)].join(",");
    ofUpstream.set(labels, (ofUpstream.get(labels) ?? 0) + 1);
  }

  /** How many checked peers are in each state now. */
  checkedPeers(counts: Readonly<Record<string, number>>): void {
    this.counts = { ...counts };
  }

  /** The upstream is gone, and its series with it. */
  forget(upstream: string): void {
    this.transitions.delete(upstream);
  }

  *write(page: MetricsText): Iterable<void> {
    page.family(CHECKED, "gauge", "Checked peers by state");
    for (const [state, count] of Object.entries(this.counts)) page.sample(CHECKED, labelText("state", state), count);
    page.family(TRANSITIONS, "counter", "Changes of state that active checks have found");
    for (const ofUpstream of this.transitions.values()) {
      if (!page.reserve(ofUpstream.size)) continue;
      for (const [labels, count] of ofUpstream) page.sample(TRANSITIONS, labels, count);
      yield;
    }
  }
}
