import { performance } from "node:perf_hooks";
import type { Probe } from "../../controller/health/attempt.js";
import type { CheckedUpstream } from "../../controller/health/checked-upstream.js";
import type { Outcome, Target } from "../../controller/health/target.js";
import { newTarget } from "../../controller/health/target.js";
import type { HealthCheck, Upstream } from "../../controller/model/types.js";

/** A check over HTTP with the defaults of the resources, short times aside. */
export function check(changes: Partial<HealthCheck> = {}): HealthCheck {
  return {
    type: "http",
    tls: false,
    path: "/",
    headers: [],
    interval: 5000,
    jitter: 0,
    fails: 1,
    passes: 1,
    connectTimeout: 60_000,
    readTimeout: 60_000,
    sendTimeout: 60_000,
    grpcService: "",
    persistent: false,
    ...changes,
  };
}

/** Peers `address:port` of an upstream. */
export function checkedUpstream(
  key: string,
  ids: readonly string[],
  changes: Partial<HealthCheck> = {},
): CheckedUpstream {
  return { key, check: check(changes), slowStart: 0, peers: ids.map((id) => ({ ...place(id), draining: false })) };
}

/** An upstream of the model with a check. */
export function upstream(key: string, ids: readonly string[], healthCheck?: HealthCheck): Upstream {
  return {
    peers: {
      key,
      display: key,
      method: { kind: "round-robin" },
      peers: ids.map((id) => ({ ...place(id), weight: 1 })),
    },
    transport: { tls: false, protocol: "http" },
    ...(healthCheck === undefined ? {} : { healthCheck }),
  };
}

function place(id: string): { address: string; port: number } {
  const colon = id.lastIndexOf(":");
  return { address: id.slice(0, colon), port: Number(id.slice(colon + 1)) };
}

/** Probes a peer on loopback once. */
export function probeOnce(probe: Probe, port: number, changes: Partial<HealthCheck> = {}): Promise<Outcome> {
  const target: Target = newTarget("key", "127.0.0.1", port, check(changes));
  return new Promise((resolve) => {
    let told = false;
    probe(target, (outcome) => {
      if (told) throw new Error("an outcome was told twice");
      told = true;
      resolve(outcome);
    });
  });
}

/** Resolves when `holds` does; rejects after twenty seconds with `what`. */
export async function until<T>(what: string, holds: () => T | undefined | false): Promise<T> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const value = holds();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
