import type { HostRules, Outcome, Route } from "../../core-wasm/binding/source.js";
import type { IngressFragment } from "../resources/fragments.js";
import { refText } from "../resources/object-ref.js";
import { pathKey } from "../resources/path-rule.js";
import { quote } from "../resources/problem.js";
import { compareText } from "./age.js";
import type { HostResult } from "./host-result.js";
import { hostPattern } from "./pattern-text.js";

/**
 * Puts together the rules of a host that Ingress objects share. `claimants` come from the oldest: of several with the
 * same path and pathType the oldest has the path. Paths that no rule matches go to the default backend of the oldest
 * claimant that has one, else to `fallback` (used for rules without a host). The routes are not in order yet.
 */
export function buildIngressHost(
  host: string,
  claimants: Iterable<IngressFragment>,
  fallback: HostRules["unmatched"],
  result: HostResult,
): void {
  const owners = new Map<string, IngressFragment>();
  const routes: Route[] = [];
  let unmatched: HostRules["unmatched"];
  for (const ingress of claimants) {
    result.participants.add(refText(ingress.meta.ref));
    unmatched ??= defaultBackendOf(ingress);
    for (const rule of ingress.rules) {
      if (rule.host !== host) continue;
      for (const { route, path } of rule.routes) {
        const owner = owners.get(pathKey(route.path));
        if (owner === undefined) {
          owners.set(pathKey(route.path), ingress);
          routes.push(route);
        } else if (owner === ingress) {
          const message = `the path ${quote(route.label)} is already in this Ingress; the first one counts`;
          result.warn(ingress.meta, { path, code: "DUPLICATE_PATH", message });
        } else {
          const message = `${refText(owner.meta.ref)} is older and has the path ${quote(route.label)} of this host`;
          result.reject(ingress.meta, { path, code: "PATH_TAKEN", message });
        }
      }
    }
  }
  unmatched ??= fallback;
  if (unmatched !== undefined && unmatched === fallback) result.participants.add(fallback.resource);
  result.rules = {
    pattern: hostPattern(host, "one"),
    guards: [],
    routes,
    ...(unmatched && { unmatched }),
  };
}

/** The default backend of an Ingress as the outcome of requests that no path matches. */
export function defaultBackendOf(ingress: IngressFragment): { resource: string; outcome: Outcome } | undefined {
  const outcome = ingress.defaultBackend;
  return outcome && { resource: refText(ingress.meta.ref), outcome };
}

/** Puts the routes of an Ingress host into the order in which they count. */
export function sortRoutes(routes: Route[]): void {
  routes.sort(compareRoutes);
}

/** Regexes from the longest pattern, then by text: that order carries meaning. The rest is in one order for everyone. */
function compareRoutes(a: Route, b: Route): number {
  if (a.path.kind === "regex" && b.path.kind === "regex") {
    return b.path.pattern.length - a.path.pattern.length || compareText(a.path.pattern, b.path.pattern);
  }
  return compareText(pathKey(a.path), pathKey(b.path));
}
