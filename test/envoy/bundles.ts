/** Bundles of tests, from rules and upstreams. */
import { bundleOf } from "../../controller/model/bundle.js";
import type { SessionCookie, Upstream, UpstreamTransport } from "../../controller/model/types.js";
import { type HostRules, type PeerSetSource, patternText } from "../../core-wasm/binding/source.js";
import { sharedCore } from "../support/core.js";

/** An upstream over plain HTTP, unless `rest` says otherwise. */
export function upstream(
  peers: PeerSetSource,
  { sessionCookie, ...transport }: Partial<UpstreamTransport> & { sessionCookie?: SessionCookie } = {},
): Upstream {
  const set = sessionCookie === undefined ? peers : { ...peers, sessionCookie: sessionCookie.name };
  return { peers: set, transport: { tls: false, protocol: "http", ...transport }, sessionCookie };
}

export function bundleFrom(hosts: readonly HostRules[], upstreams: readonly Upstream[] = []): Uint8Array {
  const { bytes, refused } = bundleOf(
    {
      hosts: new Map(hosts.map((rules) => [patternText(rules.pattern), rules])),
      upstreams: new Map(upstreams.map((one) => [one.peers.key, one])),
    },
    sharedCore,
  );
  if (refused.length > 0) throw refused[0].error;
  return bytes;
}

/** The same bundle with other bytes after its header, and a checksum that fits them. */
export function resealed(bundle: Uint8Array, damage: (body: Uint8Array) => void): Uint8Array {
  const copy = Uint8Array.from(bundle);
  const body = copy.subarray(24);
  damage(body);
  new DataView(copy.buffer).setUint32(16, crc32(body), true);
  return copy;
}

function crc32(bytes: Uint8Array): number {
  let sum = 0xffff_ffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb8_8320 : sum >>> 1;
  }
  return ~sum >>> 0;
}
