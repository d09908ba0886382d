import module from "../../core.wasm";

/** core.wasm of this package: for worker platforms, which compile modules when a worker is deployed, and none later. */
export function coreModule(): Promise<WebAssembly.Module> {
  return Promise.resolve(module);
}
