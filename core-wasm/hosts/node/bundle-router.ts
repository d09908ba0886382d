import {
  BUNDLE_KIND,
  type BundleRecord,
  type ChosenPeer,
  type Core,
  type Decision,
  loadBundle,
  patternOf,
  type RequestInput,
  RouteTable,
  readBundle,
  type UpstreamDescription,
} from "../../binding/index.js";

/** Milliseconds of a clock that never goes back, as the core wants it. */
function now(): number {
  return Math.floor(performance.now()) >>> 0;
}

function random(): number {
  return Math.floor(Math.random() * 2 ** 32);
}

/** Kind and key of a record as one text. */
function nameOf({ kind, key }: BundleRecord): string {
  return `${kind} ${key}`;
}

function same(a: Uint8Array, b: Uint8Array | undefined): boolean {
  return b !== undefined && Buffer.compare(a, b) === 0;
}

/**
 * Rules and peers of a process, by the bundle that was loaded last. A new bundle is applied as what it changes, between two
 * requests: peers that stay keep their turns, their requests under way and their failures.
 */
export class BundleRouter {
  readonly #core: Core;
  readonly #table: RouteTable;
  #records = new Map<string, BundleRecord>();
  #upstreams = new Map<string, UpstreamDescription>();

  /** Throws CoreError where memory is short. Without a bundle every request is a 404. */
  constructor(core: Core) {
    this.#core = core;
    this.#table = new RouteTable(core);
  }

  /** Puts a bundle (core-wasm/BUNDLE.md) in force. Throws CoreError where anything of it is not sound: the one before stays. */
  load(bytes: Uint8Array): void {
    // Loaded once by itself: what a table of its own takes as a whole, this one takes in parts.
    const { table, upstreams } = loadBundle(this.#core, bytes);
    table.free();
    // The caller may write over its bytes: what is kept to be compared is a copy.
    const records = new Map(readBundle(bytes.slice()).map((record) => [nameOf(record), record]));
    try {
      this.#apply(this.#records, records);
    } catch (error) {
      this.#apply(records, this.#records);
      throw error;
    }
    this.#records = records;
    this.#upstreams = upstreams;
  }

  /** From one state to the other. What goes makes room first: one suffix may change from one kind of wildcard to the other. */
  #apply(from: ReadonlyMap<string, BundleRecord>, to: ReadonlyMap<string, BundleRecord>): void {
    for (const [name, { kind, key }] of from) {
      if (to.has(name)) continue;
      if (kind === BUNDLE_KIND.shard) this.#table.removeHost(patternOf(key));
      else if (kind === BUNDLE_KIND.peerSet) this.#table.removePeers(key);
    }
    for (const [name, { kind, content }] of to) {
      if (same(content, from.get(name)?.content)) continue;
      if (kind === BUNDLE_KIND.shard) this.#table.loadHost(content);
      else if (kind === BUNDLE_KIND.peerSet) this.#table.loadPeers(content);
    }
  }

  /** Decides a request; never throws for one. Where a peer was chosen, `done` is to be called once. */
  decide(request: RequestInput): Decision {
    return this.#table.decide(request, random(), now());
  }

  /** Another peer for a request that was decided to be proxied, none of `tried`; undefined if none is left. */
  next(decision: Decision & { action: "proxy" }, tried: readonly ChosenPeer[]): ChosenPeer | undefined {
    const { upstreamKey, hash } = decision;
    const peer = this.#table.pickPeer(upstreamKey, { hash, tried }, random(), now());
    return peer === "busy" ? undefined : peer;
  }

  /** The try with a peer is over; `failed` counts towards the limit of failures. */
  done(peer: ChosenPeer, failed: boolean): void {
    this.#table.peerDone(peer, failed, now());
  }

  /** How to talk to the peers of an upstream. */
  upstream(key: string): UpstreamDescription | undefined {
    return this.#upstreams.get(key);
  }

  /** Gives the memory of the table back. The router must not be used afterwards. */
  free(): void {
    this.#table.free();
  }
}
