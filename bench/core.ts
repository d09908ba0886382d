/** The core as built, for the cases that call its exports themselves. */
import { readFileSync } from "node:fs";
import type { PeerSetExports } from "../core-wasm/binding/peer-set.js";

declare const WebAssembly: { instantiate(bytes: Uint8Array): Promise<{ instance: { exports: unknown } }> };

/** A fresh instance of dist/core.wasm. The compiled benchmark is in dist/bench. */
export async function loadCoreExports(): Promise<PeerSetExports> {
  const bytes = readFileSync(new URL("../core.wasm", import.meta.url));
  return (await WebAssembly.instantiate(bytes)).instance.exports as PeerSetExports;
}
