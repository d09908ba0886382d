import type { ObjectRef } from "./object-ref.js";

/** Kinds whose objects may refer to objects of another namespace. */
export type ReferringKind = "Ingress" | "VirtualServer" | "VirtualServerRoute";

/** Kinds of objects of another namespace that may be referred to. */
export type ReferredKind = "Secret" | "Service" | "VirtualServerRoute";

/** A reference to an object of another namespace: acts only where it is allowed. */
export interface Reference {
  from: { kind: ReferringKind; namespace: string };
  to: { kind: ReferredKind; namespace: string; name: string };
}

/** The reference from an object to `to`; undefined within one namespace, where there is nothing to be allowed. */
export function crossReference(from: ObjectRef, to: Reference["to"]): Reference | undefined {
  const { kind, namespace } = from;
  if (namespace === to.namespace || !refers(kind)) return undefined;
  return { from: { kind, namespace }, to };
}

function refers(kind: ObjectRef["kind"]): kind is ReferringKind {
  return kind === "Ingress" || kind === "VirtualServer" || kind === "VirtualServerRoute";
}
