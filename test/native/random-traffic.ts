/** Changes and requests by chance, from a fixed seed: what a worker may meet in a long life, in short. */
import type { Core } from "../../core-wasm/binding/core.js";
import type { ChosenPeer, RequestInput } from "../../core-wasm/binding/decision.js";
import { CoreError } from "../../core-wasm/binding/errors.js";
import { compilePeerSetImage, compileShardImage } from "../../core-wasm/binding/images.js";
import type { BalanceMethod, HostRules, Peer, PeerSetSource, Template } from "../../core-wasm/binding/source.js";
import { RandomRules, TEXTS } from "../core/random-rules.js";
import type { Random } from "../support/random.js";
import type { Replay } from "./replay.js";

const METHODS = [
  "round-robin",
  "ring",
  "nginx-ring",
  "maglev",
  "least-conn",
  "random",
  "random-two",
  "ip-hash",
] as const;
const HOSTS = [
  "h",
  "H:80",
  "host.example.com",
  "Host.Example.com.",
  "x.a.b",
  "y.x.a.b.c.d",
  "12345678",
  "other",
  "",
  "a b",
];
const PIECES = ["a", "b", "/a", "x", "/", "//", "/.", "%41", "é", "0", "long-common-folder", "?", "q=", "&a=1"];
/** Most of them make a target that is answered with 400. */
const WRONG_PIECES = ["/../..", "%", "%2e%2e", "\0"];
const VALUES = ["a", "x", "yes", "", "a=1; X-Up=2", "cookie=q", "b b", "ÿ", "v".repeat(9000)];
const CLIENTS = ["127.0.0.1", "10.1.2.3", "2001:db8::1", "unix:"];
const STATES = ["unchecked", "up", "down", "draining"] as const;

const utf8 = (text: string) => Buffer.from(text, "utf8").toString("latin1");

/** Makes operations of a replay. */
export class RandomTraffic {
  readonly #random: Random;
  readonly #rules: RandomRules;
  readonly #core: Core;
  /** Upstreams that were ever set, with their peers. */
  readonly #sets = new Map<string, Peer[]>();
  /** Tries that are under way. */
  readonly #tries: ChosenPeer[] = [];
  #now = 0xfffff000;

  constructor(core: Core, random: Random) {
    this.#core = core;
    this.#random = random;
    this.#rules = new RandomRules(random);
  }

  /** Rules of a host that can be compiled, and their image. */
  shard(): { rules: HostRules; image: Uint8Array } {
    for (;;) {
      const rules = this.#rules.next();
      try {
        return { rules, image: compileShardImage(this.#core, rules) };
      } catch (error) {
        if (!(error instanceof CoreError)) throw error;
      }
    }
  }

  #key(): string {
    // Names as the rules give to upstreams.
    const random = this.#random;
    return `${random.pick(TEXTS)}${random.below(12)}`;
  }

  #peers(): Peer[] {
    const random = this.#random;
    return Array.from({ length: random.below(random.onceIn(5) ? 40 : 5) }, (_, i) => ({
      address: random.onceIn(4) ? `2001:db8::${(i + 1).toString(16)}` : `10.0.0.${i + 1}`,
      port: 8000 + random.below(3),
      weight: 1 + random.below(3),
      draining: random.onceIn(8),
    }));
  }

  #method(): BalanceMethod {
    const random = this.#random;
    const kind = random.pick(METHODS);
    if (kind === "ring" || kind === "nginx-ring" || kind === "maglev") {
      const key: Template = this.#rules.template();
      return { kind, key, bounded: random.onceIn(3) };
    }
    return { kind };
  }

  peerSet(): Uint8Array {
    const random = this.#random;
    const limit = (most: number) => (random.onceIn(2) ? random.below(most) : 0);
    for (;;) {
      const set: PeerSetSource = {
        key: this.#key(),
        display: `ns/${random.pick(["s", "ü"])}:80`,
        method: this.#method(),
        peers: this.#peers(),
        limits: {
          ...{ maxFails: limit(3), failTimeout: limit(3000), maxConns: limit(4), slowStart: limit(3000) },
          ...{ mandatory: random.onceIn(5), panic: random.onceIn(2) },
        },
        sessionCookie: random.onceIn(4) ? "cookie" : undefined,
      };
      try {
        const image = compilePeerSetImage(this.#core, set);
        this.#sets.set(set.key, set.peers);
        return image;
      } catch (error) {
        if (!(error instanceof CoreError)) throw error;
      }
    }
  }

  request(): RequestInput {
    const random = this.#random;
    const path = Array.from({ length: random.below(7) }, () =>
      utf8(random.pick(random.onceIn(20) ? WRONG_PIECES : PIECES)),
    ).join("");
    const value = random.onceIn(3) ? undefined : utf8(random.pick(VALUES));
    return {
      method: random.pick(["GET", "POST", "x"]),
      scheme: random.onceIn(2) ? "https" : "http",
      host: random.onceIn(500) ? "h".repeat(300) : utf8(random.pick(HOSTS)),
      target: random.onceIn(2000) ? `/${"t".repeat(70_000)}` : `/${path}`,
      protocol: random.pick(["HTTP/1.1", "HTTP/2.0"]),
      clientAddress: random.pick(CLIENTS),
      clientPort: random.below(65536),
      // The same header always has the same value in a request.
      header: (name) => (name.length % 3 === 0 ? undefined : value),
    };
  }

  /** Makes one change of the table. */
  change(replay: Replay): void {
    const random = this.#random;
    const key = this.#key();
    switch (random.below(8)) {
      case 0:
        replay.loadShard(this.shard().image);
        break;
      case 1:
      case 2:
      case 3:
      case 4:
        replay.loadPeers(this.peerSet());
        break;
      case 5:
        if (random.onceIn(4)) replay.removeShard(this.#rules.next().pattern);
        else replay.removePeers(key);
        break;
      case 6:
        replay.peersOf(key);
        break;
      default: {
        const peers = this.#sets.get(key) ?? [];
        const peer = peers.length > 0 ? random.pick(peers) : { address: "10.9.9.9", port: 1 };
        replay.peerState(key, peer, random.pick(STATES), this.#now);
      }
    }
  }

  /** One request, with tries of other peers, and ends of tries before. */
  exchange(replay: Replay): void {
    const random = this.#random;
    this.#now = (this.#now + random.below(500)) >>> 0;
    const decision = replay.decide(this.request(), random.word(), this.#now);
    if (decision.action !== "redirect" && decision.upstreamKey !== undefined) {
      const tried = decision.action === "proxy" ? [decision.peer] : [];
      for (let tries = random.below(4); tries > 0; tries--) {
        const picked = replay.pickPeer(decision.upstreamKey, decision.hash, tried, random.word(), this.#now);
        if (picked) tried.push(picked);
      }
      this.#tries.push(...tried);
    }
    while (this.#tries.length > 30 || (this.#tries.length > 0 && random.onceIn(2))) {
      const [peer] = this.#tries.splice(random.below(this.#tries.length), 1);
      replay.peerDone(peer, random.onceIn(3), this.#now);
    }
  }
}
