import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import type { KubeObject } from "../real/kube/client.js";

export const namespace = (name: string, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});

export const service = (name: string, space = "default"): KubeObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace: space },
  spec: { ports: [{ port: 80 }] },
});

export const ingress = (name: string, className: string | undefined = "njet", space = "default"): KubeObject => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name, namespace: space },
  spec: {
    ...(className === "" ? {} : { ingressClassName: className }),
    rules: [
      {
        host: `${name}.example.com`,
        http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name, port: { number: 80 } } } }] },
      },
    ],
  },
});

export const slice = (name: string, serviceName: string, addresses: string[], space = "default"): KubeObject => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name, namespace: space, labels: { "kubernetes.io/service-name": serviceName } },
  addressType: "IPv4",
  ports: [{ name: "", port: 8080, protocol: "TCP" }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});

export const ingressClass = (name: string, controller: string, isDefault = false): KubeObject => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: { name, annotations: { "ingressclass.kubernetes.io/is-default-class": String(isDefault) } },
  spec: { controller },
});

/** The definition of a kind, from deploy/crds. */
export function definition(kind: "VirtualServer" | "VirtualServerRoute"): KubeObject {
  const file = `deploy/crds/k8s.njet.org_${kind.toLowerCase()}s.yaml`;
  return parse(readFileSync(join(PACKAGE_ROOT ?? "", file), "utf8"));
}

export const virtualServer = (name: string, spec: Record<string, unknown> = {}): KubeObject => ({
  apiVersion: "k8s.njet.org/v1",
  kind: "VirtualServer",
  metadata: { name, namespace: "default" },
  spec: {
    ingressClassName: "njet",
    host: `${name}.example.com`,
    upstreams: [{ name: "main", service: name, port: 80 }],
    routes: [{ path: "/", action: { pass: "main" } }],
    ...spec,
  },
});
