import { readFile } from "node:fs/promises";

/** core.wasm of this package, compiled: for Node, Deno and Bun. Rejects where the file can't be read. */
export async function coreModule(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await readFile(new URL("../../core.wasm", import.meta.url)));
}
