import { describe, expect, it } from "vitest";
import type { CrossNamespaceRules } from "../../controller/model/reference-index.js";
import { RoutingModel } from "../../controller/model/routing-model.js";
import { makeCertificate, tlsSecret } from "../resources/certificates.js";
import { patternChecker } from "../support/core.js";
import { changeOf, parseYaml, removalOf, type SourceObject } from "./model-support.js";

const HOST = "shop.example.com";
const pair = makeCertificate(HOST);

const one = (text: string): SourceObject => parseYaml(text)[0];

/** A grant of the namespace `backend`. */
const grant = (from: string, to: string, name = "grant") =>
  one(`{apiVersion: gateway.networking.k8s.io/v1, kind: ReferenceGrant, metadata: {name: ${name}, namespace: backend},
    spec: {from: ${from}, to: ${to}}}`);
const SERVER = "[{group: k8s.njet.org, kind: VirtualServer, namespace: shop}]";
const SERVICE = "[{group: '', kind: Service, name: api}]";

const server = one(`{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: web, namespace: shop}, spec: {
  host: ${HOST}, tls: {secret: backend/pair}, upstreams: [{name: api, service: backend/api, port: 80}],
  routes: [{path: /api, action: {pass: api}}, {path: /part, route: backend/part}]}}`);
const part = one(`{apiVersion: k8s.njet.org/v1, kind: VirtualServerRoute, metadata: {name: part, namespace: backend},
  spec: {host: ${HOST}, upstreams: [{name: api, service: api, port: 80}], subroutes: [{path: /part, action: {pass: api}}]}}`);
