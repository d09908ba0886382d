import { describe, expect, it } from "vitest";
import { changeOf, modelOf, modelOfYaml, parseYaml, type SourceObject } from "./model-support.js";

const server = (upstream: string, name = "web") => `
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: {name: ${name}}
spec:
  host: ${name}.example.com
  upstreams: [{name: app, service: web, port: 80${upstream}}]
  routes: [{path: /, action: {pass: app}}]
---`;

const ingress = (name: string, annotations: string) => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ${name}, annotations: {${annotations}}}
spec: {rules: [{host: ${name}.example.com, http: {paths: [
  {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---`;

const slice = (endpoints: string, name = "a") => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}, labels: {kubernetes.io/service-name: web}}
ports: [{port: 8080}]
endpoints: [${endpoints}]
---`;

const SERVICE = "\n{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}\n---";
const READY = "{addresses: [10.0.0.1]}";
const LEAVING = "{addresses: [10.0.0.2], conditions: {ready: false, serving: true, terminating: true}}";
const GONE = "{addresses: [10.0.0.3], conditions: {ready: false, serving: false, terminating: true}}";
const COOKIE = ", sessionCookie: {enable: true, name: srv, path: /}";

function upstreamOf(objects: SourceObject[]) {
  const [upstream] = modelOf(objects).snapshot().upstreams.values();
  return upstream;
}

/** Peers of the first upstream as `address`, with `draining` behind those that are. */
function peersOf(objects: SourceObject[]): string[] {
  return upstreamOf(objects).peers.peers.map(({ address, draining }) => (draining ? `${address} draining` : address));
}

describe("an upstream of the model", () => {
  it("has all that says how its requests are spread, each in its place", () => {
    const fields = `, lb-method: least_conn, max-conns: 9, queue: {size: 4}, slow-start: 30s,
      healthCheck: {enable: true, path: /up, mandatory: true}${COOKIE}`;
    expect(upstreamOf(parseYaml(server(fields) + SERVICE + slice(READY)))).toMatchObject({
      peers: {
        key: "VirtualServer/default/web/app",
        method: { kind: "least-conn" },
        limits: { maxFails: 1, failTimeout: 10_000, maxConns: 9, slowStart: 30_000, mandatory: true },
        sessionCookie: "srv",
        peers: [{ address: "10.0.0.1", port: 8080, weight: 1 }],
      },
      healthCheck: { type: "http", path: "/up" },
      sessionCookie: { name: "srv", path: "/" },
      queue: { size: 4, timeout: 60_000 },
    });
  });

  it("has nothing that is not switched on", () => {
    const upstream = upstreamOf(parseYaml(server("") + SERVICE + slice(READY)));
    expect(Object.keys(upstream).sort()).toEqual(["peers", "transport"]);
    expect(Object.keys(upstream.peers).sort()).toEqual(["display", "key", "limits", "method", "peers"]);
  });

  it("of an Ingress follows the annotations of that Ingress, though another one names the same service", () => {
    const text = ingress("one", "njet.org/lb-method: ip_hash") + ingress("two", "njet.org/max-fails: '5'") + SERVICE;
    const { upstreams } = modelOfYaml(text).snapshot();
    expect(upstreams.get("Ingress/default/one/web:80")?.peers).toMatchObject({ method: { kind: "ip-hash" } });
    expect(upstreams.get("Ingress/default/two/web:80")?.peers).toMatchObject({
      method: { kind: "round-robin" },
      limits: { maxFails: 5 },
    });
  });
});

describe("an endpoint that terminates and still serves", () => {
  it("stays as a draining peer where clients keep to their peer by a cookie", () => {
    const text = server(COOKIE) + SERVICE + slice(`${READY}, ${LEAVING}, ${GONE}`);
    expect(peersOf(parseYaml(text))).toEqual(["10.0.0.1", "10.0.0.2 draining"]);
    expect(peersOf(parseYaml(text).reverse())).toEqual(["10.0.0.1", "10.0.0.2 draining"]);
  });

  it("is draining as well where nothing else is left", () => {
    expect(peersOf(parseYaml(server(COOKIE) + SERVICE + slice(LEAVING)))).toEqual(["10.0.0.2 draining"]);
  });

  it("is left out without a cookie, unless nothing else is there", () => {
    expect(peersOf(parseYaml(server("") + SERVICE + slice(`${READY}, ${LEAVING}`)))).toEqual(["10.0.0.1"]);
    expect(peersOf(parseYaml(server("") + SERVICE + slice(LEAVING)))).toEqual(["10.0.0.2"]);
  });

  it("takes part in full if another slice has it ready", () => {
    const ready = "{addresses: [10.0.0.2]}";
    const text = server(COOKIE) + SERVICE + slice(LEAVING, "a") + slice(ready, "b");
    expect(peersOf(parseYaml(text))).toEqual(["10.0.0.2"]);
    expect(peersOf(parseYaml(server(COOKIE) + SERVICE + slice(ready, "a") + slice(LEAVING, "b")))).toEqual([
      "10.0.0.2",
    ]);
  });
});

describe("a change", () => {
  const OBJECTS = parseYaml(server(COOKIE) + server("", "other") + SERVICE + slice(READY));
  const WEB = "VirtualServer/default/web/app";

  it.each([
    `${COOKIE}, max-fails: 2`,
    `${COOKIE}, fail-timeout: 11s`,
    `${COOKIE}, max-conns: 3`,
    `${COOKIE}, max-conns: 3, queue: {size: 1}`,
    `${COOKIE}, slow-start: 3s`,
    `${COOKIE}, lb-method: least_conn`,
    `${COOKIE}, lb-method: hash $uri`,
    `${COOKIE}, healthCheck: {enable: true}`,
    COOKIE.replace("path: /", "path: /app"),
    COOKIE.replace("srv", "other"),
    "",
  ])("to the upstream fields%s is a change of that upstream and of nothing else", (fields) => {
    const model = modelOf(OBJECTS);
    const [changed] = parseYaml(server(fields));
    const change = model.update([changeOf(changed)]);
    expect([...change.upstreams.keys()]).toEqual([WEB]);
    expect(change.hosts.size).toBe(0);
  });

  it.each(["interval: 6s", "fails: 2", "port: 81", "panic: true", "mandatory: true", "headers: [{name: a, value: b}]"])(
    "of the check to %s is a change of the upstream",
    (field) => {
      const model = modelOf(parseYaml(server(", healthCheck: {enable: true}") + SERVICE));
      const [changed] = parseYaml(server(`, healthCheck: {enable: true, ${field}}`));
      expect([...model.update([changeOf(changed)]).upstreams.keys()]).toEqual([WEB]);
    },
  );

  it("of an endpoint to terminating marks the peer, and leaves hosts alone", () => {
    const model = modelOf(OBJECTS);
    const [changed] = parseYaml(slice(LEAVING.replace("10.0.0.2", "10.0.0.1")));
    const change = model.update([changeOf(changed)]);
    // The other upstream of the service has no cookie, and nothing else is there: its peer stays as it was.
    expect([...change.upstreams.keys()]).toEqual([WEB]);
    expect(change.hosts.size).toBe(0);
    expect(change.upstreams.get(WEB)?.peers.peers).toEqual([
      { address: "10.0.0.1", port: 8080, weight: 1, draining: true },
    ]);
  });

  it("that says the same in other words changes nothing", () => {
    const model = modelOf(OBJECTS);
    const [changed] = parseYaml(server(`, max-fails: 1, fail-timeout: 10000ms${COOKIE}, healthCheck: {enable: false}`));
    expect(model.update([changeOf(changed)]).upstreams.size).toBe(0);
  });
});
