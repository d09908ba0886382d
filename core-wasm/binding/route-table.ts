import type { RoutingTable } from "./api.js";
import { patternParts } from "./compile/numbers.js";
import {
  ACTION,
  Context,
  GUARD,
  HASH,
  MARKS,
  ORIGIN,
  PEERS,
  ROUTE,
  SHARD,
  STATUS,
  TEXT,
  TEXT_LENGTH,
  TYPE,
  TYPE_LENGTH,
  UPSTREAM,
} from "./context.js";
import { type Core, coreError } from "./core.js";
import type {
  ChosenPeer,
  Decision,
  DecisionOrigin,
  ExplainStep,
  FilledHeaderChange,
  PeerStatus,
  RequestInput,
} from "./decision.js";
import { peerSteps, readTrace } from "./explain.js";
import { ImageCache } from "./image-cache.js";
import { compilePeerSetImage, compileShardImage } from "./images.js";
import { PeerSets } from "./peer-sets.js";
import { readSettings } from "./settings.js";
import { readShardNames, type ShardNames } from "./shard-names.js";
import type { HostPattern, HostRules, PeerSetSource, PeerState } from "./source.js";

/** Whether the checksum of an image is compared, or written because the image has just been made. */
const COMPARE = 0;
const SEAL = 1;
const PROXY = 1;
const REDIRECT = 2;
const ORIGIN_ROUTE = 1;
const ORIGIN_GUARD = 2;
const NO_HEADERS: FilledHeaderChange[] = [];
/** Marks of a choice, and the status of `peer_pick`, for which assembly/table/context.ts and assembly/status.ts are the source. */
const BUSY = 1;
const HASHED = 2;
const NEW_SESSION = 4;
const PICK_BUSY = 2;

/**
 * The routing state of one thread over an instance of the core: shards, upstreams and one context. Everything that the
 * core gives by address is read once for each image.
 */
export class RouteTable implements RoutingTable {
  readonly #core: Core;
  readonly #table: number;
  readonly #context: Context;
  readonly #shards = new ImageCache<ShardNames>();
  readonly #sets: PeerSets;
  readonly #utf8 = new TextEncoder();
  readonly #loadNew = (at: number, length: number): number =>
    this.#core.exports.shard_load(this.#table, at, length, SEAL);

  constructor(core: Core) {
    this.#core = core;
    this.#table = core.exports.table_new();
    if (!this.#table) throw coreError(-9, "making a table");
    this.#context = new Context(core, this.#table);
    this.#sets = new PeerSets(core, this.#table, this.#context);
  }

  /** Gives all memory of the table back. It must not be used afterwards. */
  free(): void {
    this.#context.free();
    this.#core.exports.table_free(this.#table);
  }

  /** The context that decisions are made in; for benchmarks and hosts that read the words themselves. */
  get context(): Context {
    return this.#context;
  }

  #changed(status: number, what: string): void {
    this.#shards.changed();
    this.#sets.changed();
    this.#context.refresh();
    if (status < 0) throw coreError(status, what);
  }

  setHost(rules: HostRules): void {
    const image = this.#core.compiler.compile(rules);
    const status = this.#core.withBytes(image, this.#loadNew);
    this.#changed(status, "loading the rules of a host");
  }

  /**
   * The image of rules, without loading them. Canonical: equal rules give equal bytes. Throws CoreError. Workers and other
   * processes load it with `loadHost`.
   */
  compileHost(rules: HostRules): Uint8Array {
    try {
      return compileShardImage(this.#core, rules);
    } finally {
      this.#context.renew();
    }
  }

  /** Puts a compiled shard in place. Throws CoreError for an image that is not sound; the table is then as before. */
  loadHost(image: Uint8Array): void {
    const status = this.#core.withBytes(image, (at, length) =>
      this.#core.exports.shard_load(this.#table, at, length, COMPARE),
    );
    this.#changed(status, "loading a shard");
  }

