import type { Core } from "../../core-wasm/binding/core.js";
import type { ChosenPeer, Decision } from "../../core-wasm/binding/decision.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { BalanceMethod, Peer, PeerSetSource, PeerState } from "../../core-wasm/binding/source.js";
import { hostRules, prefix, type RequestParts, request, route } from "../support/rules.js";

const KEY = "VirtualServer/default/shop/tea";

export type Proxied = Extract<Decision, { action: "proxy" }>;
export type PeerPart = Partial<Peer> & { name: number };

/** One upstream with a route to it. Peers are called by a number, the last of their address: 10.0.0.1 is peer 1. */
export class TestUpstream {
  readonly table: RouteTable;
  now = 1_000_000;
  #set: PeerSetSource;

  constructor(core: Core, method: BalanceMethod, peers: readonly PeerPart[], rest: Partial<PeerSetSource> = {}) {
    this.table = new RouteTable(core);
    this.table.setHost(hostRules([route(prefix("/"), { kind: "proxy", upstream: KEY })]));
    this.#set = { key: KEY, display: "default/tea:80", method, peers: peers.map(peerOf), ...rest };
    this.table.setPeers(this.#set);
  }

  get key(): string {
    return KEY;
  }

  /** Another set in place of the one that is there. */
  change(change: Partial<Omit<PeerSetSource, "peers">> & { peers?: readonly PeerPart[] }): void {
    const { peers, ...rest } = change;
    this.#set = { ...this.#set, ...rest, ...(peers ? { peers: peers.map(peerOf) } : {}) };
    this.table.setPeers(this.#set);
  }

  decide(random = 0, parts: RequestParts = {}): Decision {
    return this.table.decide(request("/", parts), random, this.now);
  }

  /** A decision that has to be one to proxy. */
  proxy(random = 0, parts: RequestParts = {}): Proxied {
    const decision = this.decide(random, parts);
    if (decision.action !== "proxy") throw new Error(`answered ${JSON.stringify(decision)}`);
    return decision;
  }

  /** The number of the peer that a request gets, which is over at once. */
  once(random = 0, parts: RequestParts = {}): number {
    const { peer } = this.proxy(random, parts);
    this.done(peer);
    return nameOf(peer);
  }

  done(peer: ChosenPeer, failed = false): void {
    this.table.peerDone(peer, failed, this.now);
  }

  /** A request that peer `name` fails, whichever way it comes to it. */
  fail(name: number): void {
    const tried: ChosenPeer[] = [];
    for (;;) {
      const peer = this.table.pickPeer(KEY, { tried }, 0, this.now);
      if (typeof peer !== "object") throw new Error(`peer ${name} can't be had`);
      this.done(peer, nameOf(peer) === name);
      if (nameOf(peer) === name) return;
      tried.push(peer);
    }
  }

  state(name: number, state: PeerState): void {
    this.table.setPeerState(KEY, peerOf({ name }), state, this.now);
  }

  /** Peers by retries: each that has not been tried, until there is none. The last is what came instead of a peer. */
  retries(first: ChosenPeer[] = [], hash?: number): (number | "busy" | "none")[] {
    const tried = [...first];
    const met: (number | "busy" | "none")[] = [];
    for (;;) {
      const peer = this.table.pickPeer(KEY, { hash, tried }, 0, this.now);
      if (typeof peer !== "object") return [...met, peer ?? "none"];
      met.push(nameOf(peer));
      this.done(peer);
      tried.push(peer);
    }
  }
}

function peerOf({ name, ...rest }: PeerPart): Peer {
  return { address: `10.0.${name >> 8}.${name & 255}`, port: 80, weight: 1, ...rest };
}

/** The number of a peer. */
export function nameOf({ address }: { address: string }): number {
  const [, , high, low] = address.split(".").map(Number);
  return high * 256 + low;
}

/** How often each value occurs. */
export function tally<T>(values: Iterable<T>): Map<T, number> {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/**
 * Pearson's chi-square of counts against expected ones, as the number of standard deviations that it is above its mean: for
 * many degrees of freedom about normal (Wilson and Hilferty), so that 4 is passed by chance once in 30,000.
 */
export function chiSquareDeviation(counts: readonly number[], expected: readonly number[]): number {
  const chi = counts.reduce((sum, count, i) => sum + (count - expected[i]) ** 2 / expected[i], 0);
  const freedom = counts.length - 1;
  const spread = 2 / (9 * freedom);
  return ((chi / freedom) ** (1 / 3) - (1 - spread)) / Math.sqrt(spread);
}
