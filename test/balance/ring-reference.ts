/** The ring as its definition reads, with no thought of speed: what the core is compared with. */
import { isIPv6 } from "node:net";

export interface ReferencePeer {
  address: string;
  port: number;
  weight: number;
}

interface Point {
  hash: number;
  id: Uint8Array;
  peer: ReferencePeer;
}

export type ReferenceLayout = "resty" | "nginx";

/** CRC-32 bit by bit: polynomial 0xEDB88320, all ones before and after. `state` is the register, not the result. */
function shiftIn(state: number, bytes: Iterable<number>): number {
  for (const byte of bytes) {
    state ^= byte;
    for (let bit = 0; bit < 8; bit++) state = state & 1 ? (state >>> 1) ^ 0xedb88320 : state >>> 1;
  }
  return state >>> 0;
}

/** CRC-32 of bytes. */
export function referenceCrc32(bytes: Iterable<number>): number {
  return ~shiftIn(0xffffffff, bytes) >>> 0;
}

/** `ip:port`, `[ip]:port` for IPv6. */
export function peerId(peer: ReferencePeer): string {
  return isIPv6(peer.address) ? `[${peer.address}]:${peer.port}` : `${peer.address}:${peer.port}`;
}

/** The bytes of an id that a layout hashes. */
export function hashedId(peer: ReferencePeer, layout: ReferenceLayout): Uint8Array {
  const host = isIPv6(peer.address) ? `[${peer.address}]` : peer.address;
  return new TextEncoder().encode(`${host}${layout === "nginx" ? "\0" : ":"}${peer.port}`);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

/** All points of distinct peers, by hash, then by the bytes of the id. */
export function referencePoints(peers: readonly ReferencePeer[], layout: ReferenceLayout): Point[] {
  const points: Point[] = [];
  for (const peer of peers) {
    const id = hashedId(peer, layout);
    const state = shiftIn(0xffffffff, id);
    let hash = 0;
    for (let i = 0; i < 160 * peer.weight; i++) {
      hash = ~shiftIn(state, [hash & 255, (hash >>> 8) & 255, (hash >>> 16) & 255, hash >>> 24]) >>> 0;
      points.push({ hash, id, peer });
    }
  }
  return points.sort((a, b) => a.hash - b.hash || compareBytes(a.id, b.id));
}

/** Index of the point that owns a hash: the first at or after it, wrapping. */
export function referenceOwner(points: readonly Point[], hash: number): number {
  const index = points.findIndex((point) => point.hash >= hash);
  return Math.max(index, 0);
}

/** Peers in the order in which they are met clockwise from a hash, each once. */
export function referenceWalk(points: readonly Point[], hash: number): string[] {
  const start = referenceOwner(points, hash);
  const met = new Set<string>();
  for (let i = 0; i < points.length; i++) met.add(peerId(points[(start + i) % points.length].peer));
  return [...met];
}
