import type { RoutingTable } from "../../core-wasm/binding/api.js";
import type { Decision, FilledHeaderChange, RequestInput } from "../../core-wasm/binding/decision.js";
import {
  type Action,
  type HostPattern,
  type HostRules,
  type PeerSetSource,
  patternText,
  type Template,
} from "../../core-wasm/binding/source.js";

/**
 * The routing table that proxy tests run on. For as long as the core is not part of this tree it is a table of literal
 * prefixes, enough to drive a proxy; tests use it through the interface only.
 */
export function makeRoutingTable(): RoutingTable {
  return new PrefixTable();
}

class PrefixTable implements RoutingTable {
  private readonly hosts = new Map<string, HostRules>();
  private readonly peers = new Map<string, PeerSetSource>();
  private cursor = 0;

  setHost(rules: HostRules): void {
    this.hosts.set(patternText(rules.pattern), rules);
  }

  removeHost(pattern: HostPattern): void {
    this.hosts.delete(patternText(pattern));
  }

  setPeers(set: PeerSetSource): void {
    this.peers.set(set.key, set);
  }

  removePeers(key: string): void {
    this.peers.delete(key);
  }

  decide(request: RequestInput): Decision {
    const host = request.host.toLowerCase().replace(/:\d*$/, "");
    const rules = this.hosts.get(host) ?? this.hosts.get("");
    const path = request.target.split("?")[0];
    let best: { path: string; action: Action } | undefined;
    for (const route of rules?.routes ?? []) {
      if (!("path" in route.path) || !path.startsWith(route.path.path)) continue;
      if (route.outcome === undefined || route.outcome.kind === "split") continue;
      if (best === undefined || route.path.path.length > best.path.length) {
        best = { path: route.path.path, action: route.outcome };
      }
    }
    if (best === undefined) return { action: "return", status: 404, headers: [] };
    const origin = { resource: rules?.routes[0].resource ?? "", host, path: best.path };
    const { action } = best;
    const headers = fill(action.headers ?? []);
    if (action.kind === "redirect") {
      return { action: "redirect", status: action.status, location: literal(action.location), headers, origin };
    }
    if (action.kind === "return") {
      const { status, contentType } = action;
      return { action: "return", status, body: literal(action.body), contentType, headers, origin };
    }
    const set = this.peers.get(action.upstream);
    if (set === undefined || set.peers.length === 0) {
      return { action: "return", status: 503, upstream: set?.display ?? action.upstream, headers: [], origin };
    }
    const index = this.cursor++ % set.peers.length;
    return {
      action: "proxy",
      upstreamKey: set.key,
      upstream: set.display,
      peer: { address: set.peers[index].address, port: set.peers[index].port, index },
      target: request.target,
      headers,
      origin,
    };
  }

  nextPeer(upstreamKey: string, failed: readonly number[]) {
    const peers = this.peers.get(upstreamKey)?.peers ?? [];
    const index = peers.findIndex((_, at) => !failed.includes(at));
    return index < 0 ? undefined : { address: peers[index].address, port: peers[index].port, index };
  }

  explain(request: RequestInput) {
    return { decision: this.decide(request), steps: [] };
  }
}

function literal(template: Template): string {
  return template.map((part) => (typeof part === "string" ? part : "")).join("");
}

function fill(changes: NonNullable<Action["headers"]>): FilledHeaderChange[] {
  return changes.map((change) =>
    change.op === "set-request" || change.op === "add-response" ? { ...change, value: literal(change.value) } : change,
  );
}
