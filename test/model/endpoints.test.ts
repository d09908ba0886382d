import { describe, expect, it } from "vitest";
import { changeOf, modelOf, modelOfYaml, parseYaml, removalOf, type SourceObject, stateText } from "./model-support.js";

const ingress = (port: string) => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {defaultBackend: {service: {name: web, port: ${port}}}}
---`;

const service = (spec: string) => `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: ${spec}
---`;

const slice = (name: string, endpoints: string, ports = "[{port: 8080}]") => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: ${ports}
endpoints: ${endpoints}
---`;

const PLAIN = ingress("{number: 80}") + service("{ports: [{port: 80, targetPort: 8080}]}");

function peersOf(objects: SourceObject[]): string[] {
  const [upstream] = modelOf(objects).snapshot().upstreams.values();
  return upstream.peers.peers.map(({ address, port }) => `${address} ${port}`);
}
const peers = (text: string) => peersOf(parseYaml(text));

describe("peers", () => {
  it("are counted once, whatever the number of slices and the spelling of the address, in one order", () => {
    const text =
      PLAIN +
      slice("a", "[{addresses: ['2001:db8:0:0::1']}, {addresses: [10.0.0.2]}]") +
      slice("b", "[{addresses: ['2001:DB8::1']}, {addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]");
    expect(peers(text)).toEqual(["10.0.0.1 8080", "10.0.0.2 8080", "2001:db8::1 8080"]);
    expect(peersOf(parseYaml(text).reverse())).toEqual(peers(text));
  });

  it("that are not ready are left out unless the service publishes them", () => {
    const endpoints = "[{addresses: [10.0.0.1], conditions: {ready: false}}, {addresses: [10.0.0.2], conditions: {}}]";
    expect(peers(PLAIN + slice("a", endpoints))).toEqual(["10.0.0.2 8080"]);
    const published = ingress("{number: 80}") + service("{publishNotReadyAddresses: true, ports: [{port: 80}]}");
    expect(peers(published + slice("a", endpoints))).toEqual(["10.0.0.1 8080", "10.0.0.2 8080"]);
  });

  it("that are ready in one slice and not in another are ready", () => {
    const text =
      PLAIN +
      slice("a", "[{addresses: [10.0.0.1], conditions: {ready: false}}]") +
      slice("b", "[{addresses: [10.0.0.1]}]");
    expect(peers(text)).toEqual(["10.0.0.1 8080"]);
  });

  it("that terminate get nothing new while another peer is there", () => {
    const leaving = "{addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}";
    expect(peers(PLAIN + slice("a", `[${leaving}, {addresses: [10.0.0.2]}]`))).toEqual(["10.0.0.2 8080"]);
    expect(peers(PLAIN + slice("a", `[${leaving}]`))).toEqual(["10.0.0.1 8080"]);
  });

  it("that terminate and serve no more are never used", () => {
    const gone = "{addresses: [10.0.0.1], conditions: {ready: false, serving: false, terminating: true}}";
    expect(peers(PLAIN + slice("a", `[${gone}]`))).toEqual([]);
  });

  it("have the port that the slice gives to the name of the service port", () => {
    const ports = "[{name: metrics, port: 9100}, {name: http, port: 8443}]";
    const named = service("{ports: [{name: http, port: 80}, {name: metrics, port: 9090}]}");
    const endpoints = "[{addresses: [10.0.0.1]}]";
    expect(peers(ingress("{name: http}") + named + slice("a", endpoints, ports))).toEqual(["10.0.0.1 8443"]);
    expect(peers(ingress("{number: 9090}") + named + slice("a", endpoints, ports))).toEqual(["10.0.0.1 9100"]);
  });

  it("use the TCP port where a number stands for TCP and UDP", () => {
    const both = service("{ports: [{name: u, port: 80, protocol: UDP}, {name: t, port: 80, protocol: TCP}]}");
    const ports = "[{name: u, port: 1, protocol: UDP}, {name: t, port: 2}]";
    expect(peers(ingress("{number: 80}") + both + slice("a", "[{addresses: [10.0.0.1]}]", ports))).toEqual([
      "10.0.0.1 2",
    ]);
  });

  it("are IP addresses: names are left out with a warning", () => {
    const model = modelOfYaml(PLAIN + slice("a", "[{addresses: [host.example.com]}, {addresses: ['fe80::1%eth0']}]"));
    expect(stateText(model, "EndpointSlice", "a")).toBe(
      "Warning AddedOrUpdatedWithWarning ENDPOINT_IGNORED@endpoints[0].addresses[0] ENDPOINT_IGNORED@endpoints[1].addresses[0]",
    );
    expect([...model.snapshot().upstreams.values()][0].peers.peers).toEqual([]);
  });
});

