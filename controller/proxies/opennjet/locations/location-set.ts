/** The locations of all hosts, and the backends that they name: one set for each state of the model, whatever was before. */
import { createHash } from "node:crypto";
import type { HostPattern, HostRules } from "../../../../core-wasm/binding/source.js";
import type { Upstream, UpstreamTransport } from "../../../model/types.js";
import { UnsupportedError } from "../../plan-step.js";
import type { BalancerName } from "../parts.js";
import { digest, type NamedRoute, routeIdentity } from "./backend-names.js";
import { backendName, isNamedByObject } from "./backends.js";
import { hashKey } from "./balancing-fields.js";
import { all, conditionText, type Expression, equalTo, not } from "./expression.js";
import { type HostCase, hostCases } from "./host-cases.js";
import { hostExpression, hostPlace } from "./hosts.js";
import { answerBody, proxyBody } from "./location-body.js";

/** A location as it is sent. Rule and name are its identity, and say its body too. */
export interface CarriedLocation {
  rule: "" | "~";
  name: string;
  body: string;
}

/** The rules of a host pattern, ready to become locations. */
export interface CarriedHost {
  rules: HostRules;
  cases: readonly HostCase[];
}

/** The name that no two locations share: what the API tells them apart by. */
export function locationKey({ rule, name }: Pick<CarriedLocation, "rule" | "name">): string {
  return `${rule}${name}`;
}

const PLAIN_TRANSPORT: UpstreamTransport = { tls: false, protocol: "http" };

/** Throws UnsupportedError for rules that locations can't carry, whatever else there is. */
export function readHost(rules: HostRules): CarriedHost {
  // Of the default pattern only the outcome for unmatched paths counts.
  const cases = hostCases(rules.pattern.kind === "default" ? { ...rules, guards: [], routes: [] } : rules);
  if (rules.pattern.kind === "default" && cases.length > 1) {
    throw new UnsupportedError(`${cases[0].resource}: a split for all that is unmatched needs the carrier core`);
  }
  return { rules, cases };
}

/** Upstreams by their key. */
export type UpstreamLookup = (key: string) => Upstream | undefined;

/** The backend of a route whose upstream has no name of its own, by the identity of the route. */
export type RouteNames = (route: string) => string;

const UNNAMED: RouteNames = () => "";

/**
 * The locations of a host where there are these patterns. Throws UnsupportedError where they become too long among them, or
 * where an upstream asks for what a location can't have.
 */
export function locationsOf(
  { rules, cases }: CarriedHost,
  patterns: Iterable<HostPattern>,
  upstreams: UpstreamLookup,
  names: RouteNames,
  balancer: BalancerName = "own",
): CarriedLocation[] {
  const { pattern } = rules;
  const host = hostExpression(pattern, patterns);
  return cases.map((one) => {
    try {
      const body = bodyOf(pattern, one, upstreams, names, balancer);
      return pattern.kind === "default" ? lastResort(body) : conditional(all(host, one.when), body);
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      throw new UnsupportedError(`${one.resource}: ${error.message}`);
    }
  });
}

/** The routes of a host whose backends have no names of their own. Throws as locationsOf does. */
export function namedRoutesOf(
  host: CarriedHost,
  patterns: Iterable<HostPattern>,
  upstreams: UpstreamLookup,
  balancer: BalancerName = "own",
): (NamedRoute & { upstream: string })[] {
  const shapes = locationsOf(host, patterns, upstreams, UNNAMED, balancer);
  return host.cases.flatMap(({ action, place }, i) => {
    if (action.kind !== "proxy" || isNamedByObject(action.upstream)) return [];
    const { upstream } = action;
    const { tls, protocol } = transportOf(upstream, upstreams);
    const route = routeIdentity(hostPlace(host.rules.pattern), place);
    const target = JSON.stringify([upstream, tls, protocol]);
    return [{ route, target, shape: digest(locationKey(shapes[i])), upstream }];
  });
}

/** Names of the backends of a host, with the upstream of each. Two routes may have one upstream, and a backend each. */
export function backendsOf(
  { rules, cases }: CarriedHost,
  upstreams: UpstreamLookup,
  routeNames: RouteNames,
): Map<string, string> {
  const names = new Map<string, string>();
  for (const { action, place } of cases) {
    if (action.kind !== "proxy") continue;
    names.set(nameOf(rules.pattern, place, action.upstream, upstreams, routeNames), action.upstream);
  }
  return names;
}

function bodyOf(
  pattern: HostPattern,
  { action, place, route }: HostCase,
  upstreams: UpstreamLookup,
  names: RouteNames,
  balancer: BalancerName,
): string {
  if (action.kind !== "proxy") return answerBody(action);
  if (upstreams(action.upstream)?.sessionCookie !== undefined && !isNamedByObject(action.upstream)) {
    throw new UnsupportedError(
      "a session cookie of an Ingress needs the carrier core: its paths have backends of their own here",
    );
  }
  const backend = nameOf(pattern, place, action.upstream, upstreams, names);
  const upstream = upstreams(action.upstream);
  return proxyBody(action, {
    backend,
    transport: transportOf(action.upstream, upstreams),
    ...(balancer === "bundled" && { bundled: { hashKey: upstream && hashKey(upstream.peers.method) } }),
    path: route?.path,
  });
}

function nameOf(
  pattern: HostPattern,
  place: string,
  upstream: string,
  upstreams: UpstreamLookup,
  names: RouteNames,
): string {
  if (isNamedByObject(upstream)) return backendName(upstream, transportOf(upstream, upstreams));
  return names(routeIdentity(hostPlace(pattern), place));
}

function transportOf(upstream: string, upstreams: UpstreamLookup): UpstreamTransport {
  return upstreams(upstream)?.transport ?? PLAIN_TRANSPORT;
}

/**
 * A conditional location. The last comparison always holds, since a path begins with a slash: it makes the body part of the
 * name. So a location of another body is another location, which can be there before the old one goes.
 */
function conditional(when: Expression, body: string): CarriedLocation {
  return { rule: "", name: conditionText(all(when, not(equalTo("uri", bodyDigest(body))))), body };
}

/** What no condition takes: OpenNJet looks at other locations after all conditional ones, at patterns before `location /`. No path begins
 * with the digest. */
function lastResort(body: string): CarriedLocation {
  return { rule: "~", name: `^(?!${bodyDigest(body)})`, body };
}

/**
 * The same location under another name, one for each edition; 0 is that of before. OpenNJet takes no location that its agent has, also
 * where a worker never got it: under another name it is sent again, and is there before the other one goes.
 */
export function inEdition(location: CarriedLocation, edition: number): CarriedLocation {
  const { rule, name } = location;
  if (edition === 0) return location;
  // What no path is, as in the names above.
  if (rule !== "") return { ...location, name: `${name}(?!${edition})` };
  return { ...location, name: `${name.slice(0, -1)} && $uri != ${edition})` };
}

function bodyDigest(body: string): string {
  return createHash("sha256").update(body).digest("hex").slice(0, 12);
}
