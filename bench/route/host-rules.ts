/** The workload as the core takes it. */
import type { HostRules } from "../../core-wasm/binding/source.js";
import type { CoreRoutes } from "./core-adapter.js";
import type { BenchRoute, Workload } from "./workload.js";

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
      outcome: { kind: "proxy", upstream: String(first + i) },
    })),
  };
}

/** Fills a table of the core with all hosts of a workload. */
export function fillCore(core: CoreRoutes, { size, routes }: Workload): void {
  for (let first = 0; first < routes.length; first += size.pathsPerHost) {
    core.setHost(hostRules(routes.slice(first, first + size.pathsPerHost), first));
  }
}
