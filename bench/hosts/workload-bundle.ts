import { BUNDLE_KIND, type BundleRecord, writeBundle } from "../../core-wasm/binding/bundle.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { compilePeerSetImage, compileShardImage } from "../../core-wasm/binding/images.js";
import { hostRules, UPSTREAMS } from "../route/host-rules.js";
import type { Workload } from "../route/workload.js";

/** The bundle of a workload: a shard for each host, and upstreams of three peers. */
export function bundleOfWorkload(core: Core, { size, routes }: Workload): Uint8Array {
  const records: BundleRecord[] = UPSTREAMS.map((key) => {
    const peers = [1, 2, 3].map((i) => ({ address: `10.0.0.${i}`, port: 8080, weight: 1 }));
    const content = compilePeerSetImage(core, { key, display: key, method: { kind: "round-robin" }, peers });
    return { kind: BUNDLE_KIND.peerSet, key, content };
  });
  for (let first = 0; first < routes.length; first += size.pathsPerHost) {
    const rules = hostRules(routes.slice(first, first + size.pathsPerHost), first);
    records.push({ kind: BUNDLE_KIND.shard, key: routes[first].host, content: compileShardImage(core, rules) });
  }
  return writeBundle(records);
}
