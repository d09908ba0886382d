import { patternText } from "../../core-wasm/binding/source.js";
import type { RoutingFragment, VirtualServerRouteFragment } from "../resources/fragments.js";
import { type ObjectRef, refText } from "../resources/object-ref.js";
import type { ParsedObject } from "../resources/parse-object.js";
import { type Problem, quote } from "../resources/problem.js";
import type { CertificateIndex } from "./certificate-index.js";
import type { ClassRules } from "./classes.js";
import { claimedHosts, type HostIndex } from "./host-index.js";
import { type ObjectState, refusedState, stateOf } from "./object-state.js";
import type { Refusals } from "./refusals.js";
import type { UpstreamIndex } from "./upstream-index.js";
import type { Neighbours } from "./what-if.js";

/** An object as the model holds it; `served` where its class is. */
export type Entry = ParsedObject & { ref: ObjectRef; served: boolean };
/** An object that brings routes. */
export type RoutingEntry = Extract<Entry, { kind: "routing" }>;

/** What the states of objects are told from. */
export interface StateSources {
  hosts: HostIndex;
  upstreams: UpstreamIndex;
  certificates: CertificateIndex;
  classes: ClassRules;
  refusals: Refusals;
}

/** Tells the states of objects, as the indices and the proxy have it. */
export class ObjectStates {
  readonly #hosts: HostIndex;
  readonly #certificates: CertificateIndex;
  readonly #classes: ClassRules;
  readonly #refusals: Refusals;
  /** What the indices say as they are. */
  readonly #now: Neighbours;

  constructor({ hosts, upstreams, certificates, classes, refusals }: StateSources) {
    this.#hosts = hosts;
    this.#certificates = certificates;
    this.#classes = classes;
    this.#refusals = refusals;
    this.#now = {
      resultOf: (host) => hosts.resultOf(host),
      upstreamProblem: (upstream) => upstreams.problemOf(upstream),
      certificateProblem: (object, host) => certificates.problemOf(object, host),
    };
  }

  /** The state of an object. */
  of(entry: Entry): ObjectState {
    if (entry.kind === "unserved") return stateOf(entry.ref, entry.problems, "Ignored");
    if (entry.kind === "secret" && !entry.isTls) return stateOf(entry.ref, entry.problems, "Ignored");
    if (entry.kind === "class") {
      const own = this.#classes.owns(entry.fragment);
      return stateOf(entry.ref, entry.problems, own ? undefined : "Ignored");
    }
    if (entry.kind !== "routing") return stateOf(entry.ref, entry.problems);
    if (!entry.served) return stateOf(entry.ref, [notServed(entry)], "Ignored");
    if (entry.fragment === undefined) return stateOf(entry.ref, entry.problems);
    return this.ofServed(entry, entry.fragment);
  }

  /** The state of a served object that brings routes, among `around`: those of now, or what they would be. */
  ofServed(entry: RoutingEntry, fragment: RoutingFragment, around: Neighbours = this.#now): ObjectState {
    const key = refText(entry.ref);
    const problems = [...entry.problems];
    // What the proxy has refused was another version of the object: it must not stand in the way of a repair.
    const refused = around === this.#now ? this.#refusedOf(fragment) : [];
    const hosts = fragment.kind === "VirtualServerRoute" ? new Set([fragment.host]) : claimedHosts(fragment);
    let rejected = false;
    let takesPart = false;
    for (const host of hosts) {
      const result = around.resultOf(host);
      const finding = result?.findings.get(key);
      problems.push(...(finding?.problems ?? []));
      rejected ||= finding?.rejected ?? false;
      takesPart ||= result?.participants.has(key) ?? false;
    }
    for (const upstream of fragment.upstreams) {
      const problem = around.upstreamProblem(upstream);
      if (problem !== undefined) problems.push(problem);
    }
    for (const { host } of fragment.certificates) {
      const problem = around.certificateProblem(key, host);
      if (problem !== undefined) problems.push(problem);
    }
    if (rejected) return refusedState(stateOf(entry.ref, problems, "Rejected"), refused);
    if (fragment.kind !== "VirtualServerRoute" || takesPart) {
      return refusedState(stateOf(entry.ref, problems), refused);
    }
    return stateOf(entry.ref, [...problems, notReferenced(fragment)], "NoVirtualServerFound");
  }

  /** What the proxy has refused of an object. Without the rules of its only host nothing of it is in force. */
  #refusedOf(fragment: RoutingFragment): Problem[] {
    const problems: Problem[] = [];
    if (this.#refusals.empty) return problems;
    const isIngress = fragment.kind === "Ingress";
    const key = refText(fragment.meta.ref);
    for (const host of fragment.kind === "VirtualServerRoute" ? [fragment.host] : claimedHosts(fragment)) {
      const result = this.#hosts.resultOf(host);
      if (result?.rules === undefined || !result.participants.has(key)) continue;
      const refused = this.#refusals.of({ kind: "host", piece: patternText(result.rules.pattern) });
      if (refused) problems.push({ ...refused, path: "", severity: isIngress ? "warning" : "error" });
    }
    for (const upstream of fragment.upstreams) {
      const refused = this.#refusals.of({ kind: "upstream", piece: upstream.key });
      if (refused) problems.push({ ...refused, path: upstream.path, severity: "warning" });
    }
    for (const request of fragment.certificates) {
      const refused = this.#refusals.of({ kind: "certificate", piece: request.host });
      if (refused && this.#certificates.serves(request)) {
        problems.push({ ...refused, path: request.path, severity: "warning" });
      }
    }
    return problems;
  }
}

function notServed(entry: RoutingEntry): Problem {
  const reason =
    entry.className === undefined
      ? "names no class, and no served class is the default one"
      : `belongs to the class ${quote(entry.className)}, which is not served here`;
  return {
    path: "spec.ingressClassName",
    code: "CLASS_NOT_SERVED",
    message: `the object ${reason}`,
    severity: "warning",
  };
}

function notReferenced(fragment: VirtualServerRouteFragment): Problem {
  const message = `no served VirtualServer of the host ${quote(fragment.host)} delegates to this object`;
  return { path: "", code: "ROUTE_NOT_REFERENCED", message, severity: "warning" };
}
