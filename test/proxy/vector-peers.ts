import type { RoutingTable } from "../../core-wasm/binding/api.js";
import type { ChosenPeer, Decision, ExplainStep, PeerStatus, RequestInput } from "../../core-wasm/binding/decision.js";
import type { HostPattern, HostRules, PeerSetSource, PeerState } from "../../core-wasm/binding/source.js";
import { httpPeer, type Peer } from "../support/peers.js";

/** What a stand-in peer answers: whom it stands for, and what reached it. */
export interface PeerAnswer {
  peer: string;
  method: string;
  target: string;
}

interface Place {
  address: string;
  port: number;
}

/** `ip:port`, with brackets around IPv6. */
export function peerName({ address, port }: Place): string {
  return `${address.includes(":") ? `[${address}]` : address}:${port}`;
}

/**
 * Servers on loopback that stand for peers whose addresses do not exist here. Each says in its answer which peer it
 * stands for.
 */
export class StandIns {
  readonly #servers = new Map<string, Peer>();
  readonly #places = new Map<number, Place>();

  /** Opens a server for each peer that has none yet. */
  async open(peers: Iterable<Place>): Promise<void> {
    for (const place of peers) {
      const name = peerName(place);
      if (this.#servers.has(name)) continue;
      const server = await httpPeer((request, response) => {
        const answer: PeerAnswer = { peer: name, method: request.method ?? "", target: request.url ?? "" };
        request.resume();
        response.end(JSON.stringify(answer));
      });
      this.#servers.set(name, server);
      this.#places.set(server.port, place);
    }
  }

  /** Where the server of a peer is. */
  toLoopback<T extends Place>(peer: T): T {
    const server = this.#servers.get(peerName(peer));
    if (!server) throw new Error(`nobody stands for ${peerName(peer)}`);
    return { ...peer, address: "127.0.0.1", port: server.port };
  }

  /** `ip:port` of each peer, and of the server that stands for it. */
  places(): Record<string, string> {
    return Object.fromEntries([...this.#servers].map(([name, { port }]) => [name, `127.0.0.1:${port}`]));
  }

  /** The peer that a server stands for. */
  toPeer<T extends Place>(loopback: T): T {
    const place = this.#places.get(loopback.port);
    if (!place) throw new Error(`no peer is at port ${loopback.port}`);
    return { ...loopback, ...place };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close()));
  }
}

/**
 * A routing table that shows a proxy the stand-ins where the table below has the real peers. Rings are built from the
 * real addresses, so that every choice is the one that the real peers would get.
 */
export class StandInTable implements RoutingTable {
  constructor(
    private readonly table: RoutingTable,
    private readonly standIns: StandIns,
  ) {}

  setHost(rules: HostRules): void {
    this.table.setHost(rules);
  }

  removeHost(pattern: HostPattern): void {
    this.table.removeHost(pattern);
  }

  setPeers(set: PeerSetSource): void {
    this.table.setPeers({ ...set, peers: set.peers.map((peer) => this.standIns.toPeer(peer)) });
  }

  removePeers(key: string): void {
    this.table.removePeers(key);
  }

  decide(request: RequestInput, random: number, now: number): Decision {
    return this.#shown(this.table.decide(request, random, now));
  }

  pickPeer(
    upstreamKey: string,
    request: { hash?: number; tried: readonly ChosenPeer[] },
    random: number,
    now: number,
  ): ChosenPeer | "busy" | undefined {
    const next = this.table.pickPeer(upstreamKey, request, random, now);
    return typeof next === "object" ? this.standIns.toLoopback(next) : next;
  }

  peerDone(peer: ChosenPeer, failed: boolean, now: number): void {
    this.table.peerDone(peer, failed, now);
  }

  setPeerState(upstreamKey: string, peer: { address: string; port: number }, state: PeerState, now: number): void {
    this.table.setPeerState(upstreamKey, this.standIns.toPeer(peer), state, now);
  }

  peersOf(upstreamKey: string): PeerStatus[] {
    return this.table.peersOf(upstreamKey).map((peer) => this.standIns.toLoopback(peer));
  }

  explain(request: RequestInput, random: number, now: number): { decision: Decision; steps: ExplainStep[] } {
    const { decision, steps } = this.table.explain(request, random, now);
    return { decision: this.#shown(decision), steps };
  }

  #shown(decision: Decision): Decision {
    if (decision.action !== "proxy") return decision;
    return { ...decision, peer: this.standIns.toLoopback(decision.peer) };
  }
}
