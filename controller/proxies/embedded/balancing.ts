import type { RoutingTable } from "../../../core-wasm/binding/api.js";
import type { ChosenPeer, Decision, RequestInput } from "../../../core-wasm/binding/decision.js";
import type { PeerQueues } from "./peer-queues.js";

export interface BalancingParts {
  table: RoutingTable;
  queues: PeerQueues;
  /** A number from [0, 2^32). */
  random(): number;
  /** Milliseconds of any origin, never going back. */
  clock(): number;
}

/** The routing table as requests use it: one clock for every call, and whoever waits hears of each place that is free. */
export class Balancing {
  constructor(private readonly parts: BalancingParts) {}

  /** `random` decides splits; of one request it is always the same. */
  decide(request: RequestInput, random: number): Decision {
    return this.parts.table.decide(request, random, this.parts.clock());
  }

  /** A peer of the upstream for one more try; undefined if none is left, or all are busy. */
  pick(upstream: string, hash: number | undefined, tried: readonly ChosenPeer[]): ChosenPeer | undefined {
    const { table, random, clock } = this.parts;
    const peer = table.pickPeer(upstream, hash === undefined ? { tried } : { hash, tried }, random(), clock());
    return peer === "busy" ? undefined : peer;
  }

  /** The try with a peer is over; once for each. `failed` counts against the peer. */
  done(upstream: string, peer: ChosenPeer, failed: boolean): void {
    this.parts.table.peerDone(peer, failed, this.parts.clock());
    this.parts.queues.placeFree(upstream);
  }
}
