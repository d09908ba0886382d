/** The objects of the `control-plane` table: sites of one Ingress, Service and EndpointSlice each. */
import type { KubeObject } from "../../test/real/kube/client.js";

/** Where peers listen, on every address. */
export const PEER_PORT = 8080;
const PATH = "/shop";

/** What is done with which sites; each figure is one of these. */
export const STABLE = 100;
/** Sites whose endpoints change in the background: from STABLE on. */
export const BACKGROUND = 400;

export const siteName = (index: number): string => `site-${String(index).padStart(5, "0")}`;
export const hostOf = (name: string): string => `${name}.example.com`;

/** What every address of a site begins with. Services have theirs in 10.0.0.0/16. */
export const addressPrefix = (index: number): string => `10.${1 + (index >> 8)}.${index & 255}.`;

/** Three addresses, others for each `version`. */
export function addressesOf(index: number, version: number): string[] {
  const first = 1 + 3 * (version % 80);
  return [first, first + 1, first + 2].map((last) => `${addressPrefix(index)}${last}`);
}

export function ingressOf(name: string, service: string, path = PATH): KubeObject {
  const backend = { service: { name: service, port: { number: 80 } } };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, namespace: "default" },
    spec: {
      ingressClassName: "njet",
      rules: [{ host: hostOf(name), http: { paths: [{ path, pathType: "Prefix", backend }] } }],
    },
  };
}

export function serviceOf(index: number): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: siteName(index), namespace: "default" },
    spec: { ports: [{ name: "http", port: 80, targetPort: PEER_PORT }] },
  };
}

export function sliceOf(index: number, version: number): KubeObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: siteName(index),
      namespace: "default",
      labels: { "kubernetes.io/service-name": siteName(index) },
    },
    addressType: "IPv4",
    ports: [{ name: "http", port: PEER_PORT, protocol: "TCP" }],
    endpoints: addressesOf(index, version).map((address) => ({
      addresses: [address],
      conditions: { ready: true, serving: true, terminating: false },
    })),
  };
}
