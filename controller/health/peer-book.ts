import type { HealthState } from "../../core-wasm/binding/health-tracker.js";
import { type CheckedPeer, type CheckedUpstream, peerName, sameCheck } from "./checked-upstream.js";
import type { Command, PeerReport } from "./messages.js";

/** A peer whose state is another one now. */
export interface StateChange {
  upstream: string;
  address: string;
  port: number;
  from: HealthState;
  to: HealthState;
  /** What the last probe saw; empty where no probe is the reason. */
  reason: string;
}

interface BookPeer {
  address: string;
  port: number;
  draining: boolean;
  state: HealthState;
  /** The command that made it known to the process: what was reported before is about an older one of this name. */
  since: number;
}

interface BookUpstream {
  check: CheckedUpstream["check"];
  slowStart: number;
  peers: Map<string, BookPeer>;
}

/**
 * What is to be probed, and the last states, as the controller knows them. Pure. It says what a probe process must be told
 * when something changes: only that.
 */
export class PeerBook {
  readonly #upstreams = new Map<string, BookUpstream>();
  /** States from a process that was there before us, of peers that we have not been told of yet. */
  readonly #inherited = new Map<string, HealthState>();
  /** Commands to the process of now; undefined while there is none that has been told everything. */
  #sent: number | undefined;
  /** Peers in each state, kept up to date by the peers that change. */
  readonly #counts: Record<HealthState, number> = { unchecked: 0, up: 0, down: 0, draining: 0, "slow-start": 0 };

  get size(): number {
    return this.#upstreams.size;
  }

  /** Number of peers in each state. */
  counts(): Record<HealthState, number> {
    return { ...this.#counts };
  }

  /**
   * An upstream is another one now; undefined: it is gone, or is not checked any more. Gives the command for the process,
   * if there is anything to say, and the states that are different by that: of peers that are gone, which leave as
   * unchecked so that nobody remembers them, and of new ones that are known already.
   */
  update(key: string, upstream: CheckedUpstream | undefined): { command?: Command; changes: StateChange[] } {
    const known = this.#upstreams.get(key);
    const changes: StateChange[] = [];
    if (upstream === undefined) {
      if (known === undefined) return { changes };
      for (const peer of known.peers.values()) this.#forget(key, peer, changes);
      this.#upstreams.delete(key);
      return { command: this.#numbered({ type: "remove", key }), changes };
    }
    const entry: BookUpstream = known ?? { check: upstream.check, slowStart: upstream.slowStart, peers: new Map() };
    const whole =
      known === undefined || !sameCheck(entry.check, upstream.check) || entry.slowStart !== upstream.slowStart;
    entry.check = upstream.check;
    entry.slowStart = upstream.slowStart;
    this.#upstreams.set(key, entry);
    const { touched, gone } = this.#takePeers(key, entry, upstream.peers, changes);
    if (whole) return { command: this.#numbered({ type: "set", upstream: checked(key, entry) }), changes };
    if (touched.length === 0 && gone.length === 0) return { changes };
    return { command: this.#numbered({ type: "peers", key, peers: touched, gone }), changes };
  }

  /** All that a process which knows nothing, or something older, is told; the last states are its starting point. */
  everything(): Command[] {
    this.#inherited.clear();
    const commands: Command[] = [...this.#upstreams].map(([key, entry]) => ({
      type: "set",
      upstream: checked(key, entry),
    }));
    commands.push({ type: "synced" });
    this.#sent = commands.length;
    return commands;
  }

  /** The process is gone: what the next one says, from its first word on, is about the peers of now. */
  lost(): void {
    this.#sent = undefined;
    for (const { peers } of this.#upstreams.values()) for (const peer of peers.values()) peer.since = 0;
  }

  /** Takes in what a process reports as of `at` commands. Peers that are not in the book are kept in mind if `inherit`. */
  learn(reports: readonly PeerReport[], at: number, inherit: boolean): StateChange[] {
    const changes: StateChange[] = [];
    for (const { upstream, address, port, state, reason } of reports) {
      const peer = this.#upstreams.get(upstream)?.peers.get(peerName({ address, port }));
      if (peer === undefined) {
        if (inherit) this.#inherited.set(`${upstream} ${peerName({ address, port })}`, state);
        continue;
      }
      if (at < peer.since || peer.state === state) continue;
      changes.push({ upstream, address, port, from: peer.state, to: state, reason });
      this.#counts[peer.state]--;
      this.#counts[state]++;
      peer.state = state;
    }
    return changes;
  }

  #numbered(command: Command): Command {
    if (this.#sent !== undefined) this.#sent++;
    return command;
  }

  #takePeers(key: string, entry: BookUpstream, peers: readonly CheckedPeer[], changes: StateChange[]) {
    const touched: CheckedPeer[] = [];
    const named = new Set<string>();
    for (const { address, port, draining } of peers) {
      const name = peerName({ address, port });
      named.add(name);
      const known = entry.peers.get(name);
      if (known?.draining === draining) continue;
      const state = known?.state ?? this.#inherited.get(`${key} ${name}`) ?? "unchecked";
      if (known === undefined && state !== "unchecked") {
        changes.push({ upstream: key, address, port, from: "unchecked", to: state, reason: "" });
      }
      // The command that is about to be made.
      const since = known?.since ?? (this.#sent === undefined ? 0 : this.#sent + 1);
      entry.peers.set(name, { address, port, draining, state, since });
      if (known === undefined) this.#counts[state]++;
      touched.push({ address, port, draining, state });
    }
    const gone: { address: string; port: number }[] = [];
    for (const [name, peer] of entry.peers) {
      if (named.has(name)) continue;
      entry.peers.delete(name);
      gone.push({ address: peer.address, port: peer.port });
      this.#forget(key, peer, changes);
    }
    return { touched, gone };
  }

  #forget(upstream: string, { address, port, state }: BookPeer, changes: StateChange[]): void {
    this.#counts[state]--;
    if (state !== "unchecked") changes.push({ upstream, address, port, from: state, to: "unchecked", reason: "" });
  }
}

function checked(key: string, { check, slowStart, peers }: BookUpstream): CheckedUpstream {
  const list = [...peers.values()].map(({ address, port, draining, state }) => ({ address, port, draining, state }));
  return { key, check, slowStart, peers: list };
}
