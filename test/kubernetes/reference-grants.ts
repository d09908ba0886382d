import type { KubeObject } from "../real/kube/client.js";

type Version = "v1" | "v1beta1";

const text = (maxLength: number, pattern?: string) => ({ type: "string", maxLength, ...(pattern && { pattern }) });
const list = (properties: Record<string, unknown>, required: string[]) => ({
  type: "array",
  minItems: 1,
  maxItems: 16,
  items: { type: "object", required, properties },
});
const group = text(253, "^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");
const kind = { ...text(63, "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"), minLength: 1 };
const namespace = { ...text(63, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), minLength: 1 };
const name = { ...text(253), minLength: 1 };

const spec = {
  type: "object",
  required: ["from", "to"],
  properties: {
    from: list({ group, kind, namespace }, ["group", "kind", "namespace"]),
    to: list({ group, kind, name }, ["group", "kind"]),
  },
};

/** The definition as the Gateway API installs it: the same versions, fields and limits. Objects are stored as v1beta1. */
export function grantDefinition(...served: Version[]): KubeObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: "referencegrants.gateway.networking.k8s.io",
      // The API server asks for this in groups of Kubernetes.
      annotations: { "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api/pull/4530" },
    },
    spec: {
      group: "gateway.networking.k8s.io",
      scope: "Namespaced",
      names: {
        kind: "ReferenceGrant",
        singular: "referencegrant",
        plural: "referencegrants",
        listKind: "ReferenceGrantList",
      },
      versions: (["v1", "v1beta1"] as const).map((version) => ({
        name: version,
        served: served.includes(version),
        storage: version === "v1beta1",
        schema: { openAPIV3Schema: { type: "object", required: ["spec"], properties: { spec } } },
      })),
    },
  };
}

/** A grant of the namespace `space` to the VirtualServers of `default`, for all objects of the kinds. */
export const grant = (name: string, space: string, kinds: string[], version: Version = "v1"): KubeObject => ({
  apiVersion: `gateway.networking.k8s.io/${version}`,
  kind: "ReferenceGrant",
  metadata: { name, namespace: space },
  spec: {
    from: [{ group: "k8s.njet.org", kind: "VirtualServer", namespace: "default" }],
    to: kinds.map((kind) => ({ group: kind === "VirtualServerRoute" ? "k8s.njet.org" : "", kind })),
  },
});