  removeHost(pattern: HostPattern): void {
    const { kind, host } = patternParts(pattern);
    const status = this.#core.withBytes(this.#utf8.encode(host), (at, length) =>
      this.#core.exports.shard_remove(this.#table, kind, at, length),
    );
    this.#changed(status, "removing a host");
  }

  setPeers(set: PeerSetSource): void {
    this.#loadPeers(this.compilePeers(set), `peers of ${set.key}`);
  }

  /** Puts a compiled peer set in place. Throws CoreError for an image that is not sound; the table is then as before. */
  loadPeers(image: Uint8Array): void {
    this.#loadPeers(image, "loading peers");
  }

  #loadPeers(image: Uint8Array, what: string): void {
    const status = this.#core.withBytes(image, (at, length) => this.#core.exports.peers_load(this.#table, at, length));
    this.#changed(status, what);
  }

  /** The image of a peer set. Canonical, as that of a shard. Throws CoreError. */
  compilePeers(set: PeerSetSource): Uint8Array {
    try {
      return compilePeerSetImage(this.#core, set);
    } finally {
      this.#context.renew();
    }
  }

  removePeers(key: string): void {
    const status = this.#core.withBytes(this.#utf8.encode(key), (at, length) =>
      this.#core.exports.peers_remove(this.#table, at, length),
    );
    this.#changed(status, `removing ${key}`);
  }

  decide(request: RequestInput, random: number, now = 0): Decision {
    const context = this.#context;
    context.setTime(now);
    if (context.decide(request, random) < 0) return { action: "return", status: 414, headers: NO_HEADERS };
    const action = context.word(ACTION);
    const status = context.word(STATUS);
    const text = context.word(TEXT_LENGTH) ? context.latin1(context.word(TEXT), context.word(TEXT_LENGTH)) : "";
    const origin = this.#origin();
    const marks = context.word(MARKS);
    const { headers, errorPages } = readSettings(this.#core, context);
    if (action === PROXY) {
      const set = this.#sets.at(context.word(PEERS));
      const peer = this.#sets.chosen(set);
      const decision: Decision = {
        action: "proxy",
        upstreamKey: set.key,
        upstream: set.display,
        peer,
        target: text,
        headers,
        origin,
      };
      if (errorPages !== undefined) decision.errorPages = errorPages;
      if (marks & HASHED) decision.hash = context.word(HASH);
      if (peer.session !== undefined) decision.session = { value: peer.session, isNew: (marks & NEW_SESSION) !== 0 };
      return decision;
    }
    if (action === REDIRECT) return { action: "redirect", status, location: text, headers, origin };
    const own = context.word(TYPE_LENGTH) > 0;
    const decision: Decision = { action: "return", status, headers };
    if (errorPages !== undefined) decision.errorPages = errorPages;
    if (own) {
      decision.body = text;
      decision.contentType = context.latin1(context.word(TYPE), context.word(TYPE_LENGTH));
    }
    const set = context.word(PEERS);
    if (set) {
      const { key, display } = this.#sets.at(set);
      decision.upstream = display;
      decision.upstreamKey = key;
      if (marks & BUSY) {
        decision.busy = true;
        if (marks & HASHED) decision.hash = context.word(HASH);
      }
    } else if (context.word(UPSTREAM)) decision.upstream = "";
    if (origin) decision.origin = origin;
    return decision;
  }

  explain(request: RequestInput, random: number, now = 0): { decision: Decision; steps: ExplainStep[] } {
    const { exports } = this.#core;
    if (exports.context_trace(this.#context.pointer, 1) < 0) throw coreError(-9, "explaining a decision");
    this.#context.renew();
    try {
      const decision = this.decide(request, random, now);
      const steps = readTrace(this.#context, (image) => this.#names(image), decision);
      const upstream = decision.action === "redirect" ? undefined : decision.upstreamKey;
      // Nobody sends this request, so that it keeps no place.
      if (decision.action === "proxy") this.peerDone(decision.peer, false, now);
      if (upstream !== undefined) steps.push(...peerSteps(this.peersOf(upstream)));
      return { decision, steps };
    } finally {
      exports.context_trace(this.#context.pointer, 0);
    }
  }

  pickPeer(
    upstreamKey: string,
    request: { hash?: number; tried: readonly ChosenPeer[] },
    random: number,
    now: number,
  ): ChosenPeer | "busy" | undefined {
    const context = this.#context;
    const key = this.#utf8.encode(upstreamKey);
    const { hash, tried } = request;
    // The tokens, then the key.
    const bytes = new Uint8Array(tried.length * 4 + key.length);
    const view = new DataView(bytes.buffer);
    for (const [i, { token }] of tried.entries()) view.setUint32(4 * i, token, true);
    bytes.set(key, tried.length * 4);
    const status = this.#core.withBytes(bytes, (at) => {
      context.setTime(now);
      return this.#core.exports.peer_pick(
        context.pointer,
        at + tried.length * 4,
        key.length,
        hash === undefined ? 0 : 1,
        (hash ?? 0) | 0,
        at,
        tried.length,
        random | 0,
      );
    });
    if (status === PICK_BUSY) return "busy";
    return status === 0 ? this.#sets.chosen(this.#sets.at(context.word(PEERS))) : undefined;
  }

  peerDone(peer: ChosenPeer, failed: boolean, now: number): void {
    this.#context.setTime(now);
    this.#core.exports.peer_done(this.#context.pointer, peer.token | 0, failed ? 1 : 0);
  }

  setPeerState(
    upstreamKey: string,
    peer: { readonly address: string; readonly port: number },
    state: PeerState,
    now: number,
  ): void {
    this.#sets.setState(upstreamKey, peer, state, now);
  }

  peersOf(upstreamKey: string): PeerStatus[] {
    return this.#sets.statesOf(upstreamKey);
  }

  #names(image: number): ShardNames {
    const { words } = this.#context;
    return this.#shards.get(words, image, (at) => readShardNames(words.buffer as ArrayBuffer, at));
  }

  #origin(): DecisionOrigin | undefined {
    const context = this.#context;
    const kind = context.word(ORIGIN);
    const image = context.word(SHARD);
    if (!kind || !image) return undefined;
    const names = this.#names(image);
    if (kind === ORIGIN_ROUTE) {
      const route = names.routes[context.word(ROUTE)];
      return { resource: route?.resource ?? "", host: names.host, path: route?.label ?? "" };
    }
    const resource = kind === ORIGIN_GUARD ? (names.guards[context.word(GUARD)] ?? "") : names.unmatched;
    return { resource, host: names.host, path: "" };
  }
}
