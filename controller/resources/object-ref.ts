/** Kinds of objects that are read. */
export const KINDS = [
  "Ingress",
  "IngressClass",
  "VirtualServer",
  "VirtualServerRoute",
  "TransportServer",
  "GlobalConfiguration",
  "Policy",
  "Service",
  "EndpointSlice",
  "Secret",
  "ReferenceGrant",
] as const;

export type Kind = (typeof KINDS)[number];

/** The name of an object. `namespace` is empty for IngressClass, which belongs to the whole cluster. */
export interface ObjectRef {
  kind: Kind;
  namespace: string;
  name: string;
}

/** `Kind/namespace/name`, as decisions and messages show it; `Kind/name` without a namespace. */
export function refText(ref: ObjectRef): string {
  return ref.namespace === "" ? `${ref.kind}/${ref.name}` : `${ref.kind}/${ref.namespace}/${ref.name}`;
}

/** API group of each kind; the core group is the empty text. */
const GROUPS: Record<Kind, string> = {
  Ingress: "networking.k8s.io",
  IngressClass: "networking.k8s.io",
  VirtualServer: "k8s.njet.org",
  VirtualServerRoute: "k8s.njet.org",
  TransportServer: "k8s.njet.org",
  GlobalConfiguration: "k8s.njet.org",
  Policy: "k8s.njet.org",
  Service: "",
  EndpointSlice: "discovery.k8s.io",
  Secret: "",
  ReferenceGrant: "gateway.networking.k8s.io",
};

/** API group of a kind; the empty text for the core group. */
export function groupOf(kind: Kind): string {
  return GROUPS[kind];
}

/** Group of Ingress before Kubernetes 1.14; recognised so that an old file is refused with a reason. */
const OLD_INGRESS_GROUP = "extensions";

/** The kind that is read, or undefined for an object of any other API (a Knative Service is no Service). */
export function recogniseKind(apiVersion: string, kind: string): Kind | undefined {
  const known = KINDS.find((candidate) => candidate === kind);
  if (known === undefined) return undefined;
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  if (group === GROUPS[known]) return known;
  return known === "Ingress" && group === OLD_INGRESS_GROUP ? known : undefined;
}

/** True for kinds that belong to no namespace. */
export function isClusterScoped(kind: Kind): boolean {
  return kind === "IngressClass";
}
