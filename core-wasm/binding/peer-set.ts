/** Peer sets on the way into the core: their source encoding and the exports that work on them. */
import { parseAddress } from "./address.js";
import { CoreError, type CoreErrorCode } from "./errors.js";
import type { BalanceMethod, Peer, PeerSetLimits, PeerSetSource } from "./source.js";

/**
 * The exports of core.wasm for peer sets and rings. Pointers and lengths are bytes of `memory`; an answer below zero is a
 * status. ABI.md describes each.
 */
export interface PeerSetExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  /** 0 if memory can't be had. May move `memory.buffer`. */
  alloc(size: number): number;
  free(pointer: number): unknown;
  ring_crc32(crc: number, pointer: number, length: number): number;
  /** Writes address and length of the image, a block of its own, to two words at `result`. */
  peer_set_compile(source: number, length: number, old: number, result: number): number;
  peer_set_validate(image: number, length: number): number;
  peer_set_lookup(image: number, hash: number): number;
  peer_set_lookup_key(image: number, key: number, length: number): number;
  peer_set_lookup_many(image: number, hashes: number, count: number, out: number): number;
  peer_set_position(image: number, hash: number): number;
  peer_set_owner(image: number, position: number): number;
  peer_set_walk(image: number, position: number, tried: number, triedLength: number): number;
}

/** Status of the core for "there is nothing to answer with": no peer, or all of them tried. */
export const NO_PEER = -11;
const CORE_MEMORY = -9;

const CODES: Record<number, CoreErrorCode> = {
  [-2]: "CORE_IMAGE_TRUNCATED",
  [-3]: "CORE_IMAGE_MAGIC",
  [-4]: "CORE_IMAGE_VERSION",
  [-5]: "CORE_IMAGE_CHECKSUM",
  [-6]: "CORE_IMAGE_CORRUPT",
  [-7]: "CORE_SOURCE_INVALID",
  [-8]: "CORE_LIMIT",
  [CORE_MEMORY]: "CORE_MEMORY",
  [-10]: "CORE_POINTER",
};

/** The error that a status of a peer set export stands for. */
export function peerSetError(status: number, doing: string): CoreError {
  return new CoreError(CODES[status] ?? "CORE_STATE", `${doing}: the core answered ${status}`);
}

/** Places in the header of an image and in the record of a peer, as assembly/balance/peer-set-layout.ts has them. */
export const IMAGE_SIZE = 16;
const IMAGE_PEERS = 24;
const IMAGE_POINTS = 28;
const IMAGE_FLAGS = 22;
const IMAGE_HEADER = 96;
const RECORD_BYTES = 32;
const RECORD_PORT = 4;
const RECORD_WEIGHT = 6;
const RECORD_ID_LENGTH = 8;
const RECORD_ADDRESS_LENGTH = 9;
const RECORD_FLAGS = 11;
const RECORD_SESSION = 12;

/** Sizes of the image at `image` of a memory: bytes, peers, points of the ring (0 without one). */
export function peerSetSizes(memory: DataView, image: number): { bytes: number; peers: number; points: number } {
  return {
    bytes: memory.getUint32(image + IMAGE_SIZE, true),
    peers: memory.getUint32(image + IMAGE_PEERS, true),
    points: memory.getUint32(image + IMAGE_POINTS, true),
  };
}

/** A peer as its image has it; `session` is the value of the session cookie that leads to it, where the set has one. */
export interface ImagePeer extends Peer {
  id: string;
  session?: string;
}

/** A peer of the image at `image`, which must have one with this index. */
export function readPeer(memory: DataView, image: number, index: number): ImagePeer {
  const record = image + IMAGE_HEADER + index * RECORD_BYTES;
  const start = image + memory.getUint32(record, true);
  const bytes = new Uint8Array(memory.buffer, start, memory.getUint8(record + RECORD_ID_LENGTH));
  const id = String.fromCharCode(...bytes);
  // Of `[address]:port` or `address:port`.
  const from = id.startsWith("[") ? 1 : 0;
  return {
    id,
    address: id.slice(from, from + memory.getUint8(record + RECORD_ADDRESS_LENGTH)),
    port: memory.getUint16(record + RECORD_PORT, true),
    weight: memory.getUint16(record + RECORD_WEIGHT, true),
    ...(memory.getUint8(record + RECORD_FLAGS) & PEER_DRAINING ? { draining: true } : {}),
    ...(memory.getUint16(image + IMAGE_FLAGS, true) & SET_STICKY
      ? {
          session: memory
            .getUint32(record + RECORD_SESSION, true)
            .toString(16)
            .padStart(8, "0"),
        }
      : {}),
  };
}

/**
 * Compiles a source that stands in the core's memory, with an older image (0: none). Answers where the image is, which the
 * caller frees, or a status below zero.
 */
