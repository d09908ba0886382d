import type { HealthState } from "../../core-wasm/binding/health-tracker.js";
import type { HealthCheck, Upstream } from "../model/types.js";

/** A peer that is to be probed. */
export interface CheckedPeer {
  /** IP literal, IPv6 without brackets. */
  address: string;
  port: number;
  draining: boolean;
  /** What was known of it before; a starting point where nothing newer is known. */
  state?: HealthState;
}

/** An upstream whose peers are to be probed. */
export interface CheckedUpstream {
  /** `kind/namespace/object/name`. */
  key: string;
  check: HealthCheck;
  /** Milliseconds. */
  slowStart: number;
  peers: CheckedPeer[];
}

/** Name of a peer within its upstream. */
export function peerName({ address, port }: { address: string; port: number }): string {
  return `${address} ${port}`;
}

/** What is to be probed of an upstream; undefined where it has no check. A peer that is listed twice counts once. */
export function checkedUpstream(upstream: Upstream): CheckedUpstream | undefined {
  const { healthCheck, peers: set } = upstream;
  if (healthCheck === undefined) return undefined;
  const peers = new Map<string, CheckedPeer>();
  for (const { address, port, draining = false } of set.peers) {
    const name = peerName({ address, port });
    const known = peers.get(name);
    peers.set(name, { address, port, draining: draining && (known?.draining ?? true) });
  }
  return { key: set.key, check: healthCheck, slowStart: set.limits?.slowStart ?? 0, peers: [...peers.values()] };
}

/** True if both checks ask and judge alike. */
export function sameCheck(a: HealthCheck, b: HealthCheck): boolean {
  return checkText(a) === checkText(b);
}

function checkText(check: HealthCheck): string {
  return JSON.stringify(Object.entries(check).sort(([a], [b]) => (a < b ? -1 : 1)));
}