const service = one(
  "{apiVersion: v1, kind: Service, metadata: {name: api, namespace: backend}, spec: {ports: [{port: 80}]}}",
);
const slice = one(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, ports: [{port: 8080}],
  metadata: {name: api-1, namespace: backend, labels: {kubernetes.io/service-name: api}},
  endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}]}`);
const secret: SourceObject = { ...tlsSecret("pair", pair), metadata: { name: "pair", namespace: "backend" } };
const TARGETS = [part, service, slice, secret];

const OWN = "VirtualServer/shop/web/api";
const PARTS = "VirtualServerRoute/backend/part/api";

function modelOf(objects: SourceObject[], crossNamespace: Partial<CrossNamespaceRules> = {}): RoutingModel {
  const model = new RoutingModel({ checker: patternChecker(), source: "folder", crossNamespace });
  model.update(objects.map(changeOf));
  return model;
}

/** What acts: peers of the upstream, whether the path is delegated, whether the certificate is served. */
function acting(model: RoutingModel): string[] {
  const { upstreams, hosts, certificates } = model.snapshot();
  return [
    ...(upstreams.get(OWN)?.peers.peers.length ? ["service"] : []),
    ...(hosts.get(HOST)?.routes.some(({ resource }) => resource === "VirtualServerRoute/backend/part")
      ? ["route"]
      : []),
    ...(certificates.has(HOST) ? ["secret"] : []),
  ];
}

function problemsOf(model: RoutingModel, object: SourceObject) {
  const { kind, namespace, name } = changeOf(object);
  return model.problems({ kind, namespace, name })?.problems ?? [];
}

describe("without a grant", () => {
  it("a delegation acts, a service and a Secret of another namespace do not", () => {
    expect(acting(modelOf([server, ...TARGETS]))).toEqual(["route"]);
  });

  it("the object says what is missing, where, and what it would have to say", () => {
    const problems = problemsOf(modelOf([server, ...TARGETS], { routes: "granted" }), server);
    expect(problems.map(({ code, path, severity }) => `${severity} ${code} ${path}`)).toEqual([
      "warning REFERENCE_NOT_GRANTED spec.routes[1].route",
      "warning REFERENCE_NOT_GRANTED spec.upstreams[0].service",
      "warning REFERENCE_NOT_GRANTED spec.tls.secret",
    ]);
    expect(problems.map(({ message }) => message)).toEqual([
      "the VirtualServerRoute backend/part is of another namespace; a ReferenceGrant in the namespace backend has to grant it: " +
        "from {group: k8s.njet.org, kind: VirtualServer, namespace: shop}, " +
        "to {group: k8s.njet.org, kind: VirtualServerRoute, name: part}; the path answers 503",
      "the Service backend/api is of another namespace; a ReferenceGrant in the namespace backend has to grant it: " +
        'from {group: k8s.njet.org, kind: VirtualServer, namespace: shop}, to {group: "", kind: Service, name: api}; ' +
        "requests are answered 503",
      "the Secret backend/pair is of another namespace; a ReferenceGrant in the namespace backend has to grant it: " +
        'from {group: k8s.njet.org, kind: VirtualServer, namespace: shop}, to {group: "", kind: Secret, name: pair}; ' +
        "the default certificate is served",
    ]);
  });

  it("an object does not learn what there is in another namespace", () => {
    const rules = { routes: "granted" as const };
    expect(problemsOf(modelOf([server], rules), server)).toEqual(
      problemsOf(modelOf([server, ...TARGETS], rules), server),
    );
  });

  it("a VirtualServerRoute says who would delegate to it, and is referenced by nobody", () => {
    const model = modelOf([server, ...TARGETS], { routes: "granted" });
    const ref = { kind: "VirtualServerRoute", namespace: "backend", name: "part" } as const;
    expect(model.referencedBy(ref)).toBeUndefined();
    expect(model.problems(ref)).toMatchObject({
      reason: "NoVirtualServerFound",
      problems: [{ code: "REFERENCE_NOT_GRANTED" }, { code: "ROUTE_NOT_REFERENCED" }],
    });
    expect(problemsOf(model, part)[0].message).toMatch(/^VirtualServer\/shop\/web delegates "\/part" to this object/);
    model.update([changeOf(grant(SERVER, "[{group: k8s.njet.org, kind: VirtualServerRoute}]"))]);
    expect(model.referencedBy(ref)).toBe("shop/web");
    expect(model.problems(ref)?.state).toBe("Valid");
  });

  it("a VirtualServerRoute of another host is referenced by nobody, granted or not", () => {
    const other = structuredClone(part);
    (other.spec as { host: string }).host = "other.example.com";
    const model = modelOf([server, other]);
    expect(model.referencedBy({ kind: "VirtualServerRoute", namespace: "backend", name: "part" })).toBeUndefined();
  });

  it("a delegated path answers 503, also where a shorter path would take it", () => {
    const { hosts } = modelOf([server, ...TARGETS], { routes: "granted" }).snapshot();
    const route = hosts.get(HOST)?.routes.find(({ label }) => label === "/part");
    expect(route?.outcome).toMatchObject({ kind: "return", status: 503 });
  });

  it("names of the own namespace are no references to another one", () => {
    const near =
      one(`{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: near, namespace: backend}, spec: {
      host: near.example.com, tls: {secret: backend/pair}, upstreams: [{name: api, service: backend/api, port: 80}],
      routes: [{path: /, action: {pass: api}}]}}`);
    const model = modelOf([near, ...TARGETS], { routes: "off", services: "off" });
    expect(problemsOf(model, near).map(({ code }) => code)).toEqual(["CERTIFICATE_NAME_MISMATCH"]);
    expect(model.snapshot().certificates.has("near.example.com")).toBe(true);
  });
});

describe("a grant", () => {
  it.each([
    ["of one service", SERVER, SERVICE, ["service"]],
    ["of one Secret", SERVER, "[{group: '', kind: Secret, name: pair}]", ["secret"]],
    ["of a VirtualServerRoute", SERVER, "[{group: k8s.njet.org, kind: VirtualServerRoute, name: part}]", ["route"]],
    [
      "of all Secrets and services",
      SERVER,
      "[{group: '', kind: Secret}, {group: '', kind: Service}]",
      ["service", "secret"],
    ],
    ["of another service", SERVER, "[{group: '', kind: Service, name: other}]", []],
    ["of a service of another group", SERVER, "[{group: example.org, kind: Service, name: api}]", []],
    ["of another kind of that name", SERVER, "[{group: '', kind: ConfigMap, name: api}]", []],
    ["to another namespace", "[{group: k8s.njet.org, kind: VirtualServer, namespace: shop2}]", SERVICE, []],
    ["to another kind", "[{group: networking.k8s.io, kind: Ingress, namespace: shop}]", SERVICE, []],
    ["to a kind of another group", "[{group: example.org, kind: VirtualServer, namespace: shop}]", SERVICE, []],
    [
      "to several, of which one asks",
      `[{group: '', kind: Pod, namespace: a}, ${SERVER.slice(1)}`,
      SERVICE,
      ["service"],
    ],
    ["that is wrong", SERVER, "[{group: '', kind: Service, name: ''}]", []],
  ])("%s allows just that", (_what, from, to, expected) => {
    expect(acting(modelOf([server, ...TARGETS, grant(from, to)], { routes: "granted" }))).toEqual(expected);
  });

  it("counts only in the namespace of what is referred to", () => {
    const elsewhere = grant(SERVER, SERVICE);
    elsewhere.metadata.namespace = "shop";
    expect(acting(modelOf([server, ...TARGETS, elsewhere]))).toEqual(["route"]);
  });

  it("acts when it comes and stops when it goes, in one change each, which names the objects", () => {
    const model = modelOf([server, ...TARGETS], { routes: "granted" });
    const all = grant(
      SERVER,
      "[{group: '', kind: Service}, {group: '', kind: Secret}, {group: k8s.njet.org, kind: VirtualServerRoute}]",
    );
    const came = model.update([changeOf(all)]);
    expect(acting(model)).toEqual(["service", "route", "secret"]);
    expect([[...came.hosts.keys()], [...came.upstreams.keys()].sort(), [...came.certificates.keys()]]).toEqual([
      [HOST],
      [OWN, PARTS].sort(),
      [HOST],
    ]);
    expect([...came.objects]).toEqual(
      expect.arrayContaining(["VirtualServer/shop/web", "VirtualServerRoute/backend/part"]),
    );
    const went = model.update([removalOf(all)]);
    expect(acting(model)).toEqual([]);
    expect(went.upstreams.get(OWN)?.peers.peers).toEqual([]);
    expect(went.upstreams.has(PARTS) && went.upstreams.get(PARTS)).toBeUndefined();
    expect(went.certificates.get(HOST)).toBeUndefined();
    expect(problemsOf(model, server).map(({ code }) => code)).toEqual(Array(3).fill("REFERENCE_NOT_GRANTED"));
  });

  it("that goes takes nothing away that another one grants", () => {
    const model = modelOf([
      server,
      ...TARGETS,
      grant(SERVER, SERVICE),
      grant(SERVER, "[{group: '', kind: Service}]", "b"),
    ]);
    const update = model.update([removalOf(grant(SERVER, SERVICE))]);
    expect(acting(model)).toEqual(["service", "route"]);
    expect(update.upstreams.size).toBe(0);
  });

  it("that becomes wrong stops acting", () => {
    const model = modelOf([server, ...TARGETS, grant(SERVER, SERVICE)]);
    model.update([changeOf(grant(SERVER, "[{group: '', kind: Service, name: 7}]"))]);
    expect(acting(model)).toEqual(["route"]);
  });

  it("lets an Ingress use a Secret of the namespace that its annotation names", () => {
    const ingress = one(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: shop,
      annotations: {njet.org/tls-cert-namespace: backend}}, spec: {rules: [{host: ${HOST}}], tls: [{secretName: pair}]}}`);
    const model = modelOf([ingress, ...TARGETS]);
    expect(acting(model)).toEqual([]);
    const own = { ...tlsSecret("pair", pair), metadata: { name: "pair", namespace: "shop" } };
    model.update([changeOf(own)]);
    expect(acting(model)).toEqual([]);
    model.update([
      changeOf(grant("[{group: networking.k8s.io, kind: Ingress, namespace: shop}]", "[{group: '', kind: Secret}]")),
    ]);
    expect(model.snapshot().certificates.get(HOST)?.resource).toBe("Secret/backend/pair");
  });

  it("of a VirtualServerRoute's service is one to the VirtualServerRoute, not to who delegates to it", () => {
    const elsewhere = one(
      `{apiVersion: v1, kind: Service, metadata: {name: api, namespace: third}, spec: {ports: [{port: 80}]}}`,
    );
    const endpoints = structuredClone(slice);
    endpoints.metadata.namespace = "third";
    const using = structuredClone(part);
    (using.spec as { upstreams: { service: string }[] }).upstreams[0].service = "third/api";
    const model = modelOf([server, using, elsewhere, endpoints]);
    const peers = () => model.snapshot().upstreams.get(PARTS)?.peers.peers.length;
    const granting = (kind: string, namespace: string) => {
      const object = grant(`[{group: k8s.njet.org, kind: ${kind}, namespace: ${namespace}}]`, SERVICE);
      object.metadata.namespace = "third";
      model.update([changeOf(object)]);
    };
    granting("VirtualServer", "shop");
    expect(peers()).toBe(0);
    granting("VirtualServerRoute", "backend");
    expect(peers()).toBe(1);
  });
});

describe("the options", () => {
  const all = grant(SERVER, "[{group: '', kind: Service}, {group: k8s.njet.org, kind: VirtualServerRoute}]");

  it("off lets no grant act", () => {
    const model = modelOf([server, ...TARGETS, all], { routes: "off", services: "off" });
    expect(acting(model)).toEqual([]);
    expect(problemsOf(model, server).map(({ code, path }) => `${code} ${path}`)).toEqual([
      "REFERENCE_SWITCHED_OFF spec.routes[1].route",
      "REFERENCE_SWITCHED_OFF spec.upstreams[0].service",
      "REFERENCE_NOT_GRANTED spec.tls.secret",
    ]);
  });

  it("all asks for no grant, except for Secrets", () => {
    expect(acting(modelOf([server, ...TARGETS], { routes: "all", services: "all" }))).toEqual(["service", "route"]);
  });
});
