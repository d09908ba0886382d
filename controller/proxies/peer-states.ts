import type { PeerStateChange } from "./proxy.js";

/** The states of peers that active checks have found out, kept for when the peers of their upstream are set again. */
export class PeerStates {
  /** By upstream key, then by `address port`. */
  private readonly upstreams = new Map<string, Map<string, PeerStateChange>>();

  /** Takes a state in; `unchecked` is nothing to keep. True if it is another one than before. */
  set(change: PeerStateChange): boolean {
    const { upstream, address, port, state } = change;
    const peers = this.upstreams.get(upstream) ?? new Map<string, PeerStateChange>();
    const name = `${address} ${port}`;
    const before = peers.get(name)?.state ?? "unchecked";
    if (state === "unchecked") peers.delete(name);
    else peers.set(name, change);
    if (peers.size === 0) this.upstreams.delete(upstream);
    else this.upstreams.set(upstream, peers);
    return state !== before;
  }

  /** What is known of the peers of an upstream. */
  of(upstream: string): PeerStateChange[] {
    return [...(this.upstreams.get(upstream)?.values() ?? [])];
  }

  /** The upstream is gone, and what was known of its peers with it. */
  forget(upstream: string): void {
    this.upstreams.delete(upstream);
  }
}
