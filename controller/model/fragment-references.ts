import type { RoutingFragment } from "../resources/fragments.js";
import type { Reference } from "../resources/reference.js";

/** The VirtualServerRoutes (`namespace/name`) that a VirtualServer delegates to. */
export function delegatedNames(fragment: RoutingFragment): string[] {
  if (fragment.kind !== "VirtualServer") return [];
  return fragment.entries.filter((entry) => entry.kind === "delegated").map((entry) => entry.to);
}

/** References to other namespaces, each with the upstream or host that depends on it. */
export function referencesOf(fragment: RoutingFragment): { reference: Reference; item: string }[] {
  const delegated = fragment.kind === "VirtualServer" ? fragment.entries : [];
  const all = [
    ...fragment.upstreams.map(({ reference, key }) => ({ reference, item: key })),
    ...fragment.certificates.map(({ reference, host }) => ({ reference, item: host })),
    ...delegated.map((entry) => ({
      reference: entry.kind === "delegated" ? entry.reference : undefined,
      item: hostOf(fragment),
    })),
  ];
  return all.flatMap(({ reference, item }) => (reference === undefined ? [] : [{ reference, item }]));
}

/** The host of a VirtualServer or VirtualServerRoute; empty for an Ingress, which may have several. */
export function hostOf(fragment: RoutingFragment): string {
  return fragment.kind === "Ingress" ? "" : fragment.host;
}
