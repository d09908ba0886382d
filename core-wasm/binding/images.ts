/**
 * Images for shipping: what workers and other host programs of the core load as it is. They are canonical: the same rules or
 * peers give the same bytes, so that a worker can be told of what changed by comparing them.
 */
import { compileKey } from "./compile/key.js";
import { type Core, coreError } from "./core.js";
import { compilePeerSet, encodePeerSet, peerSetSizes } from "./peer-set.js";
import type { BalanceMethod, HostRules, PeerSetSource, Template } from "./source.js";

const SEAL = 1;
const NO_TEMPLATE: Template = [];

/** What a method hashes, if anything. */
function hashTemplate(method: BalanceMethod): Template | undefined {
  if ("key" in method) return method.key;
  return method.kind === "ip-hash" ? [{ kind: "variable", name: "remote_addr" }] : undefined;
}

/** The image of the rules of a host pattern, for `shard_load`; its checksum is in it. Throws CoreError. */
export function compileShardImage(core: Core, rules: HostRules): Uint8Array {
  const image = core.compiler.compile(rules);
  const bytes = new Uint8Array(image.length);
  const status = core.withBytes(image, (at, length) => {
    const sealed = core.exports.shard_validate(at, length, SEAL);
    bytes.set(core.bytes().subarray(at, at + length));
    return sealed;
  });
  if (status < 0) throw coreError(status, "compiling the rules of a host");
  return bytes;
}

/** The image of a peer set with its compiled hash key, and its ring or table, for `peers_load`. Throws CoreError. */
export function compilePeerSetImage(core: Core, set: PeerSetSource): Uint8Array {
  const hashed = hashTemplate(set.method) ?? NO_TEMPLATE;
  const source = encodePeerSet(set, compileKey(set.key, hashed, set.sessionCookie));
  return core.withBytes(source, (at, length) => {
    const image = compilePeerSet(core.exports, at, length, 0);
    if (image < 0) throw coreError(image, `peers of ${set.key}`);
    const bytes = core.bytes();
    const { bytes: size } = peerSetSizes(new DataView(bytes.buffer), image);
    const copy = bytes.slice(image, image + size);
    core.exports.free(image);
    return copy;
  });
}
