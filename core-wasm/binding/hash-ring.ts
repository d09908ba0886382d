import { CoreError } from "./errors.js";
import {
  compilePeerSet,
  encodePeerSet,
  NO_PEER,
  type PeerSetExports,
  peerSetError,
  peerSetSizes,
  readPeer,
} from "./peer-set.js";
import type { Peer } from "./source.js";

/** What the hash of a peer's points begins with: `resty` is the id `ip:port`, `nginx` is host, NUL, port, as NGINX has it. */
export type RingLayout = "resty" | "nginx";

/** A peer of a ring: `id` is `ip:port`, `[ip]:port` for IPv6; the address is in its canonical text form. */
export interface RingPeer extends Peer {
  id: string;
}

/** A peer as it is handed in; a weight that is left out is 1. */
export type RingPeerInput = Omit<Peer, "weight"> & { weight?: number };

/** Keys up to this many bytes need no allocation. */
const SCRATCH = 1024;
const NO_TEMPLATE = new Uint8Array(0);

/**
 * A consistent-hash ring in the core's memory: 160 points a unit of weight, hashed with CRC-32 as in
 * NGINX's `hash ... consistent`. With the layout `nginx` a key goes to the same peer as there.
 *
 * Peers have indices in canonical order (by address, then port), whatever the order in which they are given; a peer
 * that is named twice counts once, with its greatest weight. A ring holds memory of the core until `free`.
 */
export class HashRing {
  readonly #core: PeerSetExports;
  readonly #layout: RingLayout;
  readonly #scratch: number;
  #image = 0;
  #bytes: Uint8Array;
  #peers: RingPeer[] = [];

  private constructor(core: PeerSetExports, layout: RingLayout) {
    this.#core = core;
    this.#layout = layout;
    this.#scratch = allocate(core, SCRATCH);
    this.#bytes = new Uint8Array(core.memory.buffer);
  }

  /** Builds a ring in the memory of a `Core`. Throws CoreError: CORE_SOURCE_INVALID, CORE_LIMIT (32,768 peers, 26,214 of weight), CORE_MEMORY. */
  static build(
    core: { readonly exports: PeerSetExports },
    peers: readonly RingPeerInput[],
    options: { layout?: RingLayout } = {},
  ): HashRing {
    const ring = new HashRing(core.exports, options.layout ?? "resty");
    try {
      ring.#compile(peers, false);
    } catch (error) {
      ring.free();
      throw error;
    }
    return ring;
  }

