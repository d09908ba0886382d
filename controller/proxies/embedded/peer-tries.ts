import type { ChosenPeer, Decision } from "../../../core-wasm/binding/decision.js";
import type { Balancing } from "./balancing.js";

type ProxyDecision = Extract<Decision, { action: "proxy" }>;

/**
 * The peers that one request is given to, one after another. The core holds a place for the one at hand; it is given back
 * exactly once, however the try ends.
 */
export class PeerTries {
  private current: ChosenPeer;
  private held = true;
  private readonly before: ChosenPeer[] = [];

  constructor(
    private readonly balancing: Balancing,
    private readonly decision: ProxyDecision,
  ) {
    this.current = decision.peer;
  }

  get peer(): ChosenPeer {
    return this.current;
  }

  /** True if the peer at hand is not the one of the decision. */
  get moved(): boolean {
    return this.before.length > 0;
  }

  /** The try at hand is over. Does nothing where that was said before. */
  done(failed: boolean): void {
    if (!this.held) return;
    this.held = false;
    this.balancing.done(this.decision.upstreamKey, this.current, failed);
  }

  /**
   * Takes another peer in the place of this one, which has failed. False if there is none that was not tried; the try
   * at hand is not over then.
   */
  next(): boolean {
    const tried = [...this.before, this.current];
    const peer = this.balancing.pick(this.decision.upstreamKey, this.decision.hash, tried);
    if (peer === undefined) return false;
    this.done(true);
    this.before.push(this.current);
    this.current = peer;
    this.held = true;
    return true;
  }
}
