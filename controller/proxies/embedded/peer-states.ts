import type { PeerStateChange } from "../proxy.js";

/** The states of peers that active checks have found out, kept for when their upstream is set. */
export class PeerStates {
  /** By upstream key, then by `address port`. */
  private readonly upstreams = new Map<string, Map<string, PeerStateChange>>();

  /** Takes a state in; `unchecked` is nothing to keep. */
  set(change: PeerStateChange): void {
    const { upstream, address, port, state } = change;
    const peers = this.upstreams.get(upstream) ?? new Map<string, PeerStateChange>();
    const name = `${address} ${port}`;
    if (state === "unchecked") peers.delete(name);
    else peers.set(name, change);
    if (peers.size === 0) this.upstreams.delete(upstream);
    else this.upstreams.set(upstream, peers);
  }

  /** What is known of the peers of an upstream. */
  of(upstream: string): PeerStateChange[] {
    return [...(this.upstreams.get(upstream)?.values() ?? [])];
  }
}
