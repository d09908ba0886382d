/** Objects that collide, delegate, share and break in many ways, each in several versions. */
import fc from "fast-check";
import { makeCertificate, tlsSecret } from "../resources/certificates.js";
import { changeOf, parseYaml, removalOf } from "./model-support.js";

const CERTIFICATES = [makeCertificate("a.example.com"), makeCertificate("b.example.com")];
const METADATA = [
  "",
  ", creationTimestamp: '2024-01-01T00:00:00Z'",
  ", creationTimestamp: '2024-02-01T00:00:00Z', uid: x",
];
const HOSTS = ["a.example.com", "b.example.com", "'*.example.com'"];

function ingressVersions(name: string): string[] {
  return METADATA.flatMap((age) =>
    [...HOSTS, "''"].map(
      (host, index) => `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ${name}${age}${
        index === 1 ? ", annotations: {njet.org/tls-cert-namespace: other}" : ""
      }}, spec: {
        ${index === 0 ? "" : `defaultBackend: {service: {name: s1, port: {number: 80}}},`}
        rules: ${
          index === 3 && age === ""
            ? "[]"
            : `[{host: ${host}, http: {paths: [
          {path: /${index === 1 ? "x" : "y"}, pathType: Prefix, backend: {service: {name: s2, port: {name: http}}}}]}}]`
        },
        tls: [{hosts: [${index === 2 ? "a.example.com" : "b.example.com"}], secretName: c${index % 2}}]}}`,
    ),
  );
}

function serverVersions(name: string): string[] {
  return METADATA.flatMap((age) =>
    HOSTS.map(
      (host, index) => `{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: ${name}${age}}, spec: {
        host: ${host}, tls: {secret: ${age === "" ? "other/" : ""}c${index % 2}},
        upstreams: [{name: u, service: ${index === 0 ? "other/" : ""}s1, port: ${index === 2 ? 81 : 80}}],
        ${index === 1 ? "ingressClassName: edge," : ""}
        routes: [{path: /r, route: ${age === METADATA[1] ? "other/" : ""}part}, {path: /, action: {pass: ${index === 2 && age === "" ? "nowhere" : "u"}}}]}}`,
    ),
  );
}

/** Grants that overlap, name one object or all of a kind, or are wrong. */
function grantVersions(name: string, namespace: string, user: string, kinds: string[]): string[] {
  const group = (kind: string) =>
    ({ Ingress: "networking.k8s.io", VirtualServer: "k8s.njet.org", VirtualServerRoute: "k8s.njet.org" })[kind] ?? "''";
  const targets = ["Service, name: s1", "Service", "Secret, name: c0", "Secret", "VirtualServerRoute, name: part"];
  const from = kinds.map((kind) => `{group: ${group(kind)}, kind: ${kind}, namespace: ${user}}`);
  const to = targets.map((target) => `{group: ${group(target.split(",")[0])}, kind: ${target}}`);
  return [...to, to.join(", "), "7"].map(
    (list, index) => `{apiVersion: gateway.networking.k8s.io/v1, kind: ReferenceGrant, metadata: {name: ${name},
      namespace: ${namespace}}, spec: {from: [${index % 2 === 0 ? from.join(", ") : from.at(-1)}], to: [${list}]}}`,
  );
}

const VERSIONS: string[][] = [
  ingressVersions("i1"),
  ingressVersions("i2"),
  ingressVersions("i3"),
  serverVersions("v1"),
  serverVersions("v2"),
  ["/r/1", "/r/2", "/elsewhere"].flatMap((path) =>
    HOSTS.slice(0, 2).map(
      (host) => `{apiVersion: k8s.njet.org/v1, kind: VirtualServerRoute, metadata: {name: part}, spec: {host: ${host},
        upstreams: [{name: u, service: s2, port: 80}], subroutes: [{path: ${path}, action: {pass: u}}]}}`,
    ),
  ),
  HOSTS.map(
    (host) => `{apiVersion: k8s.njet.org/v1, kind: VirtualServerRoute, metadata: {name: part, namespace: other}, spec: {
      host: ${host}, upstreams: [{name: u, service: s1, port: 80}, {name: v, service: default/s2, port: 80}],
      subroutes: [{path: /r/1, action: {pass: u}}, {path: /r/2, action: {pass: v}}]}}`,
  ),
  ["{ports: [{port: 80}]}"].map(
    (spec) => `{apiVersion: v1, kind: Service, metadata: {name: s1, namespace: other}, spec: ${spec}}`,
  ),
  ["10.1.0.1", "10.1.0.2"].map(
    (address) => `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
      metadata: {name: e1, namespace: other, labels: {kubernetes.io/service-name: s1}},
      ports: [{port: 8080}], endpoints: [{addresses: [${address}]}]}`,
  ),
  ...["g1", "g2"].map((name) => grantVersions(name, "other", "default", ["Ingress", "VirtualServer"])),
  grantVersions("g3", "default", "other", ["VirtualServerRoute"]),
  ["{ports: [{port: 80}]}", "{type: ExternalName}", "{ports: [{port: 81}], publishNotReadyAddresses: true}"].map(
    (spec) => `{apiVersion: v1, kind: Service, metadata: {name: s1}, spec: ${spec}}`,
  ),
  ["{ports: [{port: 80, name: http}]}", "7"].map(
    (spec) => `{apiVersion: v1, kind: Service, metadata: {name: s2}, spec: ${spec}}`,
  ),
  ...["e1", "e2"].map((name) =>
    ["s1", "s2"].flatMap((service) =>
      ["{ready: true}", "{ready: false}", "{terminating: true, serving: true}"].map(
        (conditions) => `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
          metadata: {name: ${name}, labels: {kubernetes.io/service-name: ${service}}},
          ports: [{port: 8080}, {name: http, port: 8081}],
          endpoints: [{addresses: [10.0.0.1], conditions: ${conditions}}, {addresses: [10.0.0.2], conditions: {ready: false}}]}`,
      ),
    ),
  ),
  ["njet.org/ingress-controller", "example.org/other"].map(
    (controller) =>
      `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: edge}, spec: {controller: ${controller}}}`,
  ),
];

/** The versions of each object. */
export const OBJECTS = [
  ...VERSIONS.map((versions) => versions.map((text) => parseYaml(text)[0])),
  ...["c0", "c1"].map((name) => [
    ...CERTIFICATES.map((certificate) => tlsSecret(name, certificate)),
    tlsSecret(name, {}),
  ]),
  ...["c0", "c1"].map((name) => [
    { ...tlsSecret(name, CERTIFICATES[0]), metadata: { name, namespace: "other" } },
    { ...tlsSecret(name, CERTIFICATES[1]), metadata: { name, namespace: "other" } },
  ]),
];

/** A change of a random object: one of its versions, or its removal. */
export const randomChange = fc
  .tuple(fc.nat(OBJECTS.length - 1), fc.nat(), fc.nat(4))
  .map(([object, version, removal]) => {
    const versions = OBJECTS[object];
    const chosen = versions[version % versions.length];
    return removal === 0 ? removalOf(chosen) : changeOf(chosen);
  });
