import { loadCore } from "../../controller/core-file.js";
import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";

/** The core that tests of one file share. Tests that look at its memory load one of their own. */
export const sharedCore: Core = await loadCore();

/** A fresh, empty routing table over the shared core. */
export function makeRoutingTable(): RouteTable {
  return new RouteTable(sharedCore);
}

/** The checker that tests of objects use. */
export function patternChecker(): PatternChecker {
  return sharedCore;
}
