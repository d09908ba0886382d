import type { KubeObject } from "../../real/kube/client.js";
import { makeCertificate } from "../../support/certificates.js";

/** A Secret with a new certificate, which `commonName` tells apart. */
export function tlsSecret(name: string, commonName: string, host: string): KubeObject {
  const { chain, key } = makeCertificate(commonName, host);
  const encoded = (text: string) => Buffer.from(text).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/tls",
    metadata: { name, namespace: "default" },
    data: { "tls.crt": encoded(chain), "tls.key": encoded(key) },
  };
}

/** Routes of a VirtualServer whose answers tell which change they come from. */
export function roundRoutes(upstream: string, round: number): KubeObject[string] {
  const responseHeaders = { add: [{ name: "X-Round", value: String(round) }] };
  return [{ path: "/", action: { proxy: { upstream, responseHeaders } } }];
}
