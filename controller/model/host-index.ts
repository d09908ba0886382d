import { type HostRules, patternText } from "../../core-wasm/binding/source.js";
import type { IngressFragment, VirtualServerFragment } from "../resources/fragments.js";
import { refText } from "../resources/object-ref.js";
import { quote } from "../resources/problem.js";
import { AgeOrdered, compareAge, compareText } from "./age.js";
import { digest } from "./digest.js";
import { HostResult } from "./host-result.js";
import { buildIngressHost, defaultBackendOf, sortRoutes } from "./ingress-host.js";
import { buildVirtualServerHost, type DelegationTargets } from "./virtual-server-host.js";

/** Objects that claim hosts. */
export type Claimant = IngressFragment | VirtualServerFragment;

/** One object in another version, to ask what would be: the index itself does not change. */
export interface Exchange {
  /** What the index holds of the object. */
  before: Claimant | undefined;
  after: Claimant | undefined;
  targets: DelegationTargets;
}

/** What a rebuild changed. */
export interface HostChanges {
  /** By pattern text; undefined where a pattern is gone. */
  rules: Map<string, HostRules | undefined>;
  /** Hosts that were built again, as objects write them. */
  rebuilt: string[];
  referenced: Set<string>[];
  released: Set<string>[];
}

/** Place of the Ingress that has nothing but a default backend; no host can have this name. */
const LAST_RESORT = "(default)";
/** Place of rules without a host. */
const ANY_HOST = "";

/**
 * Who claims which host, and the rules that follow. The oldest claimant decides: a VirtualServer has its host alone,
 * Ingress objects share one. `*.x` of an Ingress and of a VirtualServer is one host. Only touched hosts are built again.
 */
export class HostIndex {
  /** How many hosts were built so far. */
  rebuilt = 0;
  readonly #claims = new Map<string, AgeOrdered<Claimant>>();
  /** Ingress objects with rules and a default backend: the oldest takes the requests for unknown hosts. */
  readonly #withDefault = new AgeOrdered<IngressFragment>();
  readonly #built = new Map<string, { result: HostResult; pattern: string; digest: string }>();
  readonly #dirty = new Set<string>();
  readonly #targets: DelegationTargets;

  constructor(targets: DelegationTargets) {
    this.#targets = targets;
  }

