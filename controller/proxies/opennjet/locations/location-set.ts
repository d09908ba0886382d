/** The locations of all hosts, and the backends that they name: one set for each state of the model, whatever was before. */
import type { HostPattern, HostRules } from "../../../../core-wasm/binding/source.js";
import type { Upstream, UpstreamTransport } from "../../../model/types.js";
import { UnsupportedError } from "../../plan-step.js";
import type { BalancerName } from "../parts.js";
import { digest, type NamedRoute, routeIdentity } from "./backend-names.js";
import { backendName, isNamedByObject } from "./backends.js";
import { hashKey } from "./balancing-fields.js";
import { directive } from "./directives.js";
import { all, any, conditionText, type Expression } from "./expression.js";
import { type HostCase, hostCases } from "./host-cases.js";
import { hostExpression, hostPlace } from "./hosts.js";
import { answerBody, proxyBody } from "./location-body.js";
import { answerLine, asksFor, lastPattern, NO_QUESTION, type Question, questionId, questionOf } from "./questions.js";

/** A location as it is sent. Rule and name are its identity, and say its body too. */
export interface CarriedLocation {
  rule: "" | "~";
  name: string;
  body: string;
  /** Reaches this location and no other. */
  question: Question;
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

/** What the locations of a host depend on besides its rules. */
export interface Surroundings {
  /** Those of all hosts. */
  patterns: Iterable<HostPattern>;
  upstreams: UpstreamLookup;
  balancer: BalancerName;
  /** See questionFolder. */
  folder: string;
  /**
   * Of another edition the same locations have other names. OpenNJet takes no location that its agent has, also where a worker never got it:
   * under another name it is sent again, and is there before the other one goes.
   */
  edition: number;
}

/**
 * The locations of a host. Throws UnsupportedError where they become too long among the others, or where an upstream asks for what a
 * location can't have.
 */
export function locationsOf(
  { rules, cases }: CarriedHost,
  surroundings: Surroundings,
  names: RouteNames,
): CarriedLocation[] {
  const { pattern } = rules;
  const host = hostExpression(pattern, surroundings.patterns);
  return cases.map((one) => {
    try {
      const body = `${answerLine(surroundings.folder)} ${bodyOf(pattern, one, surroundings, names)}`;
      return pattern.kind === "default"
        ? lastResort(body, surroundings)
        : conditional(pattern, host, one.when, body, surroundings);
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      throw new UnsupportedError(`${one.resource}: ${error.message}`);
    }
  });
}

/** The routes of a host whose backends have no names of their own. Throws as locationsOf does. */
export function namedRoutesOf(host: CarriedHost, surroundings: Surroundings): (NamedRoute & { upstream: string })[] {
  const { upstreams } = surroundings;
  // In each edition a location is for the same requests.
  const shapes = locationsOf(host, { ...surroundings, edition: 0 }, UNNAMED);
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
  { upstreams, balancer }: Surroundings,
  names: RouteNames,
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
 * A conditional location, for requests that are no questions, and for the question for itself. The id is one of the body too: so a location
 * of another body is another location, which can be there before the old one goes. What is compared most often tells the host, and stands
 * first: OpenNJet tries one location after the other.
 */
function conditional(
  pattern: HostPattern,
  host: Expression,
  when: Expression,
  body: string,
  { folder, edition }: Surroundings,
): CarriedLocation {
  const id = questionId(conditionText(all(host, when, NO_QUESTION)), body, edition);
  const name = conditionText(all(host, any(all(when, NO_QUESTION), asksFor(id))));
  return { rule: "", name, body, question: questionOf(pattern, id, folder) };
}

/** What no condition takes: OpenNJet looks at other locations after all conditional ones, at patterns before `location /`. */
function lastResort(body: string, { folder, edition }: Surroundings): CarriedLocation {
  const id = questionId("", body, edition);
  return { rule: "~", name: lastPattern(id, folder), body, question: questionOf({ kind: "default" }, id, folder) };
}

/** What requests get that no location takes: what the last resort among these says, else what the server answers by itself. */
export function bodyWithout(locations: readonly CarriedLocation[], folder: string): string {
  const last = locations.find(({ rule }) => rule !== "");
  return last?.body ?? `${answerLine(folder)} ${directive("return", "404")}`;
}
