/** Replays requests over bundles in any runtime of JavaScript: nothing of Node is used. */
import type { Core } from "../../core-wasm/binding/core.js";
import { Decider, type SuiteRequest } from "./decision-line.js";

/**
 * The lines of all decisions. `requests`: the lines of `requests.jsonl`, the first of which is its head; `bundleOf`: the bytes
 * of a bundle by the name of its file.
 */
export function replayLines(core: Core, requests: string, bundleOf: (file: string) => Uint8Array): string {
  let decider: Decider | undefined;
  const decisions: string[] = [];
  const [, ...lines] = requests.trimEnd().split("\n");
  for (const line of lines) {
    const value = JSON.parse(line) as SuiteRequest | { bundle: string };
    if ("bundle" in value) {
      decider?.free();
      decider = new Decider(core, bundleOf(value.bundle));
    } else if (decider) decisions.push(decider.decide(value), "\n");
  }
  decider?.free();
  return decisions.join("");
}
