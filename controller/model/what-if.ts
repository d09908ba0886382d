import type { RoutingFragment, UpstreamDeclaration, VirtualServerRouteFragment } from "../resources/fragments.js";
import { refText } from "../resources/object-ref.js";
import type { Problem } from "../resources/problem.js";
import type { CertificateIndex } from "./certificate-index.js";
import { type Claimant, claimedHosts, type Exchange, type HostIndex } from "./host-index.js";
import type { HostResult } from "./host-result.js";
import type { UpstreamIndex } from "./upstream-index.js";
import type { DelegationTargets } from "./virtual-server-host.js";

/** What becomes of an object among the others. */
export interface Neighbours {
  /** Undefined where nobody claims the host. */
  resultOf(host: string): HostResult | undefined;
  upstreamProblem(upstream: UpstreamDeclaration): Problem | undefined;
  /** `object` is `Kind/namespace/name`. */
  certificateProblem(object: string, host: string): Problem | undefined;
}

/** An object (`Kind/namespace/name`) that would lose something of a host. */
export interface Displaced {
  object: string;
  host: string;
}

/** Rules without a host. */
const ANY_HOST = "";

/** The neighbours of one object as they would be with it in another version. It looks at the indices and leaves them. */
export class WhatIf implements Neighbours {
  readonly #hosts: HostIndex;
  readonly #upstreams: UpstreamIndex;
  readonly #certificates: CertificateIndex;
  readonly #before: RoutingFragment | undefined;
  readonly #after: RoutingFragment;
  readonly #exchange: Exchange;
  readonly #results = new Map<string, HostResult | undefined>();
  #used: ReadonlySet<string> | undefined;

  /** `before` is what the indices hold of the object, if anything. */
  constructor(
    indices: { hosts: HostIndex; upstreams: UpstreamIndex; certificates: CertificateIndex },
    targets: DelegationTargets,
    before: RoutingFragment | undefined,
    after: RoutingFragment,
  ) {
    this.#hosts = indices.hosts;
    this.#upstreams = indices.upstreams;
    this.#certificates = indices.certificates;
    this.#before = before;
    this.#after = after;
    this.#exchange = {
      before: claimant(before),
      after: claimant(after),
      targets: after.kind === "VirtualServerRoute" ? instead(targets, after) : targets,
    };
  }

  resultOf(host: string): HostResult | undefined {
    if (!this.#results.has(host)) {
      const result = this.#hosts.resultAfter(host, this.#exchange);
      this.#results.set(host, result.rules === undefined ? undefined : result);
    }
    return this.#results.get(host);
  }

  upstreamProblem(upstream: UpstreamDeclaration): Problem | undefined {
    this.#used ??= this.#usedUpstreams();
    return this.#used.has(upstream.key) ? this.#upstreams.problemIfUsed(upstream) : undefined;
  }

  certificateProblem(_object: string, host: string): Problem | undefined {
    const owner = this.#hosts.exclusiveOwnerAfter(host, this.#exchange);
    return this.#certificates.problemAfter(host, this.#before, this.#after, owner);
  }

  /** Objects that would lose to this one what they have now. */
  displaced(): Displaced[] {
    // A VirtualServerRoute claims nothing: it has what is delegated to it.
    if (this.#after.kind === "VirtualServerRoute") return [];
    const own = refText(this.#after.meta.ref);
    const found: Displaced[] = [];
    for (const host of this.#ownHosts()) {
      const now = this.#hosts.resultOf(host)?.findings;
      for (const [object, { problems, rejected }] of this.resultOf(host)?.findings ?? []) {
        // Who delegates a path may take it back: a VirtualServerRoute is no rival.
        if (!rejected || object === own || object.startsWith("VirtualServerRoute/")) continue;
        const lost = new Set(now?.get(object)?.problems.map(lossKey));
        if (problems.some((problem) => !lost.has(lossKey(problem)))) found.push({ object, host });
      }
    }
    return found;
  }

  /** Hosts whose rules the object may take part in. */
  #ownHosts(): Set<string> {
    return this.#after.kind === "VirtualServerRoute" ? new Set([this.#after.host]) : claimedHosts(this.#after);
  }

  /** Keys of upstreams that requests would be led to. */
  #usedUpstreams(): Set<string> {
    const hosts = this.#ownHosts();
    if (this.#hosts.isFallbackAfter(this.#exchange)) hosts.add(ANY_HOST);
    return new Set([...hosts].flatMap((host) => [...(this.resultOf(host)?.upstreamKeys() ?? [])]));
  }
}

function claimant(fragment: RoutingFragment | undefined): Claimant | undefined {
  return fragment === undefined || fragment.kind === "VirtualServerRoute" ? undefined : fragment;
}

function instead(targets: DelegationTargets, route: VirtualServerRouteFragment): DelegationTargets {
  const { namespace, name } = route.meta.ref;
  const own = `${namespace}/${name}`;
  return {
    find: (wanted) => (wanted === own ? route : targets.find(wanted)),
    refusal: (reference) => targets.refusal(reference),
  };
}

function lossKey({ code, path }: Problem): string {
  return `${code} ${path}`;
}
