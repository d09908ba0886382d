import type { PatternChecker } from "../../core-wasm/binding/api.js";

/** What parsing depends on besides the object itself. */
export interface ParseContext {
  checker: PatternChecker;
  /** Whether `service: namespace/name` of an upstream may name another namespace. */
  crossNamespaceServices: boolean;
}
