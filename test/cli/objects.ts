/** Objects as YAML text, for folders that a command serves. */

/** A Service and its one endpoint. */
export function service(name: string, address: string, port: number): string {
  return `apiVersion: v1
kind: Service
metadata: { name: ${name} }
spec: { ports: [{ port: 80, targetPort: http }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ port: ${port} }]
endpoints: [{ addresses: [${address}] }]
`;
}

/** An Ingress that sends a whole host to a service. */
export function ingress(name: string, host: string, to: string, tlsSecret?: string): string {
  const tls = tlsSecret === undefined ? "" : `\n  tls: [{ hosts: [${host}], secretName: ${tlsSecret} }]`;
  return `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: ${name} }
spec:
  ingressClassName: njet${tls}
  rules:
    - host: ${host}
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: ${to}, port: { number: 80 } } } }] }
`;
}

/** A Secret with a certificate and its key. */
export function tlsSecret(name: string, pair: { chain: string; key: string }): string {
  const encode = (text: string) => Buffer.from(text).toString("base64");
  return `apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: { name: ${name} }
data:
  tls.crt: ${encode(pair.chain)}
  tls.key: ${encode(pair.key)}
`;
}
