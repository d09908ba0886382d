/** The workload as the core takes it. */
import type { HostRules } from "../../core-wasm/binding/source.js";
import type { CoreRoutes } from "./core-adapter.js";
import type { BenchRoute, Workload } from "./workload.js";

/** Upstreams that the routes share, each with three peers. */
export const UPSTREAMS: readonly string[] = Array.from({ length: 10 }, (_, i) => `Ingress/bench/routes/service-${i}`);

/** The rules of one host of the workload, as objects would give them. `first` is the number of its first route. */
export function hostRules(routes: readonly BenchRoute[], first: number): HostRules {
  return {
    pattern: { kind: "exact", host: routes[0].host },
    guards: [],
    routes: routes.map(({ path }, i) => ({
      path: { kind: "segments", path },
      label: path,
      resource: "Ingress/bench/routes",
      matches: [],
      outcome: { kind: "proxy", upstream: UPSTREAMS[(first + i) % UPSTREAMS.length] },
    })),
  };
}

/** Fills a table of the core with all hosts of a workload. */
export function fillCore(core: CoreRoutes, { size, routes }: Workload): void {
  for (let first = 0; first < routes.length; first += size.pathsPerHost) {
    core.setHost(hostRules(routes.slice(first, first + size.pathsPerHost), first));
  }
}
