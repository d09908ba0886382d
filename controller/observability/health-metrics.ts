import type { HealthState } from "../../core-wasm/binding/health-tracker.js";

/** What active health checks tell a metrics registry. Calls come when something changes, and must not throw. */
export interface HealthMetrics {
  /** Counter: a peer of an upstream (its key) has gone from one state to another. */
  peerTransition(upstream: string, from: HealthState, to: HealthState): void;
  /** Gauge: how many checked peers are in each state now. */
  checkedPeers(counts: Readonly<Record<HealthState, number>>): void;
}

/** For who has no registry. */
export const noHealthMetrics: HealthMetrics = { peerTransition() {}, checkedPeers() {} };
