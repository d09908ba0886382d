/**
 * A bundle: every image of a configuration, and what a host has to know of each upstream, as one file. Little-endian and
 * canonical; BUNDLE.md describes it. `njet-kic compile` writes one, and every host program of the core reads it.
 */
import { CoreError, type CoreErrorCode } from "./errors.js";

/** Kinds of records. A reader passes over those that it does not know. */
export const BUNDLE_KIND = {
  /** The image of a shard; the key is the text of its host pattern (`patternText`). */
  shard: 1,
  /** The image of a peer set; the key is that of its upstream. */
  peerSet: 2,
  /** JSON `UpstreamDescription`; the key is that of the upstream. */
  upstream: 3,
} as const;

/** One record. No two of a bundle have the same kind and key. */
export interface BundleRecord {
  /** 1 to 255. */
  kind: number;
  key: string;
  content: Uint8Array;
}

/** What is not for the core, but for who talks to the peers. Fields as `UpstreamTransport` of the controller has them. */
export interface UpstreamDescription {
  key: string;
  /** `namespace/service:port`. */
  display: string;
  /** `tls`, `protocol`, timeouts in milliseconds and so on; what is left out has the default of the host. */
  transport: Record<string, unknown>;
  /** Attributes of the session cookie, whose value the core gives. */
  sessionCookie?: Record<string, unknown>;
}

const MAGIC = 0x424b_4a4e; // "NJKB"
const MAJOR = 1;
const MINOR = 0;
const HEADER = 24;
const RECORD = 12;

/**
 * The bytes of a bundle. Canonical: the same records give the same bytes, in whatever order they are given. Throws CoreError
 * CORE_SOURCE_INVALID for two records of one kind and key, or for a kind that is none.
 */
export function writeBundle(records: Iterable<BundleRecord>): Uint8Array {
  const encoder = new TextEncoder();
  const entries = [...records].map(({ kind, key, content }) => ({ kind, key: encoder.encode(key), content }));
  entries.sort(compareEntries);
  let size = HEADER;
  for (const [i, entry] of entries.entries()) {
    const { kind, key, content } = entry;
    if (!Number.isInteger(kind) || kind < 1 || kind > 255) throw sourceError(`a record of kind ${kind}`);
    if (i > 0 && compareEntries(entries[i - 1], entry) === 0) throw sourceError(`a record twice, of kind ${kind}`);
    size += RECORD + pad4(key.length) + pad4(content.length);
  }
  if (size > 0xffff_ffff) throw sourceError("more than 4 GiB");
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  let at = HEADER;
  for (const { kind, key, content } of entries) {
    bytes[at] = kind;
    view.setUint32(at + 4, key.length, true);
    view.setUint32(at + 8, content.length, true);
    at += RECORD;
    bytes.set(key, at);
    at += pad4(key.length);
    bytes.set(content, at);
    at += pad4(content.length);
  }
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, MAJOR, true);
  view.setUint16(6, MINOR, true);
  view.setUint32(8, entries.length, true);
  view.setUint32(12, size, true);
  view.setUint32(16, crc32(bytes.subarray(HEADER)), true);
  return bytes;
}

/**
 * The records of a bundle, in its order; their contents are views of `bytes`. Throws CoreError for bytes that are not exactly
 * a bundle. Whether the images are sound is for the core to say.
 */
