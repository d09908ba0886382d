import { compileCore } from "../binding/core-input.js";

/**
 * core.wasm of this package, fetched and compiled: for browsers. Bundlers see the file by the form of its URL, and bring it
 * along. Throws CoreError CORE_UNREADABLE.
 */
export function coreModule(): Promise<WebAssembly.Module> {
  return compileCore(new URL("../../core.wasm", import.meta.url));
}