  /** Number of peers. */
  get size(): number {
    return peerSetSizes(this.#view(), this.#live()).peers;
  }

  /** Number of points. */
  get points(): number {
    return peerSetSizes(this.#view(), this.#live()).points;
  }

  /** A copy of the ring's image: canonical bytes, equal for equal peers. */
  image(): Uint8Array {
    const image = this.#live();
    return this.#memory().slice(image, image + peerSetSizes(this.#view(), image).bytes);
  }

  /** The peer with an index of `lookup`, `lookupHash` or `walk`. Throws a RangeError for an index that there is none of. */
  peer(index: number): RingPeer {
    const known = this.#peers[index];
    if (known) return known;
    if (!Number.isInteger(index) || index < 0 || index >= this.size) {
      throw new RangeError(`no peer has the index ${index}`);
    }
    const peer = readPeer(this.#view(), this.#live(), index);
    this.#peers[index] = peer;
    return peer;
  }

  /** Index of the peer that owns the UTF-8 bytes of `key`; undefined if the ring has no peer. */
  lookup(key: string): number | undefined {
    const image = this.#live();
    const bytes = this.#memory();
    const length = key.length;
    let i = 0;
    if (length <= SCRATCH) {
      // For short ASCII keys a loop is several times as fast as TextEncoder.encodeInto.
      const scratch = this.#scratch;
      for (; i < length; i++) {
        const code = key.charCodeAt(i);
        if (code > 127) break;
        bytes[scratch + i] = code;
      }
    }
    const peer =
      i === length ? this.#core.peer_set_lookup_key(image, this.#scratch, length) : this.#lookupEncoded(image, key);
    return peer === NO_PEER ? undefined : peer;
  }

  /** Index of the peer that owns a 32-bit hash; undefined if the ring has no peer. */
  lookupHash(hash: number): number | undefined {
    const peer = this.#core.peer_set_lookup(this.#live(), hash);
    return peer === NO_PEER ? undefined : peer;
  }

  /** Indices of the peers that own `hashes`, in one call into the core. Throws CoreError if the ring has no peer. */
  lookupHashes(hashes: Uint32Array): Uint32Array {
    const image = this.#live();
    const size = hashes.length * 4;
    const block = allocate(this.#core, size);
    try {
      new Uint32Array(this.#core.memory.buffer, block, hashes.length).set(hashes);
      const count = this.#core.peer_set_lookup_many(image, block, hashes.length, block);
      if (count < 0) throw peerSetError(count, "looking up hashes");
      return new Uint32Array(this.#core.memory.buffer, block, hashes.length).slice();
    } finally {
      this.#core.free(block);
    }
  }

  /** CRC-32 of the UTF-8 bytes of a key: what `lookup` looks for. */
  hash(key: string): number {
    this.#live();
    const hash = this.#withBytes(new TextEncoder().encode(key), (pointer, length) =>
      this.#core.ring_crc32(0, pointer, length),
    );
    return hash >>> 0;
  }

  /**
   * The peers in the order in which `key` would try them: its owner, then clockwise each other peer once. A change of
   * the ring ends a walk with CoreError CORE_STATE.
   */
  *walk(key: string): Generator<number, void, undefined> {
    const image = this.#live();
    const size = (this.size + 7) >> 3;
    if (!size) return;
    let position = this.#core.peer_set_position(image, this.hash(key));
    const tried = allocate(this.#core, size);
    this.#memory().fill(0, tried, tried + size);
    try {
      for (;;) {
        position = this.#core.peer_set_walk(image, position, tried, size);
        if (position === NO_PEER) return;
        const peer = this.#core.peer_set_owner(image, position);
        const bytes = this.#memory();
        bytes[tried + (peer >> 3)] |= 1 << (peer & 7);
        yield peer;
        if (this.#image !== image) throw new CoreError("CORE_STATE", "the ring changed during a walk");
      }
    } finally {
      this.#core.free(tried);
    }
  }

  /** Makes these the peers of the ring; points of peers that stay are kept. If it throws, the ring is as it was. */
  replace(peers: readonly RingPeerInput[]): void {
    this.#live();
    this.#compile(peers, false);
  }

  /** Adds peers, or gives them another weight, at a fraction of what building costs. If it throws, the ring is as it was. */
  add(...peers: RingPeerInput[]): void {
    this.#live();
    this.#compile(peers, true);
  }

  /** Takes peers out. Those that the ring does not have are ignored. If it throws, the ring is as it was. */
  remove(...peers: Pick<Peer, "address" | "port">[]): void {
    this.#live();
    this.#compile(
      peers.map(({ address, port }) => ({ address, port, weight: 0 })),
      true,
    );
  }

  /** Gives the memory back. Freeing twice is harmless; any other use afterwards throws CoreError CORE_STATE. */
  free(): void {
    if (this.#image) this.#core.free(this.#image);
    if (this.#image !== -1) this.#core.free(this.#scratch);
    this.#image = -1;
    this.#peers = [];
  }

  #compile(peers: readonly RingPeerInput[], changes: boolean): void {
    const core = this.#core;
    const source = encodePeerSet(
      {
        key: "",
        display: "",
        method: { kind: this.#layout === "nginx" ? "nginx-ring" : "ring", key: [] },
        peers: peers.map(({ address, port, weight = 1 }) => ({ address, port, weight })),
      },
      NO_TEMPLATE,
      changes,
    );
    const image = this.#withBytes(source, (pointer, length) => compilePeerSet(core, pointer, length, this.#image));
    if (image < 0) throw peerSetError(image, "building a ring");
    if (this.#image) core.free(this.#image);
    this.#image = image;
    this.#peers = [];
  }

  #lookupEncoded(image: number, key: string): number {
    return this.#withBytes(new TextEncoder().encode(key), (pointer, length) =>
      this.#core.peer_set_lookup_key(image, pointer, length),
    );
  }

  #withBytes<T>(bytes: Uint8Array, use: (pointer: number, length: number) => T): T {
    const pointer = allocate(this.#core, bytes.length);
    try {
      this.#memory().set(bytes, pointer);
      return use(pointer, bytes.length);
    } finally {
      this.#core.free(pointer);
    }
  }

  /** The memory as bytes; growing it leaves an older view with nothing in it. */
  #memory(): Uint8Array {
    if (this.#bytes.length === 0) this.#bytes = new Uint8Array(this.#core.memory.buffer);
    return this.#bytes;
  }

  #view(): DataView {
    return new DataView(this.#memory().buffer);
  }

  #live(): number {
    if (this.#image <= 0) throw new CoreError("CORE_STATE", "the ring has been freed");
    return this.#image;
  }
}

function allocate(core: PeerSetExports, size: number): number {
  const pointer = core.alloc(size);
  if (!pointer) throw new CoreError("CORE_MEMORY", `the core has no ${size} bytes left`);
  return pointer;
}
