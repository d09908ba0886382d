import { parseAddress } from "./address.js";
import { type Context, PEER, PEERS, POSITION } from "./context.js";
import type { Core } from "./core.js";
import type { ChosenPeer, PeerStatus } from "./decision.js";
import { ImageCache } from "./image-cache.js";
import { IMAGE_SIZE, type ImagePeer, peerSetSizes, readPeer } from "./peer-set.js";
import type { PeerState } from "./source.js";

const STATES: readonly PeerState[] = ["unchecked", "up", "down", "draining"];

/** What is known of a peer set by the address of its image. */
export interface PeerSetFacts {
  key: string;
  display: string;
  peers: ImagePeer[];
}

/** The peer sets of a table, read from the memory of the core: once for each image. */
export class PeerSets {
  readonly #core: Core;
  readonly #table: number;
  readonly #context: Context;
  readonly #read = new ImageCache<PeerSetFacts>();
  readonly #utf8 = new TextEncoder();

  constructor(core: Core, table: number, context: Context) {
    this.#core = core;
    this.#table = table;
    this.#context = context;
  }

  /** The table has changed: an address may hold another image now. */
  changed(): void {
    this.#read.changed();
  }

  /** The peer set whose image is at this address. */
  at(image: number): PeerSetFacts {
    return this.#read.get(this.#context.words, image, (at) => this.#readAt(at));
  }

  /** The peer that the last call picked, of `set`. */
  chosen(set: PeerSetFacts): ChosenPeer {
    const context = this.#context;
    const index = context.word(PEER);
    const { address, port, session } = set.peers[index];
    const chosen: ChosenPeer = {
      address,
      port,
      position: context.word(POSITION),
      token: this.#token(context.word(PEERS), index),
    };
    if (session !== undefined) chosen.session = session;
    return chosen;
  }

  setState(
    upstreamKey: string,
    peer: { readonly address: string; readonly port: number },
    state: PeerState,
    now: number,
  ): void {
    const image = this.#find(upstreamKey);
    if (!image) return;
    const address = parseAddress(peer.address)?.text;
    const index = this.at(image).peers.findIndex((other) => other.port === peer.port && other.address === address);
    if (index < 0) return;
    this.#core.exports.peer_state(this.#table, this.#token(image, index) | 0, STATES.indexOf(state), now | 0);
  }

  statesOf(upstreamKey: string): PeerStatus[] {
    const image = this.#find(upstreamKey);
    if (!image) return [];
    return this.at(image).peers.map(({ address, port, weight, draining = false }, index) => {
      const word = this.#core.exports.peer_status(this.#context.pointer, this.#token(image, index) | 0);
      return { address, port, weight, draining, state: STATES[word & 3], conns: word >>> 3, out: (word & 4) !== 0 };
    });
  }

  /** Address of the peer set of an upstream as it is now; 0 if there is none. */
  #find(upstreamKey: string): number {
    const image = this.#core.withBytes(this.#utf8.encode(upstreamKey), (at, length) =>
      this.#core.exports.peers_find(this.#table, at, length),
    );
    this.#context.renew();
    return image;
  }

  /** The token of a peer stands behind its image. It is not kept: a set that comes again has other tokens. */
  #token(image: number, index: number): number {
    const { words } = this.#context;
    return words[((image + words[(image + IMAGE_SIZE) >> 2] + 3) >> 2) + index] >>> 0;
  }

  #readAt(image: number): PeerSetFacts {
    const decoder = new TextDecoder();
    const bytes = this.#context.bytes;
    const text = (at: number, length: number) => decoder.decode(bytes.subarray(at, at + length));
    const word = (offset: number) => this.#context.words[(image + offset) >> 2];
    const view = new DataView(bytes.buffer);
    const { peers: count } = peerSetSizes(view, image);
    const peers = Array.from({ length: count }, (_, i) => readPeer(view, image, i));
    return { key: text(image + word(64), word(68)), display: text(image + word(72), word(76)), peers };
  }
}
