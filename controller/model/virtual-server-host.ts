import type { HostRules, PathRule, Route } from "../../core-wasm/binding/source.js";
import { withErrorPages } from "../resources/error-pages.js";
import type { TlsRedirect, VirtualServerFragment, VirtualServerRouteFragment } from "../resources/fragments.js";
import { refText } from "../resources/object-ref.js";
import { pathKey } from "../resources/path-rule.js";
import { quote } from "../resources/problem.js";
import type { Reference } from "../resources/reference.js";
import { withheldRoute } from "../resources/routes.js";
import type { HostResult } from "./host-result.js";
import { hostPattern } from "./pattern-text.js";
import type { Refusal } from "./reference-index.js";

/** What a VirtualServer may delegate to. */
export interface DelegationTargets {
  /** A VirtualServerRoute that is valid and of a served class, by `namespace/name`. */
  find(name: string): VirtualServerRouteFragment | undefined;
  /** Why the delegation to another namespace does not act; undefined if it does. */
  refusal(reference: Reference | undefined): Refusal | undefined;
}

type Delegation = Extract<VirtualServerFragment["entries"][number], { kind: "delegated" }>;

/**
 * Puts together the rules of the host of a VirtualServer. Subroutes stand where their path is delegated, so that
 * regexes keep one written order. A delegated path whose VirtualServerRoute is missing, unusable or not to be used answers
 * 503: it must not fall through to a shorter path that belongs to somebody else.
 */
export function buildVirtualServerHost(
  server: VirtualServerFragment,
  targets: DelegationTargets,
  result: HostResult,
): void {
  const routes = new RouteCollector(result);
  result.participants.add(refText(server.meta.ref));
  for (const entry of server.entries) {
    if (entry.kind === "own") {
      routes.add(entry.route, server, entry.path);
      continue;
    }
    const target = usableTarget(server, entry, targets, result);
    if (target === undefined) {
      routes.add(unavailable(server, entry), server, entry.path);
      continue;
    }
    result.participants.add(refText(target.meta.ref));
    for (const { route, path } of target.subroutes) {
      routes.add(entry.withheld ? withheldRoute(route) : withErrorPages(route, entry.errorPages), target, path);
    }
  }
  result.rules = {
    pattern: hostPattern(server.host, "any"),
    guards: server.redirect === undefined ? [] : [redirectGuard(server, server.redirect)],
    routes: routes.list,
  };
}

/** Routes in order; a path that is already taken goes to its first owner. */
class RouteCollector {
  readonly list: Route[] = [];
  readonly #owners = new Map<string, string>();
  readonly #result: HostResult;

  constructor(result: HostResult) {
    this.#result = result;
  }

  add(route: Route, object: VirtualServerFragment | VirtualServerRouteFragment, path: string): void {
    const owner = this.#owners.get(pathKey(route.path));
    if (owner === undefined) {
      this.#owners.set(pathKey(route.path), refText(object.meta.ref));
      this.list.push(route);
      return;
    }
    const message = `${owner} has the path ${quote(route.label)} earlier`;
    this.#result.reject(object.meta, { path, code: "PATH_TAKEN", message });
  }
}

function usableTarget(
  server: VirtualServerFragment,
  entry: Delegation,
  targets: DelegationTargets,
  result: HostResult,
): VirtualServerRouteFragment | undefined {
  const target = targets.find(entry.to);
  const name = `VirtualServerRoute/${entry.to}`;
  const refusal = targets.refusal(entry.reference);
  if (refusal !== undefined) {
    const { code, message } = refusal;
    result.warn(server.meta, { path: entry.path, code, message: `${message}; the path answers 503` });
    if (target?.host === server.host) {
      const by = `${refText(server.meta.ref)} delegates ${quote(entry.label)} to this object, without effect`;
      result.warn(target.meta, { path: "", code, message: `${by}: ${message}` });
    }
    return undefined;
  }
  if (target === undefined) {
    const message = `${name} is missing, invalid or of another class; the path answers 503`;
    result.warn(server.meta, { path: entry.path, code: "ROUTE_MISSING", message });
    return undefined;
  }
  if (target.host !== server.host) {
    const message = `${name} has the host ${quote(target.host)}, not ${quote(server.host)}; the path answers 503`;
    result.warn(server.meta, { path: entry.path, code: "ROUTE_HOST_MISMATCH", message });
    return undefined;
  }
  const outside = target.subroutes.filter(({ route }) => !isInside(route.path, entry.rule));
  for (const { route, path } of outside) {
    const by = `${refText(server.meta.ref)} delegates ${quote(entry.label)}`;
    const message = `${quote(route.label)} lies outside: ${by}; the VirtualServerRoute is not served`;
    result.error(target.meta, { path, code: "SUBROUTE_OUTSIDE", message });
  }
  if (outside.length === 0) return target;
  const message = `${name} has subroutes outside of ${quote(entry.label)}; the path answers 503`;
  result.warn(server.meta, { path: entry.path, code: "SUBROUTE_OUTSIDE", message });
  return undefined;
}

/** Prefix: starts with it; exact: the same path; regex: the same regex. */
function isInside(path: PathRule, delegated: PathRule): boolean {
  if (delegated.kind !== "prefix") return pathKey(path) === pathKey(delegated);
  return path.kind !== "regex" && path.path.startsWith(delegated.path);
}

function unavailable(server: VirtualServerFragment, entry: Delegation): Route {
  return {
    path: entry.rule,
    label: entry.label,
    resource: refText(server.meta.ref),
    matches: [],
    outcome: { kind: "return", status: 503, contentType: "text/plain", body: ["503 Service Unavailable\n"] },
  };
}

function redirectGuard(server: VirtualServerFragment, redirect: TlsRedirect): HostRules["guards"][number] {
  const source =
    redirect.basedOn === "scheme"
      ? ({ kind: "variable", name: "scheme" } as const)
      : ({ kind: "header", name: "x-forwarded-proto" } as const);
  return {
    resource: refText(server.meta.ref),
    match: {
      conditions: [{ source, test: { kind: "equals", value: "http" }, negated: false }],
      outcome: {
        kind: "redirect",
        status: redirect.code,
        location: ["https://", { kind: "variable", name: "host" }, { kind: "variable", name: "request_uri" }],
      },
    },
  };
}
