import type { Kind } from "../resources/object-ref.js";

/** A collection of the API that is followed. */
export interface ResourceType {
  kind: Kind | "Namespace";
  /** `group/version`, or `v1` for the core group. */
  apiVersion: string;
  /** An older version, for clusters that serve no other. */
  olderVersion?: string;
  plural: string;
  namespaced: boolean;
  fieldSelector?: string;
  labelSelector?: string;
  /** True if the collection may be missing from the cluster: a 404 then means that it is empty. */
  mayBeMissing: boolean;
  /** True if the collection may be out of our rights: a 403 then means that we do without. */
  mayBeForbidden?: boolean;
}

const core = { apiVersion: "v1", mayBeMissing: false };
const networking = { apiVersion: "networking.k8s.io/v1", mayBeMissing: false };
const custom = { apiVersion: "k8s.njet.org/v1", namespaced: true, mayBeMissing: true };

/** What belongs to the whole cluster, whatever namespaces are watched. */
export const INGRESS_CLASSES: ResourceType = {
  ...networking,
  kind: "IngressClass",
  plural: "ingressclasses",
  namespaced: false,
};

/** What is followed in each namespace that is watched. */
export const NAMESPACED_TYPES: readonly ResourceType[] = [
  { ...networking, kind: "Ingress", plural: "ingresses", namespaced: true },
  { ...core, kind: "Service", plural: "services", namespaced: true },
  {
    kind: "EndpointSlice",
    apiVersion: "discovery.k8s.io/v1",
    plural: "endpointslices",
    namespaced: true,
    mayBeMissing: false,
  },
  { ...core, kind: "Secret", plural: "secrets", namespaced: true, fieldSelector: "type=kubernetes.io/tls" },
  { ...custom, kind: "VirtualServer", plural: "virtualservers" },
  { ...custom, kind: "VirtualServerRoute", plural: "virtualserverroutes" },
  // Without the right to see grants nothing is granted, and everything else goes on.
  {
    kind: "ReferenceGrant",
    apiVersion: "gateway.networking.k8s.io/v1",
    olderVersion: "gateway.networking.k8s.io/v1beta1",
    plural: "referencegrants",
    namespaced: true,
    mayBeMissing: true,
    mayBeForbidden: true,
  },
];

/** The namespaces that carry the labels. */
export function namespaceType(labelSelector: string): ResourceType {
  return { ...core, kind: "Namespace", plural: "namespaces", namespaced: false, labelSelector };
}

/** Path of the collection, or of the object `name` in it. An empty `namespace` means all of them. */
export function resourcePath(type: ResourceType, namespace: string, name = ""): string {
  const root = type.apiVersion.includes("/") ? `/apis/${type.apiVersion}` : `/api/${type.apiVersion}`;
  const scope = type.namespaced && namespace !== "" ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${scope}/${type.plural}${name === "" ? "" : `/${encodeURIComponent(name)}`}`;
}

/** Path and query that list the collection, in pages of `limit`. */
export function listPath(type: ResourceType, namespace: string, limit: number, continueToken: string): string {
  const query = selectors(type);
  query.set("limit", String(limit));
  if (continueToken !== "") query.set("continue", continueToken);
  return `${resourcePath(type, namespace)}?${query}`;
}

/** Path and query that watch the collection from `resourceVersion` on. */
export function watchPath(type: ResourceType, namespace: string, resourceVersion: string, seconds: number): string {
  const query = selectors(type);
  query.set("watch", "1");
  query.set("allowWatchBookmarks", "true");
  query.set("resourceVersion", resourceVersion);
  query.set("timeoutSeconds", String(seconds));
  return `${resourcePath(type, namespace)}?${query}`;
}

function selectors(type: ResourceType): URLSearchParams {
  const query = new URLSearchParams();
  if (type.fieldSelector !== undefined) query.set("fieldSelector", type.fieldSelector);
  if (type.labelSelector !== undefined) query.set("labelSelector", type.labelSelector);
  return query;
}
