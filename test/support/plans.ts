import type { Certificate, SessionCookie, Upstream, UpstreamTransport } from "../../controller/model/types.js";
import type { Plan, PlanStep } from "../../controller/reconcile/plan.js";
import type { Action, HeaderChange, HostRules, PeerSetSource } from "../../core-wasm/binding/source.js";

let counter = 0;

/** A plan that adds to what stands. */
export function planOf(...steps: PlanStep[]): Plan {
  return { generation: `${++counter}-test`, full: false, steps };
}

/** A plan that is the whole state. */
export function fullPlan(...steps: PlanStep[]): Plan {
  return { ...planOf(...steps), full: true };
}

/** What an upstream has besides its peers and transport. */
export type Balancing = Partial<Omit<PeerSetSource, "key" | "display">> &
  Pick<Upstream, "queue" | "healthCheck"> & { cookie?: SessionCookie };

/** An upstream of peers on loopback. */
export function upstreamStep(
  name: string,
  ports: number[],
  transport: Partial<UpstreamTransport> = {},
  balancing: Balancing = {},
): Extract<PlanStep, { step: "set-upstream" }> {
  const { cookie, queue, healthCheck, ...peers } = balancing;
  const upstream: Upstream = {
    peers: {
      key: keyOf(name),
      display: `default/${name}:80`,
      method: { kind: "round-robin" },
      peers: ports.map((port) => ({ address: "127.0.0.1", port, weight: 1 })),
      ...(cookie && { sessionCookie: cookie.name }),
      ...peers,
    },
    transport: { tls: false, protocol: "http", ...transport },
    ...(cookie && { sessionCookie: cookie }),
    ...(queue && { queue }),
    ...(healthCheck && { healthCheck }),
  };
  return { step: "set-upstream", upstream };
}

export function keyOf(name: string): string {
  return `Ingress/default/shop/${name}`;
}

/** A host whose every path goes to one upstream. */
export function proxyHost(host: string, upstream: string, headers?: HeaderChange[]): PlanStep {
  return { step: "set-host", rules: rulesOf(host, { kind: "proxy", upstream: keyOf(upstream), headers }) };
}

/** A host whose every path has one outcome. */
export function actionHost(host: string, action: Action): PlanStep {
  return { step: "set-host", rules: rulesOf(host, action) };
}

export function rulesOf(host: string, action: Action): HostRules {
  return {
    pattern: { kind: "exact", host },
    guards: [],
    routes: [
      {
        path: { kind: "prefix", path: "/", stopsRegex: false },
        label: "/",
        resource: "Ingress/default/shop",
        matches: [],
        outcome: action,
      },
    ],
  };
}

export function certificateStep(
  host: string,
  pair: { chain: string; key: string; fingerprint: string },
): Extract<PlanStep, { step: "set-certificate" }> {
  const certificate: Certificate = { host, ...pair, resource: `Secret/default/${host}` };
  return { step: "set-certificate", certificate };
}
