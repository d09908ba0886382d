import type { HostPattern } from "../../core-wasm/binding/source.js";

/** The pattern that patternText wrote. */
export function parsePatternText(text: string): HostPattern {
  if (text === "") return { kind: "any" };
  if (text === "(default)") return { kind: "default" };
  if (text.startsWith("**.")) return { kind: "wildcard", suffix: text.slice(3), labels: "any" };
  if (text.startsWith("*.")) return { kind: "wildcard", suffix: text.slice(2), labels: "one" };
  return { kind: "exact", host: text };
}

/** The pattern of a host as objects write it; `labels` says what a wildcard covers. */
export function hostPattern(host: string, labels: "one" | "any"): HostPattern {
  if (host === "") return { kind: "any" };
  if (host.startsWith("*.")) return { kind: "wildcard", suffix: host.slice(2), labels };
  return { kind: "exact", host };
}