describe("an upstream without peers is there all the same, and its object says why", () => {
  it.each([
    ["a missing service", ingress("{number: 80}"), "SERVICE_MISSING"],
    ["a missing port", ingress("{number: 81}") + service("{ports: [{port: 80}]}"), "SERVICE_PORT_MISSING"],
    [
      "an ExternalName",
      ingress("{number: 80}") + service("{type: ExternalName, externalName: a.b}"),
      "SERVICE_EXTERNAL_NAME",
    ],
  ])("%s", (_title, text, code) => {
    const model = modelOfYaml(text);
    const [upstream] = model.snapshot().upstreams.values();
    expect(upstream.peers).toMatchObject({ key: expect.stringMatching(/^Ingress\/default\/web\/web:8/), peers: [] });
    expect(stateText(model, "Ingress", "web")).toBe(
      `Warning AddedOrUpdatedWithWarning ${code}@spec.defaultBackend.service`,
    );
  });
});

describe("changes of endpoints", () => {
  it("change the upstream and nothing else", () => {
    const model = modelOfYaml(PLAIN + slice("a", "[{addresses: [10.0.0.1]}]"));
    const [changed] = parseYaml(slice("a", "[{addresses: [10.0.0.9]}]"));
    const change = model.update([changeOf(changed)]);
    expect([...change.upstreams.keys()]).toEqual(["Ingress/default/web/web:80"]);
    expect(change.hosts.size + change.certificates.size).toBe(0);
    expect([...change.objects].sort()).toEqual(["EndpointSlice/default/a", "Ingress/default/web"]);
  });

  it("that leave the peers as they are change nothing", () => {
    const model = modelOfYaml(PLAIN + slice("a", "[{addresses: [10.0.0.1]}]"));
    const [second] = parseYaml(slice("b", "[{addresses: [10.0.0.1]}]"));
    expect(model.update([changeOf(second)]).upstreams.size).toBe(0);
    expect(model.update([removalOf(second)]).upstreams.size).toBe(0);
  });

  it("follow a slice to another service", () => {
    const model = modelOfYaml(PLAIN + slice("a", "[{addresses: [10.0.0.1]}]"));
    const [moved] = parseYaml(
      slice("a", "[{addresses: [10.0.0.1]}]").replace("service-name: web", "service-name: other"),
    );
    const { upstreams } = model.update([changeOf(moved)]);
    expect(upstreams.get("Ingress/default/web/web:80")?.peers.peers).toEqual([]);
  });
});

it("two objects balance one service as upstreams of their own", () => {
  const server = (name: string) => `
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: {name: ${name}}
spec:
  host: ${name}.example.com
  upstreams: [{name: app, service: web, port: 80}, {name: unused, service: web, port: 80}]
  routes: [{path: /, action: {pass: app}}]
---`;
  const { upstreams } = modelOfYaml(server("a") + server("b")).snapshot();
  expect([...upstreams.keys()]).toEqual(["VirtualServer/default/a/app", "VirtualServer/default/b/app"]);
});
