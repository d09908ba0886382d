/** njet-kic/core: routing, hashing, regexes and health states of the core, for any JavaScript runtime with WebAssembly. */
export type { PatternChecker, RoutingTable } from "./api.js";
export {
  BUNDLE_KIND,
  type BundleRecord,
  readBundle,
  readUpstream,
  type UpstreamDescription,
  upstreamRecord,
  writeBundle,
} from "./bundle.js";
export { Core } from "./core.js";
export type { CoreExports } from "./core-exports.js";
export type { CoreInput, CoreModuleOrBytes, CoreResponse } from "./core-input.js";
export type * from "./decision.js";
export { CoreError, type CoreErrorCode, type RegexProblem } from "./errors.js";
export { HashRing, type RingLayout, type RingPeer } from "./hash-ring.js";
export { type HealthRule, type HealthState, HealthTracker, type HealthTransition } from "./health-tracker.js";
export { compilePeerSetImage, compileShardImage } from "./images.js";
export { type LoadedBundle, loadBundle } from "./load-bundle.js";
export { RegexEngine, type RegexOptions, RegexProgram } from "./regex.js";
export { RouteTable } from "./route-table.js";
export type * from "./source.js";
export { patternOf, patternText } from "./source.js";
