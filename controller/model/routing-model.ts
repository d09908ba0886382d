import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { ApplyFailure } from "../proxies/proxy.js";
import type { PlanStep } from "../reconcile/plan.js";
import type { ReferenceGrantFragment, VirtualServerRouteFragment } from "../resources/fragments.js";
import { type ObjectRef, refText } from "../resources/object-ref.js";
import type { ParseContext } from "../resources/parse-context.js";
import { parseObject } from "../resources/parse-object.js";
import { compareText } from "./age.js";
import { CertificateIndex } from "./certificate-index.js";
import { ClassRules, type SourceKind } from "./classes.js";
import { delegatedNames, hostOf, referencesOf } from "./fragment-references.js";
import { HostIndex } from "./host-index.js";
import { Links } from "./links.js";
import type { ObjectState } from "./object-state.js";
import { type Entry, ObjectStates, type RoutingEntry } from "./object-states.js";
import { type CrossNamespaceRules, ReferenceIndex } from "./reference-index.js";
import { Refusals } from "./refusals.js";
import type { ModelChange, ModelSnapshot } from "./types.js";
import { UpstreamIndex } from "./upstream-index.js";
import type { DelegationTargets } from "./virtual-server-host.js";
import { type Displaced, WhatIf } from "./what-if.js";

/** An object that came, changed (`object` is its new content, any JSON value) or went (`object` is undefined). */
export interface ObjectChange extends ObjectRef {
  object: unknown;
}

/** What an update changed, and the objects (`Kind/namespace/name`) whose state may be another one now. */
export interface ModelUpdate extends ModelChange {
  objects: Set<string>;
}

export interface ModelOptions {
  checker: PatternChecker;
  source: SourceKind;
  /** Value of --ingress-class; `njet` if absent. */
  ingressClass?: string;
  /** Value of --controller-class; `njet.org/ingress-controller` if absent. */
  controllerClass?: string;
  /** Values of --cross-namespace-routes and --cross-namespace-services. */
  crossNamespace?: Partial<CrossNamespaceRules>;
}

/** What a change of one object would do. */
export interface Probe {
  /** The state that the object would have; undefined if there would be none. */
  state: ObjectState | undefined;
  /** Ingress and VirtualServer objects that would lose a host, or a path of it, to the object, and have it now. */
  displaced: Displaced[];
}

/**
 * The routing model: from Kubernetes objects to hosts, upstreams and certificates. It is fed with changes and answers
 * with the pieces that are different then. The cost follows the change: indices lead from an object to the hosts,
 * upstreams and certificates that it can touch, and only these are built again. The result depends on the objects alone,
 * never on the order in which they came. No object, however wrong, disturbs another or makes `update` throw.
 */
export class RoutingModel {
  readonly #context: ParseContext;
  readonly #classes: ClassRules;
  readonly #objects = new Map<string, Entry>();
  readonly #objectsOfClass = new Links();
  /** Whether the objects of a class (empty: of none) are served, for each that an object has named. */
  readonly #standing = new Map<string, boolean>();
  /** From a VirtualServerRoute (`namespace/name`) to the hosts that delegate to it. */
  readonly #delegations = new Links();
  readonly #references: ReferenceIndex;
  readonly #targets: DelegationTargets;
  readonly #hosts: HostIndex;
  readonly #upstreams: UpstreamIndex;
  readonly #certificates: CertificateIndex;
  readonly #refusals = new Refusals();
  readonly #states: ObjectStates;
  #parsed = 0;
  #reclassed = 0;

