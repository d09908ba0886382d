/**
 * Records: how a piece travels to NGINX, and stands in the journal. Little-endian: u32 length of what follows, u32 CRC-32 of
 * what follows it, u8 op, u8 kind, u16 length of the key, 8 bytes digest (zero on remove), key (UTF-8), content.
 * balancer/state/record.lua is the other end.
 */
import { crc32 } from "node:zlib";
import type { Piece } from "./piece.js";

const SET = 1;
const REMOVE = 2;
const HEAD = 20;
/** What the checksum covers begins here. */
const COVERED = 8;
/** What the length counts begins here. */
const COUNTED = 4;
const DIGEST_AT = 12;
const MOST_KEY = 0xffff;

/** Throws a RangeError for a key that is too long. */
export function encodeRecord({ kind, key, content, digest }: Piece): Buffer {
  const keyBytes = Buffer.from(key);
  if (keyBytes.length > MOST_KEY) throw new RangeError("the key of a piece is too long");
  const size = content?.length ?? 0;
  const record = Buffer.alloc(HEAD + keyBytes.length + size);
  record.writeUInt32LE(record.length - COUNTED, 0);
  record[8] = content === undefined ? REMOVE : SET;
  record[9] = kind;
  record.writeUInt16LE(keyBytes.length, 10);
  if (content !== undefined) record.write(digest, DIGEST_AT, "hex");
  record.set(keyBytes, HEAD);
  if (content !== undefined) record.set(content, HEAD + keyBytes.length);
  record.writeUInt32LE(crc32(record.subarray(COVERED)), COUNTED);
  return record;
}

/** All records of `bytes`; undefined where any of them is damaged. */
export function decodeRecords(bytes: Buffer): Piece[] | undefined {
  const pieces: Piece[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = at + COUNTED <= bytes.length ? recordSize(bytes, at) : 0;
    const piece = size > 0 ? decodeRecord(bytes.subarray(at, at + size)) : undefined;
    if (piece === undefined) return undefined;
    pieces.push(piece);
    at += size;
  }
  return pieces;
}

/** Bytes of the whole record whose first four bytes these are. */
export function recordSize(bytes: Buffer, at = 0): number {
  return bytes.readUInt32LE(at) + COUNTED;
}

/** The record that `bytes` are; undefined for what is none, or damaged. */
export function decodeRecord(bytes: Buffer): Piece | undefined {
  if (bytes.length < HEAD || recordSize(bytes) !== bytes.length) return undefined;
  if (crc32(bytes.subarray(COVERED)) !== bytes.readUInt32LE(COUNTED)) return undefined;
  const op = bytes[8];
  const contentAt = HEAD + bytes.readUInt16LE(10);
  if ((op !== SET && op !== REMOVE) || contentAt > bytes.length) return undefined;
  return {
    kind: bytes[9],
    key: bytes.toString("utf8", HEAD, contentAt),
    digest: bytes.toString("hex", DIGEST_AT, HEAD),
    content: op === SET ? bytes.subarray(contentAt) : undefined,
  };
}
