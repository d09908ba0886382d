import {
  BUNDLE_KIND,
  type BundleRecord,
  type UpstreamDescription,
  upstreamRecord,
  writeBundle,
} from "../../core-wasm/binding/bundle.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { CoreError } from "../../core-wasm/binding/errors.js";
import { compilePeerSetImage, compileShardImage } from "../../core-wasm/binding/images.js";
import { patternText } from "../../core-wasm/binding/source.js";
import type { ModelSnapshot, SessionCookie, Upstream } from "./types.js";

/** A bundle, and what the core refused to compile and is therefore not in it. */
export interface CompiledBundle {
  bytes: Uint8Array;
  refused: { piece: string; error: CoreError }[];
}

/**
 * The bundle of a model: its rules and peers as images, and how to talk to the peers. Nothing secret is in it: certificates
 * and health checks, whose headers may hold tokens, are left out. Equal models give equal bytes.
 */
export function bundleOf({ hosts, upstreams }: Pick<ModelSnapshot, "hosts" | "upstreams">, core: Core): CompiledBundle {
  const records: BundleRecord[] = [];
  const refused: CompiledBundle["refused"] = [];
  const attempt = (piece: string, make: () => BundleRecord[]) => {
    try {
      records.push(...make());
    } catch (error) {
      if (!(error instanceof CoreError)) throw error;
      refused.push({ piece, error });
    }
  };
  for (const upstream of upstreams.values())
    attempt(`upstream ${upstream.peers.key}`, () => ofUpstream(upstream, core));
  for (const rules of hosts.values()) {
    const key = patternText(rules.pattern);
    attempt(`host ${JSON.stringify(key)}`, () => [
      { kind: BUNDLE_KIND.shard, key, content: compileShardImage(core, rules) },
    ]);
  }
  return { bytes: writeBundle(records), refused };
}

function ofUpstream({ peers, transport, sessionCookie }: Upstream, core: Core): BundleRecord[] {
  const { key, display } = peers;
  const description: UpstreamDescription = { key, display, transport: { ...transport } };
  if (sessionCookie) description.sessionCookie = { ...sessionCookie } satisfies SessionCookie;
  return [{ kind: BUNDLE_KIND.peerSet, key, content: compilePeerSetImage(core, peers) }, upstreamRecord(description)];
}
