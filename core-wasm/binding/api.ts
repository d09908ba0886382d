/** The surface of the binding that the controller and the proxies use. Implemented by `Core` and `RouteTable`. */
import type { ChosenPeer, Decision, ExplainStep, RequestInput } from "./decision.js";
import type { RegexProblem } from "./errors.js";
import type { HostPattern, HostRules, PeerSetSource } from "./source.js";

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
  /** Decides a request. Never throws for a request; `random` is a number from [0, 2^32). */
  decide(request: RequestInput, random: number): Decision;
  /**
   * The peer to try after those that failed, as the upstream's peers are now: on a ring the next one clockwise from the
   * first choice, else the next in order. Each is met once; undefined if none is left.
   */
  nextPeer(upstreamKey: string, failed: readonly ChosenPeer[]): ChosenPeer | undefined;
  /** As decide, with every rule that was tried, in order. */
  explain(request: RequestInput, random: number): { decision: Decision; steps: ExplainStep[] };
}
