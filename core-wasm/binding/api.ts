/** The surface of the binding that the controller and the proxies use. Implemented by `Core` and `RouteTable`. */
import type { ChosenPeer, Decision, ExplainStep, PeerStatus, RequestInput } from "./decision.js";
import type { RegexProblem } from "./errors.js";
import type { HostPattern, HostRules, PeerSetSource, PeerState } from "./source.js";

/** Checks patterns without building anything that stays. Pure. */
export interface PatternChecker {
  /** Undefined if the pattern compiles. `groups` is the number of capturing groups. */
  checkRegex(pattern: string, ignoreCase: boolean): { groups: number } | { problem: RegexProblem };
}

/** The routing state of one process or worker: shards and peer sets, each replaced by itself. */
export interface RoutingTable {
  /** Compiles and puts in place the rules of one host pattern, instead of those that stood there. Throws CoreError. */
  setHost(rules: HostRules): void;
  /** Takes a pattern out. Unknown patterns are ignored. */
  removeHost(pattern: HostPattern): void;
  /** Puts in place the peers of an upstream. Routes may name an upstream before or after it is set. Throws CoreError. */
  setPeers(set: PeerSetSource): void;
  removePeers(key: string): void;
  /**
   * Decides a request. Never throws for a request; `random` is a number from [0, 2^32), `now` a time in milliseconds of any
   * origin, the same for every call of a table. Without `now` the time stands still.
   */
  decide(request: RequestInput, random: number, now?: number): Decision;
  /**
   * A peer of the upstream as its peers are now, none of `tried`: for a retry, or for a request that waited because all
   * were busy. `hash` is that of the decision. "busy" as in `Decision`; undefined if no peer is left.
   */
  pickPeer(
    upstreamKey: string,
    request: { hash?: number; tried: readonly ChosenPeer[] },
    random: number,
    now: number,
  ): ChosenPeer | "busy" | undefined;
  /**
   * The attempt with a peer that `decide` or `pickPeer` gave is over; to be called once for each. `failed` counts towards
   * `maxFails`. Does nothing for a peer that has left its upstream since.
   */
  peerDone(peer: ChosenPeer, failed: boolean, now: number): void;
  /** What an active check has found out. Unknown upstreams and peers are ignored. */
  setPeerState(
    upstreamKey: string,
    peer: { readonly address: string; readonly port: number },
    state: PeerState,
    now: number,
  ): void;
  /** The peers of an upstream in canonical order, as this table sees them; none for an unknown upstream. */
  peersOf(upstreamKey: string): PeerStatus[];
  /** As decide, with every rule that was tried, in order. Takes no place at the peer. */
  explain(request: RequestInput, random: number, now?: number): { decision: Decision; steps: ExplainStep[] };
}