export function readBundle(bytes: Uint8Array): BundleRecord[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEADER) throw refused("CORE_IMAGE_TRUNCATED", "shorter than its header");
  if (view.getUint32(0, true) !== MAGIC) throw refused("CORE_IMAGE_MAGIC", "these bytes are no bundle");
  const major = view.getUint16(4, true);
  if (major !== MAJOR) throw refused("CORE_IMAGE_VERSION", `format version ${major}, this reader knows ${MAJOR}`);
  const size = view.getUint32(12, true);
  if (size > bytes.length) throw refused("CORE_IMAGE_TRUNCATED", `${bytes.length} of ${size} bytes`);
  if (size !== bytes.length) throw corrupt("bytes after its end");
  if (view.getUint32(20, true) !== 0) throw corrupt("a word of the header that must be 0");
  if (crc32(bytes.subarray(HEADER)) !== view.getUint32(16, true)) {
    throw refused("CORE_IMAGE_CHECKSUM", "its bytes do not fit its checksum");
  }
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const records: BundleRecord[] = [];
  let before: { kind: number; key: Uint8Array } | undefined;
  let at = HEADER;
  /** The next part of this length and what pads it; undefined where the bundle has no room for it. */
  const part = (length: number): Uint8Array | undefined => {
    const end = at + pad4(length);
    if (end > size) return undefined;
    const found = bytes.subarray(at, at + length);
    for (let i = at + length; i < end; i++) if (bytes[i] !== 0) return undefined;
    at = end;
    return found;
  };
  for (let left = view.getUint32(8, true); left > 0; left--) {
    const name = `record ${records.length}`;
    if (at + RECORD > size) throw corrupt(`${name} begins after the end`);
    const kind = bytes[at];
    const reserved = bytes[at + 1] | bytes[at + 2] | bytes[at + 3];
    if (kind === 0 || reserved !== 0) throw corrupt(`${name} has no kind`);
    const keyLength = view.getUint32(at + 4, true);
    const contentLength = view.getUint32(at + 8, true);
    at += RECORD;
    const key = part(keyLength);
    const content = key && part(contentLength);
    if (!key || !content) throw corrupt(`${name} has a wrong length or padding`);
    if (before && compareEntries(before, { kind, key }) >= 0) throw corrupt(`${name} is not in order`);
    before = { kind, key };
    try {
      records.push({ kind, key: decoder.decode(key), content });
    } catch {
      throw corrupt(`the key of ${name} is not UTF-8`);
    }
  }
  if (at !== size) throw corrupt("bytes after the last record");
  return records;
}

/** The record of an upstream, as JSON with its names in order. */
export function upstreamRecord(description: UpstreamDescription): BundleRecord {
  const content = new TextEncoder().encode(JSON.stringify(ordered(description)));
  return { kind: BUNDLE_KIND.upstream, key: description.key, content };
}

/** The description in such a record. Throws CoreError CORE_IMAGE_CORRUPT. */
export function readUpstream({ key, content }: BundleRecord): UpstreamDescription {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
    if (isDescription(value) && value.key === key) return value;
  } catch {
    // Said below.
  }
  throw corrupt(`the upstream ${JSON.stringify(key)} has no description`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isDescription(value: unknown): value is UpstreamDescription {
  if (!isObject(value)) return false;
  const { key, display, transport, sessionCookie } = value;
  const cookie = sessionCookie === undefined || isObject(sessionCookie);
  return typeof key === "string" && typeof display === "string" && isObject(transport) && cookie;
}

/** The same value with the names of its objects in order; what is undefined is left out. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, ordered(value[name])]),
  );
}

function compareEntries(a: { kind: number; key: Uint8Array }, b: { kind: number; key: Uint8Array }): number {
  if (a.kind !== b.kind) return a.kind - b.kind;
  const shorter = Math.min(a.key.length, b.key.length);
  for (let i = 0; i < shorter; i++) if (a.key[i] !== b.key[i]) return a.key[i] - b.key[i];
  return a.key.length - b.key.length;
}

function pad4(length: number): number {
  return length + ((4 - (length % 4)) % 4);
}

let crcTable: Uint32Array | undefined;

/** CRC-32 (IEEE). Not the core's: a bundle can be read where there is no core yet. */
function crc32(bytes: Uint8Array): number {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb8_8320 : value >>> 1;
    return value;
  });
  let sum = 0xffff_ffff;
  for (let i = 0; i < bytes.length; i++) sum = (sum >>> 8) ^ crcTable[(sum ^ bytes[i]) & 255];
  return ~sum >>> 0;
}

function refused(code: CoreErrorCode, why: string): CoreError {
  return new CoreError(code, `reading a bundle: ${why}`);
}

function corrupt(why: string): CoreError {
  return refused("CORE_IMAGE_CORRUPT", why);
}

function sourceError(why: string): CoreError {
  return new CoreError("CORE_SOURCE_INVALID", `writing a bundle: ${why}`);
}
