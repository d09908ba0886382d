import type { ReferenceGrantFragment } from "../resources/fragments.js";
import { groupOf } from "../resources/object-ref.js";
import type { Problem } from "../resources/problem.js";
import type { Reference, ReferredKind } from "../resources/reference.js";

/** Whether references to objects of other namespaces act: never, where a ReferenceGrant allows it, or always. */
export const CROSS_NAMESPACE = ["off", "granted", "all"] as const;
export type CrossNamespace = (typeof CROSS_NAMESPACE)[number];

/** What may be referred to in other namespaces. There is no choice for Secrets: only what is granted is used. */
export interface CrossNamespaceRules {
  /** VirtualServerRoutes that a VirtualServer delegates to. */
  routes: CrossNamespace;
  /** Services of upstreams. */
  services: CrossNamespace;
}

/** ARCHITECTURE.md says why. */
export const DEFAULT_CROSS_NAMESPACE: Readonly<CrossNamespaceRules> = { routes: "all", services: "granted" };

/** Why a reference does not act. */
export type Refusal = Pick<Problem, "code" | "message">;

/** What depends on a reference: an upstream (by key), or a host with its rules or its certificate. */
export interface Dependent {
  kind: ReferredKind;
  item: string;
}

interface Used {
  reference: Reference;
  /** Items that depend on it, with how many times each. */
  items: Map<string, number>;
}

/**
 * References to other namespaces and the grants that allow them (Gateway API, ReferenceGrant: it stands in the namespace
 * of what is referred to; grants add up). A grant that comes or goes leads to what it makes different, and nothing else is
 * looked at. Nothing here tells whether the object that is referred to exists: that is for those to know who may refer to it.
 */
export class ReferenceIndex {
  readonly #rules: CrossNamespaceRules;
  readonly #grants = new Map<string, Set<string>>();
  /** By permit, how many grants give it. */
  readonly #permits = new Map<string, number>();
  readonly #used = new Map<string, Used>();
  /** From the permit for all objects of a kind to the references that it allows. */
  readonly #usedByAll = new Map<string, Set<string>>();

  constructor(rules: Partial<CrossNamespaceRules> = {}) {
    this.#rules = { ...DEFAULT_CROSS_NAMESPACE, ...rules };
  }

  /** `item` depends on the reference from now on. */
  use(reference: Reference, item: string): void {
    const permit = permitOf(reference);
    const used = this.#used.get(permit) ?? { reference, items: new Map<string, number>() };
    used.items.set(item, (used.items.get(item) ?? 0) + 1);
    this.#used.set(permit, used);
    const all = permitOfAll(reference);
    this.#usedByAll.set(all, (this.#usedByAll.get(all) ?? new Set()).add(permit));
  }

  /** Takes back one `use`. */
  release(reference: Reference, item: string): void {
    const permit = permitOf(reference);
    const used = this.#used.get(permit);
    const count = used?.items.get(item);
    if (used === undefined || count === undefined) return;
    if (count > 1) used.items.set(item, count - 1);
    else used.items.delete(item);
    if (used.items.size > 0) return;
    this.#used.delete(permit);
    const all = permitOfAll(reference);
    this.#usedByAll.get(all)?.delete(permit);
    if (this.#usedByAll.get(all)?.size === 0) this.#usedByAll.delete(all);
  }

  /** Takes in the grant `name` (`namespace/name`), or its end; answers what may be used now and was not, or the reverse. */
  setGrant(name: string, grant: ReferenceGrantFragment | undefined): Dependent[] {
    const before = this.#grants.get(name) ?? new Set<string>();
    const now = grant === undefined ? new Set<string>() : permitsOf(grant);
    const lost = [...before].filter((permit) => !now.has(permit));
    const gained = [...now].filter((permit) => !before.has(permit));
    const concerned = new Map<Used, boolean>();
    for (const permit of [...lost, ...gained]) {
      for (const used of this.#concernedBy(permit)) concerned.set(used, this.#allows(used.reference));
    }
    for (const permit of lost) this.#count(permit, -1);
    for (const permit of gained) this.#count(permit, 1);
    if (now.size > 0) this.#grants.set(name, now);
    else this.#grants.delete(name);
    const changed = [...concerned].filter(([{ reference }, allowed]) => this.#allows(reference) !== allowed);
    return changed.flatMap(([{ reference, items }]) =>
      [...items.keys()].map((item) => ({ kind: reference.to.kind, item })),
    );
  }

  /** Why the reference does not act; undefined if it does, or if it stays within its namespace. */
  refusal(reference: Reference | undefined): Refusal | undefined {
    if (reference === undefined || this.#allows(reference)) return undefined;
    const { from, to } = reference;
    const target = `${to.kind} ${to.namespace}/${to.name}`;
    const option = optionOf(to.kind);
    if (option !== undefined && this.#rules[option] === "off") {
      const message = `the ${target} is of another namespace, and --cross-namespace-${option} is off`;
      return { code: "REFERENCE_SWITCHED_OFF", message };
    }
    const fromText = `{group: ${groupOf(from.kind)}, kind: ${from.kind}, namespace: ${from.namespace}}`;
    const toText = `{group: ${groupOf(to.kind) || '""'}, kind: ${to.kind}, name: ${to.name}}`;
    const remedy = `a ReferenceGrant in the namespace ${to.namespace} has to grant it: from ${fromText}, to ${toText}`;
    return { code: "REFERENCE_NOT_GRANTED", message: `the ${target} is of another namespace; ${remedy}` };
  }

  #allows(reference: Reference): boolean {
    const option = optionOf(reference.to.kind);
    const rule = option === undefined ? "granted" : this.#rules[option];
    if (rule !== "granted") return rule === "all";
    return this.#permits.has(permitOf(reference)) || this.#permits.has(permitOfAll(reference));
  }

  *#concernedBy(permit: string): Generator<Used> {
    for (const one of this.#usedByAll.get(permit) ?? [permit]) {
      const used = this.#used.get(one);
      if (used !== undefined) yield used;
    }
  }

  #count(permit: string, change: 1 | -1): void {
    const count = (this.#permits.get(permit) ?? 0) + change;
    if (count > 0) this.#permits.set(permit, count);
    else this.#permits.delete(permit);
  }
}

/** The option that rules references to a kind; undefined for Secrets. */
function optionOf(kind: ReferredKind): keyof CrossNamespaceRules | undefined {
  if (kind === "VirtualServerRoute") return "routes";
  return kind === "Service" ? "services" : undefined;
}

/** What a grant allows, one text for each pair of its entries. No part can hold a separator: all are names. */
function permitsOf({ namespace, from, to }: ReferenceGrantFragment): Set<string> {
  return new Set(
    from.flatMap((source) => to.map((target) => permit(source, { ...target, namespace, name: target.name ?? ALL }))),
  );
}

/** No object can have this name. */
const ALL = "*";

interface Party {
  group: string;
  kind: string;
  namespace: string;
}

function permit(from: Party, to: Party & { name: string }): string {
  const source = `${from.group}/${from.kind}/${from.namespace}`;
  return `${source}>${to.group}/${to.kind}/${to.namespace}/${to.name}`;
}

function permitOf({ from, to }: Reference): string {
  return permit({ ...from, group: groupOf(from.kind) }, { ...to, group: groupOf(to.kind) });
}

function permitOfAll({ from, to }: Reference): string {
  return permitOf({ from, to: { ...to, name: ALL } });
}
