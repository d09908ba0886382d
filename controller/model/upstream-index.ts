import type { EndpointSliceFragment, ServiceFragment, UpstreamDeclaration } from "../resources/fragments.js";
import type { Problem } from "../resources/problem.js";
import { compareText } from "./age.js";
import { digest } from "./digest.js";
import { Links } from "./links.js";
import { findPeers, findServicePort, type PeersResult } from "./peers.js";
import type { ReferenceIndex, Refusal } from "./reference-index.js";
import type { Upstream } from "./types.js";

interface BuiltUpstream {
  upstream: Upstream;
  digest: string;
  problem?: PeersResult["problem"];
  refusal?: Refusal;
}

/**
 * Upstreams and where their peers come from. An upstream exists while the rules of some host lead to it; without peers
 * it answers 503, also where its service is of another namespace and may not be used. A change of a service or slice
 * rebuilds only the upstreams of that service.
 */
export class UpstreamIndex {
  /** How many upstreams were built so far. */
  rebuilt = 0;
  readonly #services = new Map<string, ServiceFragment>();
  /** By service, then by name of the slice. */
  readonly #slices = new Map<string, Map<string, EndpointSliceFragment>>();
  readonly #serviceOfSlice = new Map<string, string>();
  readonly #declared = new Map<string, UpstreamDeclaration>();
  readonly #byService = new Links();
  readonly #references = new Map<string, number>();
  readonly #built = new Map<string, BuiltUpstream>();
  readonly #dirty = new Set<string>();

  readonly #foreign: ReferenceIndex;

  /** `foreign` knows which services of other namespaces may be used. */
  constructor(foreign: ReferenceIndex) {
    this.#foreign = foreign;
  }

  /** `name` is `namespace/name`. */
  setService(name: string, service: ServiceFragment | undefined): void {
    if (service === undefined) this.#services.delete(name);
    else this.#services.set(name, service);
    this.#touchService(name);
  }

  setSlice(name: string, slice: EndpointSliceFragment | undefined): void {
    const before = this.#serviceOfSlice.get(name);
    if (before !== undefined) {
      this.#slices.get(before)?.delete(name);
      if (this.#slices.get(before)?.size === 0) this.#slices.delete(before);
      this.#serviceOfSlice.delete(name);
      this.#touchService(before);
    }
    if (slice?.service === undefined) return;
    const siblings = this.#slices.get(slice.service) ?? new Map<string, EndpointSliceFragment>();
    this.#slices.set(slice.service, siblings.set(name, slice));
    this.#serviceOfSlice.set(name, slice.service);
    this.#touchService(slice.service);
  }

  declare(upstream: UpstreamDeclaration): void {
    this.#declared.set(upstream.key, upstream);
    this.#byService.link(upstream.service, upstream.key);
    this.#dirty.add(upstream.key);
  }

  withdraw(upstream: UpstreamDeclaration): void {
    this.#declared.delete(upstream.key);
    this.#byService.unlink(upstream.service, upstream.key);
    this.#dirty.add(upstream.key);
  }

  /** What the upstream may refer to may have changed. */
  touch(key: string): void {
    this.#dirty.add(key);
  }

  /** Another host leads to the upstream. */
  reference(key: string): void {
    const count = this.#references.get(key) ?? 0;
    this.#references.set(key, count + 1);
    if (count === 0) this.#dirty.add(key);
  }

  /** One host fewer leads to it. */
  release(key: string): void {
    const count = this.#references.get(key) ?? 0;
    if (count > 1) {
      this.#references.set(key, count - 1);
      return;
    }
    this.#references.delete(key);
    this.#dirty.add(key);
  }

  /** Builds what was touched and returns what is different now. Keys of all that was touched go to `touched`. */
  rebuild(touched: Set<string>): Map<string, Upstream | undefined> {
    const changes = new Map<string, Upstream | undefined>();
    for (const key of [...this.#dirty].sort(compareText)) {
      touched.add(key);
      const before = this.#built.get(key);
      const declaration = this.#references.has(key) ? this.#declared.get(key) : undefined;
      if (declaration === undefined) {
        if (this.#built.delete(key)) changes.set(key, undefined);
        continue;
      }
      const now = this.#build(declaration);
      this.#built.set(key, now);
      if (before?.digest !== now.digest) changes.set(key, now.upstream);
    }
    this.#dirty.clear();
    return changes;
  }

  /** All upstreams in force. */
  all(): Map<string, Upstream> {
    return new Map([...this.#built].map(([key, { upstream }]) => [key, upstream]));
  }

  /** Why the upstream has no peers, as a problem of the object that declares it. */
  problemOf(declaration: UpstreamDeclaration): Problem | undefined {
    const { refusal, problem } = this.#built.get(declaration.key) ?? {};
    return refusal === undefined ? problemOf(declaration, problem) : refusalOf(declaration, refusal);
  }

  /** As problemOf, if the upstream were declared and requests led to it. */
  problemIfUsed(declaration: UpstreamDeclaration): Problem | undefined {
    const refusal = this.#foreign.refusal(declaration.reference);
    if (refusal !== undefined) return refusalOf(declaration, refusal);
    const port = findServicePort(this.#services.get(declaration.service), declaration.port);
    return problemOf(declaration, typeof port === "string" ? port : undefined);
  }

  #build(declaration: UpstreamDeclaration): BuiltUpstream {
    this.rebuilt += 1;
    const { key, display, balancing, transport, service, port } = declaration;
    const { method, limits, healthCheck, sessionCookie, queue } = balancing;
    const slices = this.#slices.get(service)?.values() ?? [];
    const refusal = this.#foreign.refusal(declaration.reference);
    const { peers, problem }: PeersResult =
      refusal === undefined
        ? findPeers(this.#services.get(service), port, slices, sessionCookie !== undefined)
        : { peers: [] };
    const upstream: Upstream = {
      peers: { key, display, method, peers, limits, ...(sessionCookie && { sessionCookie: sessionCookie.name }) },
      transport,
      ...(healthCheck && { healthCheck }),
      ...(sessionCookie && { sessionCookie }),
      ...(queue && { queue }),
    };
    return { upstream, digest: digest(upstream), ...(problem && { problem }), ...(refusal && { refusal }) };
  }

  #touchService(service: string): void {
    for (const key of this.#byService.of(service)) this.#dirty.add(key);
  }
}

function refusalOf({ path }: UpstreamDeclaration, refusal: Refusal): Problem {
  return { path, code: refusal.code, message: `${refusal.message}; requests are answered 503`, severity: "warning" };
}

function problemOf({ service, port, path }: UpstreamDeclaration, code: PeersResult["problem"]): Problem | undefined {
  if (code === undefined) return undefined;
  const reasons = {
    SERVICE_MISSING: `the service ${service} does not exist`,
    SERVICE_EXTERNAL_NAME: `the service ${service} is of type ExternalName and has no endpoints`,
    SERVICE_PORT_MISSING: `the service ${service} has no port ${port}`,
  };
  return { path, code, message: `${reasons[code]}; requests are answered 503`, severity: "warning" };
}