  constructor(options: ModelOptions) {
    this.#context = { checker: options.checker };
    this.#classes = new ClassRules(options.ingressClass ?? "njet", options.source, options.controllerClass);
    this.#references = new ReferenceIndex(options.crossNamespace);
    this.#targets = {
      find: (name) => this.#findRoute(name),
      refusal: (reference) => this.#references.refusal(reference),
    };
    this.#hosts = new HostIndex(this.#targets);
    this.#upstreams = new UpstreamIndex(this.#references);
    this.#certificates = new CertificateIndex((host) => this.#hosts.exclusiveOwner(host), this.#references);
    this.#states = new ObjectStates({
      hosts: this.#hosts,
      upstreams: this.#upstreams,
      certificates: this.#certificates,
      classes: this.#classes,
      refusals: this.#refusals,
    });
  }

  /** How many objects were parsed, or looked at because their class changed, and how many pieces were built so far. */
  get counters(): { parsed: number; reclassed: number; hosts: number; upstreams: number; certificates: number } {
    return {
      parsed: this.#parsed,
      reclassed: this.#reclassed,
      hosts: this.#hosts.rebuilt,
      upstreams: this.#upstreams.rebuilt,
      certificates: this.#certificates.rebuilt,
    };
  }

  /** Takes in a batch of changes; of several for one object the last counts. */
  update(changes: readonly ObjectChange[]): ModelUpdate {
    const objects = new Set<string>();
    const last = new Map(changes.map((change) => [refText(change), change]));
    for (const [key, change] of last) {
      this.#replace(key, change);
      objects.add(key);
    }
    if (changes.some((change) => change.kind === "IngressClass")) this.#applyClasses(objects);
    const hosts = this.#hosts.rebuild(objects);
    for (const keys of hosts.referenced) for (const key of keys) this.#upstreams.reference(key);
    for (const keys of hosts.released) for (const key of keys) this.#upstreams.release(key);
    for (const host of hosts.rebuilt) this.#certificates.touchHost(host);
    const touchedUpstreams = new Set<string>();
    const upstreams = this.#upstreams.rebuild(touchedUpstreams);
    for (const key of touchedUpstreams) objects.add(key.slice(0, key.lastIndexOf("/")));
    const certificates = this.#certificates.rebuild(objects);
    return { hosts: hosts.rules, upstreams, certificates, objects };
  }

  /** What became of these steps in the proxy. Returns the objects whose state is another one because of that. */
  settle(steps: readonly PlanStep[], failures: readonly ApplyFailure[]): Set<string> {
    return this.#refusals.settle(steps, failures, (host) => this.#certificates.usersOf(host));
  }

  /** The whole model in force. */
  snapshot(): ModelSnapshot {
    return { hosts: this.#hosts.all(), upstreams: this.#upstreams.all(), certificates: this.#certificates.all() };
  }

  /** State of one object; undefined if there is none. */
  problems(ref: ObjectRef): ObjectState | undefined {
    const entry = this.#objects.get(refText(ref));
    return entry && this.#states.of(entry);
  }

  /**
   * What `update` with this change, and `problems` of its object after it, would say; the model stays as it is, and the
   * proxy, which may refuse what the model takes, is not asked. Answers
   * for objects that bring routes (Ingress, VirtualServer, VirtualServerRoute); others are only parsed. The cost follows
   * the object and the hosts that it claims, not the number of objects. Patterns are checked by `checker`.
   */
  probe(change: ObjectChange, checker: PatternChecker = this.#context.checker): Probe {
    const { kind, namespace, name, object } = change;
    if (object === undefined) return { state: undefined, displaced: [] };
    const ref: ObjectRef = { kind, namespace, name };
    const entry: Entry = { ...parseObject(ref, object, { ...this.#context, checker }), ref, served: false };
    if (entry.kind === "routing") entry.served = this.#classes.serves(entry.className);
    if (entry.kind !== "routing" || !entry.served || entry.fragment === undefined) {
      return { state: this.#states.of(entry), displaced: [] };
    }
    const held = this.#objects.get(refText(ref));
    const before = held?.kind === "routing" && held.served ? held.fragment : undefined;
    const indices = { hosts: this.#hosts, upstreams: this.#upstreams, certificates: this.#certificates };
    const then = new WhatIf(indices, this.#targets, before, entry.fragment);
    return { state: this.#states.ofServed(entry, entry.fragment, then), displaced: then.displaced() };
  }

  /** The served VirtualServer (`namespace/name`) that a VirtualServerRoute gets its requests from, if there is one. */
  referencedBy(ref: ObjectRef): string | undefined {
    for (const host of this.#delegations.of(`${ref.namespace}/${ref.name}`)) {
      const owner = this.#hosts.exclusiveOwner(host);
      const takesPart = this.#hosts.resultOf(host)?.participants.has(refText(ref));
      if (takesPart && owner?.startsWith("VirtualServer/")) return owner.slice("VirtualServer/".length);
    }
    return undefined;
  }

  /** States of all objects, by kind, namespace and name. */
  allObjects(): ObjectState[] {
    return [...this.#objects.entries()]
      .sort(([a], [b]) => compareText(a, b))
      .map(([, entry]) => this.#states.of(entry));
  }

  #replace(key: string, change: ObjectChange): void {
    const before = this.#objects.get(key);
    if (before?.kind === "routing") {
      if (before.served) this.#withdraw(before);
      this.#objectsOfClass.unlink(before.className ?? "", key);
    }
    const { kind, namespace, name } = change;
    const ref: ObjectRef = { kind, namespace, name };
    if (change.object === undefined) {
      this.#objects.delete(key);
      this.#setShared(ref, undefined);
      return;
    }
    this.#parsed += 1;
    const entry: Entry = { ...parseObject(ref, change.object, this.#context), ref, served: false };
    this.#objects.set(key, entry);
    this.#setShared(ref, entry);
    if (entry.kind !== "routing") return;
    this.#objectsOfClass.link(entry.className ?? "", key);
    const served = this.#classes.serves(entry.className);
    if (!this.#standing.has(entry.className ?? "")) this.#standing.set(entry.className ?? "", served);
    if (served) this.#serve(entry);
  }

  /** Hands objects that others refer to over to their index. */
  #setShared(ref: ObjectRef, entry: Entry | undefined): void {
    const name = `${ref.namespace}/${ref.name}`;
    const { kind } = ref;
    if (kind === "IngressClass") this.#classes.set(ref.name, entry?.kind === "class" ? entry.fragment : undefined);
    if (kind === "Service") this.#upstreams.setService(name, entry?.kind === "service" ? entry.fragment : undefined);
    if (kind === "EndpointSlice") this.#upstreams.setSlice(name, entry?.kind === "slice" ? entry.fragment : undefined);
    if (kind === "ReferenceGrant") this.#setGrant(name, entry?.kind === "grant" ? entry.fragment : undefined);
    if (kind === "Secret") this.#certificates.setSecret(name, entry?.kind === "secret" ? entry : undefined);
  }

  /** A grant that comes, changes or goes touches what it makes different. */
  #setGrant(name: string, grant: ReferenceGrantFragment | undefined): void {
    for (const { kind, item } of this.#references.setGrant(name, grant)) {
      if (kind === "Service") this.#upstreams.touch(item);
      else if (kind === "Secret") this.#certificates.touchHost(item);
      else this.#hosts.touch(item);
    }
  }

  #serve(entry: RoutingEntry): void {
    entry.served = true;
    const fragment = entry.fragment;
    if (fragment === undefined) return;
    for (const { reference, item } of referencesOf(fragment)) this.#references.use(reference, item);
    for (const upstream of fragment.upstreams) this.#upstreams.declare(upstream);
    this.#certificates.request(fragment.meta, fragment.certificates);
    if (fragment.kind === "VirtualServerRoute") this.#touchDelegating(fragment);
    else this.#hosts.add(fragment);
    for (const name of delegatedNames(fragment)) this.#delegations.link(name, hostOf(fragment));
  }

  #withdraw(entry: RoutingEntry): void {
    entry.served = false;
    const fragment = entry.fragment;
    if (fragment === undefined) return;
    for (const { reference, item } of referencesOf(fragment)) this.#references.release(reference, item);
    for (const upstream of fragment.upstreams) this.#upstreams.withdraw(upstream);
    this.#certificates.withdraw(fragment.meta, fragment.certificates);
    if (fragment.kind === "VirtualServerRoute") this.#touchDelegating(fragment);
    else this.#hosts.remove(fragment);
    for (const name of delegatedNames(fragment)) this.#delegations.unlink(name, hostOf(fragment));
  }

  #touchDelegating(fragment: VirtualServerRouteFragment): void {
    const { namespace, name } = fragment.meta.ref;
    for (const host of this.#delegations.of(`${namespace}/${name}`)) this.#hosts.touch(host);
  }

  /** Serves or withdraws the objects of the classes whose standing changed; no others are looked at. */
  #applyClasses(objects: Set<string>): void {
    for (const [className, before] of this.#standing) {
      const served = this.#classes.serves(className || undefined);
      if (served === before) continue;
      this.#standing.set(className, served);
      for (const key of this.#objectsOfClass.of(className)) {
        this.#reclassed += 1;
        const entry = this.#objects.get(key);
        if (entry?.kind !== "routing" || entry.served === served) continue;
        if (served) this.#serve(entry);
        else this.#withdraw(entry);
        objects.add(key);
      }
    }
  }

  #findRoute(name: string): VirtualServerRouteFragment | undefined {
    const entry = this.#objects.get(`VirtualServerRoute/${name}`);
    if (entry?.kind !== "routing" || !entry.served) return undefined;
    return entry.fragment?.kind === "VirtualServerRoute" ? entry.fragment : undefined;
  }
}
