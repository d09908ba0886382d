// The last step of the core's build: puts the functions in the order of function-order.txt and drops their names.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readModule } from "./wasm-functions.mjs";

/** What the compiler writes: the core with the names of its functions. */
export const NAMED_CORE = fileURLToPath(new URL("../../dist/core.named.wasm", import.meta.url));
const CORE = fileURLToPath(new URL("../../dist/core.wasm", import.meta.url));
export const ORDER_FILE = fileURLToPath(new URL("function-order.txt", import.meta.url));

/**
 * What the file says of a module: its functions' indices in order, and by index the key that its locals are numbered by.
 * A line is the name of a function and, unless it is 0, the key. Functions that the file does not name come last.
 */
export function readOrder(module) {
  const lines = readFileSync(ORDER_FILE, "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  const places = new Map(lines.map(([name, key], place) => [name, { place, key: Number(key ?? 0) }]));
  const known = module.functions.map(({ name }) => places.get(name) ?? { place: places.size, key: 0 });
  const order = known.map((_, index) => index).sort((a, b) => known[a].place - known[b].place || a - b);
  return { order, keys: known.map(({ key }) => key) };
}

/** Writes core.wasm from what the compiler wrote. */
export function linkCore() {
  const module = readModule(readFileSync(NAMED_CORE));
  const { order, keys } = readOrder(module);
  writeFileSync(CORE, module.write(order, keys));
}
