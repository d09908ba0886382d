import { readFileSync } from "node:fs";
import { Core } from "../core-wasm/binding/core.js";

/** Where core.wasm lies: beside the compiled controller, or in dist/ when the sources themselves are run. */
const PLACES = ["../core.wasm", "../dist/core.wasm"];

/** Loads the core that the build has made. Throws an Error that says how to build it where there is none. */
export async function loadCore(): Promise<Core> {
  for (const place of PLACES) {
    let bytes: Uint8Array;
    try {
      bytes = readFileSync(new URL(place, import.meta.url));
    } catch {
      continue;
    }
    return Core.load(bytes);
  }
  throw new Error("core.wasm is missing: run npm run build");
}
