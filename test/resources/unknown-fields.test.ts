import { describe, expect, it } from "vitest";
import { parseText, problemTexts } from "./parse-support.js";

const ingress = (spec: string, more = "") =>
  parseText(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: ${spec}${more}}`);

const PORT = "port: {number: 80}";
const withPath = (path: string) => `{rules: [{host: a.b, http: {paths: [${path}]}}]}`;
const withBackend = (backend: string) => withPath(`{path: /, pathType: Prefix, backend: ${backend}}`);
const GOOD = withBackend(`{service: {name: s, ${PORT}}}`);

describe("a field that Kubernetes does not have is a warning", () => {
  const PATHS = "spec.rules[0].http.paths[0]";

  it.each([
    ["spec", `{defaultbackend: 1, ${GOOD.slice(1)}`, "spec.defaultbackend"],
    ["a rule", "{rules: [{host: a.b, hosts: [b.c]}]}", "spec.rules[0].hosts"],
    [
      "http",
      "{rules: [{http: {path: /, paths: [{path: /, pathType: Exact, backend: {service: {name: s, port: {number: 1}}}}]}}]}",
      "spec.rules[0].http.path",
    ],
    [
      "a path",
      withPath(`{path: /, pathtype: Exact, pathType: Prefix, backend: {service: {name: s, ${PORT}}}}`),
      `${PATHS}.pathtype`,
    ],
    ["a backend", withBackend(`{serviceName: s, service: {name: s, ${PORT}}}`), `${PATHS}.backend.serviceName`],
    ["a service", withBackend(`{service: {name: s, namespace: other, ${PORT}}}`), `${PATHS}.backend.service.namespace`],
    [
      "a port",
      withBackend("{service: {name: s, port: {number: 80, protocol: TCP}}}"),
      `${PATHS}.backend.service.port.protocol`,
    ],
    ["tls", "{rules: [{host: a.b}], tls: [{hosts: [a.b], secretname: c}]}", "spec.tls[0].secretname"],
  ])("in %s of an Ingress", (_where, spec, path) => {
    expect(problemTexts(ingress(spec))).toEqual([`warning FIELD_UNKNOWN ${path}`]);
  });

  it("beside spec of an Ingress", () => {
    expect(problemTexts(ingress(GOOD, ", rules: []"))).toEqual(["warning FIELD_UNKNOWN rules"]);
  });

  it("and the message names the field that was meant", () => {
    const parsed = ingress(withPath(`{path: /, path_type: Exact, backend: {service: {name: s, ${PORT}}}}`));
    expect(parsed.problems.map(({ message }) => message)).toContainEqual(expect.stringContaining("is pathType meant?"));
  });

  it.each([
    ["Service", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {port: [{port: 80}]}}", "spec.port"],
    [
      "Service",
      "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, target: 8}]}}",
      "spec.ports[0].target",
    ],
    [
      "EndpointSlice",
      "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}, subsets: []}",
      "subsets",
    ],
    [
      "EndpointSlice",
      "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}, endpoints: [{addresses: [10.0.0.1], ready: false}]}",
      "endpoints[0].ready",
    ],
    [
      "EndpointSlice",
      "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}, endpoints: [{addresses: [10.0.0.1], conditions: {Ready: false}}]}",
      "endpoints[0].conditions.Ready",
    ],
    [
      "IngressClass",
      "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: a}, spec: {controller: a.b/c, default: true}}",
      "spec.default",
    ],
  ])("in a %s: %s", (_kind, text, path) => {
    expect(problemTexts(parseText(text))).toEqual([`warning FIELD_UNKNOWN ${path}`]);
  });
});

describe("objects as a cluster holds them bring no warning", () => {
  const METADATA = `metadata: {name: a, namespace: default, uid: u, resourceVersion: '7', generation: 1,
    creationTimestamp: '2024-01-10T08:00:00Z', labels: {a: b}, managedFields: [{manager: kubectl}], ownerReferences: []}`;

  it.each([
    [
      "Ingress",
      `{apiVersion: networking.k8s.io/v1, kind: Ingress, ${METADATA}, spec: {ingressClassName: njet,
        defaultBackend: {service: {name: s, port: {name: http}}}, tls: [{hosts: [a.b], secretName: c}],
        rules: [{host: a.b, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]},
        status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`,
    ],
    [
      "Service",
      `{apiVersion: v1, kind: Service, ${METADATA}, spec: {type: LoadBalancer, selector: {app: a}, clusterIP: 10.96.0.1,
        clusterIPs: [10.96.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, internalTrafficPolicy: Cluster,
        externalTrafficPolicy: Local, healthCheckNodePort: 30000, sessionAffinity: None, allocateLoadBalancerNodePorts: true,
        ports: [{name: http, protocol: TCP, appProtocol: http, port: 80, targetPort: web, nodePort: 30001}]},
        status: {loadBalancer: {}}}`,
    ],
    [
      "EndpointSlice",
      `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, ${METADATA}, addressType: IPv4,
        ports: [{name: http, protocol: TCP, port: 8080, appProtocol: http}],
        endpoints: [{addresses: [10.0.0.1], conditions: {ready: true, serving: true, terminating: false}, hostname: h,
          nodeName: n, zone: z, targetRef: {kind: Pod, name: p}, hints: {forZones: [{name: z}]}}]}`,
    ],
    [
      "IngressClass",
      `{apiVersion: networking.k8s.io/v1, kind: IngressClass, ${METADATA.replace("namespace: default, ", "")},
        spec: {controller: njet.org/ingress-controller, parameters: {kind: K, name: n}}}`,
    ],
  ])("%s", (_kind, text) => {
    expect(parseText(text).problems).toEqual([]);
  });
});
