import {
  PATTERN_ANY_HOST,
  PATTERN_ANY_LABELS,
  PATTERN_EXACT,
  PATTERN_ONE_LABEL,
  S_HEADER_SIZE,
  S_HOST_LENGTH,
  S_PATTERN,
} from "../assembly/image/layout.js";
import { BUNDLE_KIND, type BundleRecord, readBundle, readUpstream, type UpstreamDescription } from "./bundle.js";
import type { Core } from "./core.js";
import { CoreError } from "./errors.js";
import { RouteTable } from "./route-table.js";
import { patternText } from "./source.js";

/** What a bundle holds, ready to decide with. */
export interface LoadedBundle {
  table: RouteTable;
  /** By key. */
  upstreams: Map<string, UpstreamDescription>;
}

/**
 * A new table with everything that a bundle holds. Throws CoreError where anything of it is not sound; nothing is left over
 * then, and tables that were made before are as they were. To change bundles, load the new one, go on with its table, and
 * `free` the old one.
 */
export function loadBundle(core: Core, bytes: Uint8Array): LoadedBundle {
  const records = readBundle(bytes);
  const upstreams = new Map<string, UpstreamDescription>();
  const table = new RouteTable(core);
  try {
    for (const record of records) {
      if (record.kind === BUNDLE_KIND.shard) loadShard(table, record);
      else if (record.kind === BUNDLE_KIND.peerSet) loadPeers(table, record);
      else if (record.kind === BUNDLE_KIND.upstream) upstreams.set(record.key, readUpstream(record));
    }
  } catch (error) {
    table.free();
    throw error;
  }
  return { table, upstreams };
}

// The core finds shards and peer sets by what stands in their images. A key that says otherwise would take the place of
// another record.

function loadShard(table: RouteTable, { key, content }: BundleRecord): void {
  table.loadHost(content);
  if (shardPattern(content) !== key) throw wrongKey("shard", key);
}

function loadPeers(table: RouteTable, { key, content }: BundleRecord): void {
  table.loadPeers(content);
  if (peerSetKey(content) !== key) throw wrongKey("peer set", key);
}

function wrongKey(what: string, key: string): CoreError {
  return new CoreError("CORE_IMAGE_CORRUPT", `reading a bundle: the ${what} ${JSON.stringify(key)} is another one`);
}

/** The text of the host pattern of a shard's image, which the core has accepted. */
export function shardPattern(image: Uint8Array): string {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  const host = new TextDecoder().decode(
    image.subarray(S_HEADER_SIZE, S_HEADER_SIZE + view.getUint32(S_HOST_LENGTH, true)),
  );
  switch (view.getUint32(S_PATTERN, true)) {
    case PATTERN_EXACT:
      return host;
    case PATTERN_ONE_LABEL:
      return patternText({ kind: "wildcard", suffix: host, labels: "one" });
    case PATTERN_ANY_LABELS:
      return patternText({ kind: "wildcard", suffix: host, labels: "any" });
    case PATTERN_ANY_HOST:
      return patternText({ kind: "any" });
    default:
      return patternText({ kind: "default" });
  }
}

const SET_KEY = 64;
const SET_KEY_LENGTH = 68;

/** The key of a peer set's image, which the core has accepted. */
export function peerSetKey(image: Uint8Array): string {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  const start = view.getUint32(SET_KEY, true);
  return new TextDecoder().decode(image.subarray(start, start + view.getUint32(SET_KEY_LENGTH, true)));
}
