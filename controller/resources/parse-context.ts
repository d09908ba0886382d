import type { PatternChecker } from "../../core-wasm/binding/api.js";

/** What parsing depends on besides the object itself. */
export interface ParseContext {
  checker: PatternChecker;
}
