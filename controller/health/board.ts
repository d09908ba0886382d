import { HEALTH_STATES, type HealthState, type HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import type { HealthCheck } from "../model/types.js";
import { type CheckedPeer, type CheckedUpstream, peerName, sameCheck } from "./checked-upstream.js";
import { Schedule } from "./schedule.js";
import { newTarget, type Outcome, phaseOf, type Target, targetKey } from "./target.js";

/** A peer of an upstream, with the state that it is in now and why. */
export interface PeerHealth {
  upstream: string;
  address: string;
  port: number;
  state: HealthState;
  reason: string;
}

interface Peer extends PeerHealth {
  slot: number;
  target: Target;
}

interface BoardUpstream {
  check: HealthCheck;
  slowStart: number;
  peers: Map<string, Peer>;
}

export interface BoardParts {
  tracker: HealthTracker;
  /** A number from [0, 1), for jitter. */
  random: () => number;
  /** A target that nobody needs any more while its probe is under way. */
  onDropped: (target: Target) => void;
}

/**
 * What is to be probed and when, and what came of it, for all upstreams. Pure: it does no I/O, and every `now` is handed
 * in (milliseconds of a clock that only goes forward).
 */
export class HealthBoard {
  readonly #upstreams = new Map<string, BoardUpstream>();
  readonly #targets = new Map<string, Target>();
  readonly #bySlot: (Peer | undefined)[] = [];
  readonly #schedule = new Schedule();
  readonly #parts: BoardParts;
  /** Words for the tracker, of the probes that ended since the last flush. */
  #results: number[] = [];
  /** Peers whose state is not what it was at the last flush. */
  readonly #changed = new Set<Peer>();

  constructor(parts: BoardParts) {
    this.#parts = parts;
  }

  get peerCount(): number {
    return this.#parts.tracker.size;
  }

  get targetCount(): number {
    return this.#targets.size;
  }

  keys(): string[] {
    return [...this.#upstreams.keys()];
  }

  /**
   * An upstream as it is from now on. Peers that stay keep their states; where the check is another one they begin anew,
   * unless it is persistent.
   */
  set(upstream: CheckedUpstream, now: number): void {
    this.#report(now);
    const { key, check, slowStart } = upstream;
    const known = this.#upstreams.get(key);
    const entry = known ?? { check, slowStart, peers: new Map<string, Peer>() };
    const changed = !sameCheck(entry.check, check);
    entry.check = check;
    entry.slowStart = slowStart;
    this.#upstreams.set(key, entry);
    const named = new Set(upstream.peers.map(peerName));
    for (const [name, peer] of entry.peers) if (!named.has(name)) this.#removePeer(entry, name, peer);
    for (const peer of upstream.peers) this.#setPeer(key, entry, peer, changed && !check.persistent, now);
  }

  /** Changes single peers of an upstream; one that is not there is ignored. */
  change(key: string, peers: readonly CheckedPeer[], gone: readonly { address: string; port: number }[], now: number) {
    const entry = this.#upstreams.get(key);
    if (entry === undefined) return;
    this.#report(now);
    for (const name of gone.map(peerName)) {
      const peer = entry.peers.get(name);
      if (peer !== undefined) this.#removePeer(entry, name, peer);
    }
    for (const peer of peers) this.#setPeer(key, entry, peer, false, now);
  }

  remove(key: string): void {
    const entry = this.#upstreams.get(key);
    if (entry === undefined) return;
    for (const [name, peer] of entry.peers) this.#removePeer(entry, name, peer);
    this.#upstreams.delete(key);
  }

  /** When the next probe is due; undefined if there is none. */
  get nextDue(): number | undefined {
    return this.#schedule.nextDue;
  }

  /** The next target to be probed at `now`. It does not come again before its `finish`: one probe of it at a time. */
  take(now: number): Target | undefined {
    const target = this.#schedule.take(now);
    if (target !== undefined) target.underWay = true;
    return target;
  }

  /** The probe of a target is over. Without an outcome it says nothing. */
  finish(target: Target, outcome: Outcome | undefined, now: number): void {
    target.underWay = false;
    if (this.#targets.get(target.key) !== target) return;
    for (const slot of outcome === undefined ? [] : target.slots) {
      const peer = this.#bySlot[slot];
      if (peer === undefined || outcome === undefined) continue;
      peer.reason = outcome.reason;
      this.#results.push(slot * 2 + Number(outcome.passed));
    }
    const { interval, jitter } = target.check;
    target.due += interval + this.#parts.random() * jitter;
    // What took longer than its interval keeps its phase; what was missed is not made up for.
    if (target.due <= now) target.due += Math.ceil((now - target.due + 1) / interval) * interval;
    this.#schedule.add(target);
  }

  /** Hands the results in, and tells which peers are in another state than at the last flush. */
  flush(now: number): PeerHealth[] {
    this.#report(now);
    if (this.#changed.size === 0) return [];
    const changed = [...this.#changed].map(healthOf);
    this.#changed.clear();
    return changed;
  }

  /** All peers, as they are. */
  states(): PeerHealth[] {
    return [...this.#upstreams.values()].flatMap(({ peers }) => [...peers.values()].map(healthOf));
  }

  #report(now: number): void {
    if (this.#results.length === 0) return;
    const results = this.#results;
    this.#results = [];
    for (const { slot, state } of this.#parts.tracker.report(results, ticks(now))) {
      const peer = this.#bySlot[slot];
      if (peer !== undefined) this.#enter(peer, state);
    }
  }

  #enter(peer: Peer, state: HealthState): void {
    if (peer.state === state) return;
    peer.state = state;
    this.#changed.add(peer);
  }

  #setPeer(key: string, entry: BoardUpstream, given: CheckedPeer, afresh: boolean, now: number): void {
    const { tracker } = this.#parts;
    const { fails, passes } = entry.check;
    const { address, port, draining } = given;
    const rule = { fails, passes, slowStart: entry.slowStart, drains: draining };
    const name = peerName(given);
    const known = entry.peers.get(name);
    if (known === undefined) {
      const slot = tracker.add(rule, ticks(now), given.state);
      const target = this.#acquire(given, entry.check, slot, now);
      const state = given.state ?? "unchecked";
      const peer: Peer = { upstream: key, address, port, state, reason: "", slot, target };
      entry.peers.set(name, peer);
      this.#bySlot[slot] = peer;
      this.#enter(peer, tracker.state(slot));
      return;
    }
    tracker.change(known.slot, rule, ticks(now), afresh ? "unchecked" : undefined);
    if (afresh) known.reason = "the check was changed";
    const before = known.target;
    // Held first, so that a target that stays is not dropped in between.
    known.target = this.#acquire(given, entry.check, known.slot, now);
    if (before !== known.target) this.#release(before, known.slot);
    this.#enter(known, tracker.state(known.slot));
  }

  #removePeer(entry: BoardUpstream, name: string, peer: Peer): void {
    entry.peers.delete(name);
    this.#bySlot[peer.slot] = undefined;
    this.#changed.delete(peer);
    this.#parts.tracker.remove(peer.slot);
    // Results of the slot that are still to be handed in must not count for who gets it next.
    this.#results = this.#results.filter((word) => word >> 1 !== peer.slot);
    this.#release(peer.target, peer.slot);
  }

  #acquire({ address, port }: CheckedPeer, check: HealthCheck, slot: number, now: number): Target {
    const key = targetKey(address, port, check);
    let target = this.#targets.get(key);
    if (target === undefined) {
      target = newTarget(key, address, port, check);
      target.due = now + phaseOf(key) * check.interval;
      this.#targets.set(key, target);
      this.#schedule.add(target);
    }
    target.slots.add(slot);
    return target;
  }

  #release(target: Target, slot: number): void {
    target.slots.delete(slot);
    if (target.slots.size > 0) return;
    this.#targets.delete(target.key);
    this.#schedule.remove(target);
    if (target.underWay) this.#parts.onDropped(target);
  }
}

/** The tracker's clock: whole milliseconds modulo 2^32. */
function ticks(now: number): number {
  return Math.floor(now) % 2 ** 32;
}

function healthOf({ upstream, address, port, state, reason }: Peer): PeerHealth {
  return { upstream, address, port, state, reason };
}

/** The number of a state in messages: its place in HEALTH_STATES. */
export function stateNumber(state: HealthState): number {
  return HEALTH_STATES.indexOf(state);
}
