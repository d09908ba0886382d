import { createHash } from "node:crypto";

/**
 * The state of NGINX is made of pieces: kind and key -> content. Contents: a shard's image; an upstream (see
 * `plan-pieces.ts`); a certificate and states of peers as JSON.
 */
export const PIECE = { shard: 1, upstream: 2, certificate: 3, peerStates: 4 } as const;

/** Kinds of what others post and NGINX gives back, so that it can be kept: backends and settings (balancer/configuration/kept.lua). */
export const KEPT_KINDS: readonly number[] = [6, 9];

/** A piece as it is to be. */
export interface Piece {
  kind: number;
  key: string;
  /** Undefined: there is to be none. */
  content: Uint8Array | undefined;
  /** Of the content, 16 hex digits, as who made the piece has it; `NO_DIGEST` without one. */
  digest: string;
}

/** Digest of a piece that is gone. */
export const NO_DIGEST = "0000000000000000";

/** A piece with its digest: the first 8 bytes of SHA-256 of the content. */
export function makePiece(kind: number, key: string, content: Uint8Array | undefined): Piece {
  const digest =
    content === undefined ? NO_DIGEST : createHash("sha256").update(content).digest("hex").slice(0, NO_DIGEST.length);
  return { kind, key, content, digest };
}

/** Unique among all pieces: `<kind>:<key>`. */
export function pieceName({ kind, key }: Pick<Piece, "kind" | "key">): string {
  return `${kind}:${key}`;
}

/** Kind and key of a name. */
export function parsePieceName(name: string): { kind: number; key: string } {
  const colon = name.indexOf(":");
  return { kind: Number(name.slice(0, colon)), key: name.slice(colon + 1) };
}