  add(fragment: Claimant): void {
    for (const host of claimedHosts(fragment)) {
      const claims = this.#claims.get(host) ?? new AgeOrdered<Claimant>();
      this.#claims.set(host, claims);
      claims.add(fragment);
      this.touch(host);
    }
    if (hasRulesAndDefault(fragment)) {
      this.#withDefault.add(fragment);
      if (this.#withDefault.oldest === fragment) this.touch(ANY_HOST);
    }
  }

  remove(fragment: Claimant): void {
    for (const host of claimedHosts(fragment)) {
      const claims = this.#claims.get(host);
      claims?.remove(fragment.meta);
      if (claims?.size === 0) this.#claims.delete(host);
      this.touch(host);
    }
    if (hasRulesAndDefault(fragment)) {
      if (this.#withDefault.oldest === fragment) this.touch(ANY_HOST);
      this.#withDefault.remove(fragment.meta);
    }
  }

  /** Marks a host to be built again. */
  touch(host: string): void {
    this.#dirty.add(host);
    // Whether unknown hosts end at an Ingress with rules depends on whether a default-only Ingress exists.
    if (host === LAST_RESORT) this.#dirty.add(ANY_HOST);
  }

  /** The VirtualServer that has the host alone, as `Kind/namespace/name`. */
  exclusiveOwner(host: string): string | undefined {
    const oldest = this.#claims.get(host)?.oldest;
    return oldest?.kind === "VirtualServer" ? refText(oldest.meta.ref) : undefined;
  }

  /** The result that the host would have after the exchange; the order of its routes is left open. */
  resultAfter(host: string, exchange: Exchange): HostResult {
    return this.#build(host, exchange);
  }

  /** As exclusiveOwner, after the exchange. */
  exclusiveOwnerAfter(host: string, exchange: Exchange): string | undefined {
    const oldest = this.#claimsOf(host, exchange)?.oldest;
    return oldest?.kind === "VirtualServer" ? refText(oldest.meta.ref) : undefined;
  }

  /** Whether unknown hosts would go to the default backend of the object that is exchanged. */
  isFallbackAfter({ before, after }: Exchange): boolean {
    if (after === undefined || !hasRulesAndDefault(after)) return false;
    return this.#oldestWithDefault({ before, after }) === after;
  }

  /** Builds what was touched. Objects whose problems may differ go to `touched`. */
  rebuild(touched: Set<string>): HostChanges {
    const changes: HostChanges = { rules: new Map(), rebuilt: [], referenced: [], released: [] };
    for (const host of [...this.#dirty].sort(compareText)) this.#rebuildHost(host, changes, touched);
    this.#dirty.clear();
    return changes;
  }

  /** All rules in force, by pattern text. */
  all(): Map<string, HostRules> {
    const rules = new Map<string, HostRules>();
    for (const { result, pattern } of this.#built.values()) {
      if (result.rules !== undefined) rules.set(pattern, result.rules);
    }
    return rules;
  }

  /** Result for a host that is claimed. */
  resultOf(host: string): HostResult | undefined {
    return this.#built.get(host)?.result;
  }

  #rebuildHost(host: string, changes: HostChanges, touched: Set<string>): void {
    const before = this.#built.get(host);
    const result = this.#build(host);
    this.rebuilt += 1;
    changes.rebuilt.push(host);
    for (const object of [...(before?.result.participants ?? []), ...(before?.result.findings.keys() ?? [])]) {
      touched.add(object);
    }
    for (const object of [...result.participants, ...result.findings.keys()]) touched.add(object);
    changes.referenced.push(result.upstreamKeys());
    if (before !== undefined) changes.released.push(before.result.upstreamKeys());
    if (result.rules === undefined) {
      if (before !== undefined && before.result.rules !== undefined) changes.rules.set(before.pattern, undefined);
      this.#built.delete(host);
      return;
    }
    const pattern = patternText(result.rules.pattern);
    const now = digest(result.rules);
    if (before !== undefined && before.pattern !== pattern) changes.rules.set(before.pattern, undefined);
    if (before?.digest !== now) changes.rules.set(pattern, result.rules);
    this.#built.set(host, { result, pattern, digest: now });
  }

  #build(host: string, exchange?: Exchange): HostResult {
    const result = new HostResult();
    const claims = this.#claimsOf(host, exchange);
    const oldest = claims?.oldest;
    if (oldest?.kind === "VirtualServer") {
      buildVirtualServerHost(oldest, exchange?.targets ?? this.#targets, result);
      rejectAll([...(claims ?? [])].slice(1), oldest, host, result);
      return result;
    }
    const ingresses: IngressFragment[] = [];
    const servers: VirtualServerFragment[] = [];
    for (const claimant of claims ?? []) {
      if (claimant.kind === "Ingress") ingresses.push(claimant);
      else servers.push(claimant);
    }
    if (host === LAST_RESORT) {
      buildLastResort(ingresses, result);
      return result;
    }
    const takesUnknown = host === ANY_HOST && this.#claimsOf(LAST_RESORT, exchange) === undefined;
    const fallback = takesUnknown ? this.#oldestWithDefault(exchange) : undefined;
    if (ingresses.length > 0 || fallback !== undefined) {
      buildIngressHost(host, ingresses, fallback && defaultBackendOf(fallback), result);
      // Most of the work at a host that many share, and of no concern to who only asks what would be.
      if (exchange === undefined && result.rules !== undefined) sortRoutes(result.rules.routes);
    }
    if (oldest !== undefined) rejectAll(servers, oldest, host, result);
    return result;
  }

  /** Undefined where nobody claims the host. */
  #claimsOf(host: string, exchange: Exchange | undefined): AgeOrdered<Claimant> | undefined {
    const claims = this.#claims.get(host);
    if (exchange === undefined) return claims;
    const { before, after } = exchange;
    const changed = claims?.copy() ?? new AgeOrdered<Claimant>();
    if (before !== undefined) changed.remove(before.meta);
    if (after !== undefined && claimedHosts(after).has(host)) changed.add(after);
    return changed.size === 0 ? undefined : changed;
  }

  #oldestWithDefault(exchange: Pick<Exchange, "before" | "after"> | undefined): IngressFragment | undefined {
    if (exchange === undefined) return this.#withDefault.oldest;
    const { before, after } = exchange;
    let oldest: IngressFragment | undefined;
    for (const candidate of this.#withDefault) {
      if (candidate === before) continue;
      oldest = candidate;
      break;
    }
    if (after === undefined || !hasRulesAndDefault(after)) return oldest;
    return oldest === undefined || compareAge(after.meta, oldest.meta) < 0 ? after : oldest;
  }
}

function buildLastResort(ingresses: readonly IngressFragment[], result: HostResult): void {
  const [winner, ...losers] = ingresses;
  if (winner === undefined) return;
  const unmatched = defaultBackendOf(winner);
  result.participants.add(refText(winner.meta.ref));
  result.rules = { pattern: { kind: "default" }, guards: [], routes: [], ...(unmatched && { unmatched }) };
  for (const loser of losers) {
    const message = `${refText(winner.meta.ref)} is older and is the default backend`;
    result.reject(loser.meta, { path: "spec.defaultBackend", code: "DEFAULT_TAKEN", message });
  }
}

function rejectAll(losers: readonly Claimant[], winner: Claimant, host: string, result: HostResult): void {
  for (const loser of losers) {
    const message = `${refText(winner.meta.ref)} is older and has the host ${quote(host)}`;
    result.reject(loser.meta, { path: hostPath(loser, host), code: "HOST_TAKEN", message });
  }
}

function hostPath(fragment: Claimant, host: string): string {
  if (fragment.kind === "VirtualServer") return "spec.host";
  return `${fragment.rules.find((rule) => rule.host === host)?.path ?? "spec"}.host`;
}

/** The places that an object claims. */
export function claimedHosts(fragment: Claimant): Set<string> {
  if (fragment.kind === "VirtualServer") return new Set([fragment.host]);
  if (fragment.rules.length === 0) return new Set([LAST_RESORT]);
  return new Set(fragment.rules.map((rule) => rule.host));
}

function hasRulesAndDefault(fragment: Claimant): fragment is IngressFragment {
  return fragment.kind === "Ingress" && fragment.rules.length > 0 && fragment.defaultBackend !== undefined;
}
