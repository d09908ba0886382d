import { conditionHolds } from "./conditions.js";
import type { ParsedLocation } from "./directives.js";
import type { PlaneServer, PlaneState } from "./plane-state.js";
import type { Variables } from "./variables.js";

/** The server for a host: its name, the longest wildcard, else the first of the address. */
export function serverFor(state: PlaneState, address: string, host: string): PlaneServer | undefined {
  const candidates = state.servers.filter(({ listens }) => listens.includes(address));
  const named = (name: string) => candidates.find(({ names }) => names.includes(name));
  const exact = named(host);
  if (exact) return exact;
  const labels = host.split(".");
  for (let i = 1; i < labels.length; i++) {
    const wildcard = named(`*.${labels.slice(i).join(".")}`);
    if (wildcard) return wildcard;
  }
  return candidates[0];
}

/** Conditional locations come first, in the order of their creation; then the rules of NGINX. */
export function locationFor<L extends ParsedLocation>(locations: readonly L[], variables: Variables): L | undefined {
  for (const location of locations) {
    if (location.condition && conditionHolds(location.condition, (name) => variables.read(name))) return location;
  }
  const { path } = variables;
  const plain = locations.filter(({ condition }) => condition === undefined);
  const exact = plain.find(({ rule, name }) => rule === "=" && name === path);
  if (exact) return exact;
  let longest: L | undefined;
  for (const location of plain) {
    const { pattern, rule, name } = location;
    if (pattern || rule === "=" || !path.startsWith(name)) continue;
    if (!longest || name.length > longest.name.length) longest = location;
  }
  if (longest?.rule === "^~") return longest;
  for (const location of plain) {
    const groups = location.pattern?.exec(path);
    // Groups stay empty unless a static pattern has as many: they are only kept where a rewrite asks for them.
    if (groups) return location;
  }
  return longest;
}
