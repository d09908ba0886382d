import type { HostRules, Outcome, Route } from "../../core-wasm/binding/source.js";
import type { ObjectMeta } from "../resources/metadata.js";
import { refText } from "../resources/object-ref.js";
import type { Problem } from "../resources/problem.js";

/** What became of one host: its rules, who takes part in it, and what that means for the objects that claim it. */
export class HostResult {
  /** Undefined if nothing is left to serve. */
  rules: HostRules | undefined;
  /** `Kind/namespace/name` of the objects whose rules are in force. */
  readonly participants = new Set<string>();
  /** Problems by object; `rejected` is set where the object lost something to an older one. */
  readonly findings = new Map<string, { problems: Problem[]; rejected: boolean }>();

  warn(meta: ObjectMeta, problem: Omit<Problem, "severity">): void {
    this.#finding(meta).problems.push({ ...problem, severity: "warning" });
  }

  /** The object cannot be served as it stands beside the others. */
  error(meta: ObjectMeta, problem: Omit<Problem, "severity">): void {
    this.#finding(meta).problems.push({ ...problem, severity: "error" });
  }

  /** As warn, and the object counts as rejected. */
  reject(meta: ObjectMeta, problem: Omit<Problem, "severity">): void {
    this.warn(meta, problem);
    this.#finding(meta).rejected = true;
  }

  /** Identities of the upstreams that the rules lead to. */
  upstreamKeys(): Set<string> {
    const keys = new Set<string>();
    if (this.rules === undefined) return keys;
    for (const route of this.rules.routes) addRouteUpstreams(route, keys);
    if (this.rules.unmatched !== undefined) addOutcomeUpstreams(this.rules.unmatched.outcome, keys);
    return keys;
  }

  #finding(meta: ObjectMeta): { problems: Problem[]; rejected: boolean } {
    const key = refText(meta.ref);
    const found = this.findings.get(key) ?? { problems: [], rejected: false };
    this.findings.set(key, found);
    return found;
  }
}

function addRouteUpstreams(route: Route, keys: Set<string>): void {
  for (const match of route.matches) addOutcomeUpstreams(match.outcome, keys);
  if (route.outcome !== undefined) addOutcomeUpstreams(route.outcome, keys);
}

function addOutcomeUpstreams(outcome: Outcome, keys: Set<string>): void {
  if (outcome.kind === "proxy") keys.add(outcome.upstream);
  if (outcome.kind === "split") for (const entry of outcome.entries) addOutcomeUpstreams(entry.action, keys);
}