export function compilePeerSet(core: PeerSetExports, source: number, length: number, old: number): number {
  const result = core.alloc(8);
  if (!result) return CORE_MEMORY;
  const status = core.peer_set_compile(source, length, old, result);
  const image = new DataView(core.memory.buffer).getUint32(result, true);
  core.free(result);
  return status < 0 ? status : image;
}

const HEADER = 40;
const PEER_HEAD = 24;
const CHANGES = 1;
/** Flags of a set; in a source they stand one bit further left. */
const SET_BOUNDED = 1;
const SET_MANDATORY = 2;
const SET_PANIC = 4;
const SET_STICKY = 8;
const PEER_DRAINING = 1;
/** Limits in the order in which source and image have them. */
const LIMITS = ["maxFails", "failTimeout", "maxConns", "slowStart"] as const satisfies (keyof PeerSetLimits)[];
const METHODS: Record<BalanceMethod["kind"], number> = {
  "round-robin": 0,
  ring: 1,
  "nginx-ring": 2,
  maglev: 3,
  "least-conn": 4,
  random: 5,
  "random-two": 6,
  "ip-hash": 7,
};

/**
 * The source bytes of a peer set, as assembly/balance/peer-set-source.ts lays them out.
 *
 * `template` is the compiled hash key, empty where there is none. With `changes`, `set.peers` are changes to
 * the peers of an older image: a weight of 0 takes a peer out, and peers that are not named stay.
 * Throws CoreError CORE_SOURCE_INVALID for a port, weight or limit that the format cannot hold, and for an address that is
 * no IP literal. Addresses are written in their one canonical form.
 */
export function encodePeerSet(set: PeerSetSource, template: Uint8Array, changes = false): Uint8Array {
  const encoder = new TextEncoder();
  const key = encoder.encode(set.key);
  const display = encoder.encode(set.display);
  let size = HEADER + key.length + display.length + template.length;
  const peers = set.peers.map((peer) => encodablePeer(peer, changes ? 0 : 1));
  for (const { id } of peers) size += PEER_HEAD + id.length;
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  bytes.set([0x4e, 0x4a, 0x50, 0x53, 2, 0, METHODS[set.method.kind], (changes ? CHANGES : 0) | (setFlags(set) << 1)]);
  view.setUint32(8, peers.length, true);
  view.setUint32(12, key.length, true);
  view.setUint32(16, display.length, true);
  view.setUint32(20, template.length, true);
  for (const [i, name] of LIMITS.entries()) view.setUint32(24 + 4 * i, limitOf(set, name), true);
  bytes.set(key, HEADER);
  bytes.set(display, HEADER + key.length);
  bytes.set(template, HEADER + key.length + display.length);
  let at = HEADER + key.length + display.length + template.length;
  for (const { address, id, port, weight, draining } of peers) {
    view.setUint16(at, port, true);
    view.setUint16(at + 2, weight, true);
    bytes[at + 4] = id.length;
    bytes[at + 5] = address.text.length;
    bytes[at + 6] = address.family;
    bytes[at + 7] = draining ? PEER_DRAINING : 0;
    // Two 64-bit numbers, the upper half of the address first, each little-endian.
    for (const [i, word] of address.words.entries()) view.setUint32(at + 8 + (i ^ 1) * 4, word, true);
    at += PEER_HEAD;
    for (let i = 0; i < id.length; i++) bytes[at++] = id.charCodeAt(i);
  }
  return bytes;
}

function setFlags({ method, limits = {}, sessionCookie }: PeerSetSource): number {
  return (
    ("bounded" in method && method.bounded ? SET_BOUNDED : 0) |
    (limits.mandatory ? SET_MANDATORY : 0) |
    (limits.panic ? SET_PANIC : 0) |
    (sessionCookie === undefined ? 0 : SET_STICKY)
  );
}

/** A limit that is left out is 0: there is none. */
function limitOf(set: PeerSetSource, name: (typeof LIMITS)[number]): number {
  const value = set.limits?.[name] ?? 0;
  if (Number.isInteger(value) && value >= 0 && value <= 0xffffffff) return value;
  throw new CoreError("CORE_SOURCE_INVALID", `${name} of an upstream: wrong number`);
}

function encodablePeer(peer: Peer, lightest: number) {
  const { port, weight } = peer;
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw wrongPeer(peer, "port");
  if (!Number.isInteger(weight) || weight < lightest || weight > 65535) throw wrongPeer(peer, "weight");
  const address = parseAddress(peer.address);
  if (!address) throw wrongPeer(peer, "address");
  const id = `${address.family === 6 ? `[${address.text}]` : address.text}:${port}`;
  return { address, id, port, weight, draining: peer.draining };
}

function wrongPeer(peer: Peer, field: keyof Peer): CoreError {
  return new CoreError("CORE_SOURCE_INVALID", `peer ${JSON.stringify(peer.address.slice(0, 64))}: wrong ${field}`);
}
