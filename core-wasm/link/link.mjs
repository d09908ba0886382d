// The last step of the core's build: puts the functions in the order of function-order.txt and drops their names.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readModule } from "./wasm-functions.mjs";

/** What the compiler writes: the core with the names of its functions. */
export const NAMED_CORE = fileURLToPath(new URL("../../dist/core.named.wasm", import.meta.url));
const CORE = fileURLToPath(new URL("../../dist/core.wasm", import.meta.url));
export const ORDER_FILE = fileURLToPath(new URL("function-order.txt", import.meta.url));

/** The indices of a module's functions in the order of the file; functions that it does not name come last. */
export function readOrder(module) {
  const places = new Map(
    readFileSync(ORDER_FILE, "utf8")
      .split("\n")
      .map((name, place) => [name, place]),
  );
  const placeOf = ({ name }) => places.get(name) ?? places.size;
  return module.functions
    .map((_, index) => index)
    .sort((a, b) => placeOf(module.functions[a]) - placeOf(module.functions[b]) || a - b);
}

/** Writes core.wasm from what the compiler wrote. */
export function linkCore() {
  const module = readModule(readFileSync(NAMED_CORE));
  writeFileSync(CORE, module.write(readOrder(module)));
}
