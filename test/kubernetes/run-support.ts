import { Child, ROOT } from "../cli/cli-support.js";
import type { KubeObject } from "../real/kube/client.js";
import type { TestCluster } from "../real/kube/cluster.js";
import { ask } from "../support/http-client.js";

export interface Replica extends Child {
  http: number;
  https: number;
  /** Port of `/stats` and `/readyz`. */
  metrics: number;
}

let leases = 0;

/** `run` against the cluster on free ports of loopback; resolves when it serves. */
export async function startReplica(cluster: TestCluster, ...options: string[]): Promise<Replica> {
  const ports = [
    "--address",
    "127.0.0.1",
    "--http-port",
    "0",
    "--https-port",
    "0",
    "--metrics-port",
    "0",
    "--no-access-log",
  ];
  const access = options.includes("--kubeconfig") ? [] : ["--kubeconfig", cluster.kubeconfig()];
  // A lease of its own, unless the test is about leases: no replica waits for one of an earlier test to run out.
  if (!options.includes("--leader-election-lease")) ports.push("--leader-election-lease", `lease-${++leases}`);
  const child = new Child(`${ROOT}dist/controller/cli/main.js`, ["run", ...access, ...ports, ...options]);
  const line = await child.until("it serves", () => child.log().find((entry) => entry.message === "serving"));
  const { http, https, metrics } = line as { http: number; https: number; metrics: number };
  return Object.assign(child, { http, https, metrics });
}

/** Text of the answer for a host, or the status if it is no success. */
export async function answerOf(replica: Replica, host: string): Promise<string> {
  const { status, body } = await ask(replica.http, { host });
  return status === 200 ? String(body) : String(status);
}

/** A VirtualServer that answers by itself: no peer is needed. */
export function answering(name: string, body: string, className: string | null = "njet"): KubeObject {
  return {
    apiVersion: "k8s.njet.org/v1",
    kind: "VirtualServer",
    metadata: { name, namespace: "default" },
    spec: {
      ingressClassName: className,
      host: `${name}.example.com`,
      upstreams: null,
      routes: [{ path: "/", action: { return: { body } } }],
    },
  };
}
