/** The rise/fall machine as one would write it in JavaScript with care: a Map of objects, one for each peer. */

const UNCHECKED = 0;
const UP = 1;
const DOWN = 2;
const SLOW_START = 4;

interface PeerHealth<K> {
  readonly key: K;
  state: number;
  /** Passes in a row; below zero, failures in a row. */
  streak: number;
  readonly passes: number;
  readonly fails: number;
  readonly slowStart: number;
  since: number;
}

/** Results in: keys and what came of each. */
export interface Results<K> {
  keys: readonly K[];
  passed: readonly boolean[];
}

export class PlainTracker<K> {
  readonly #peers = new Map<K, PeerHealth<K>>();

  add(key: K, passes: number, fails: number, slowStart: number): void {
    this.#peers.set(key, { key, state: UNCHECKED, streak: 0, passes, fails, slowStart, since: 0 });
  }

  /** Takes a batch of results in; gives the peers that changed, with their new state. */
  report({ keys, passed }: Results<K>, now: number): { key: K; state: number }[] {
    const changed: { key: K; state: number }[] = [];
    for (let i = 0; i < keys.length; i++) {
      const peer = this.#peers.get(keys[i]);
      if (peer === undefined) continue;
      let { state } = peer;
      if (state === SLOW_START && now - peer.since >= peer.slowStart) state = UP;
      if (passed[i]) {
        peer.streak = peer.streak > 0 ? peer.streak + 1 : 1;
        if ((state === UNCHECKED || state === DOWN) && peer.streak >= peer.passes) {
          state = state === DOWN && peer.slowStart > 0 ? SLOW_START : UP;
        }
      } else {
        peer.streak = peer.streak < 0 ? peer.streak - 1 : -1;
        if (-peer.streak >= peer.fails) state = DOWN;
      }
      if (state === peer.state) continue;
      peer.state = state;
      peer.since = now;
      changed.push({ key: peer.key, state });
    }
    return changed;
  }
}
