import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectState } from "../../controller/model/object-state.js";
import { type ObjectChange, RoutingModel } from "../../controller/model/routing-model.js";
import { refText } from "../../controller/resources/object-ref.js";
import { makeCertificate, tlsSecret } from "../resources/certificates.js";
import { patternChecker } from "../support/core.js";
import { changeOf, parseYaml, removalOf } from "./model-support.js";

const newModel = () =>
  new RoutingModel({ checker: patternChecker(), source: "folder", crossNamespace: { routes: "granted" } });

/** An Ingress with a host, a service and a slice of its own. */
function site(index: number, address = `10.0.${index >> 8}.${index & 255}`): ObjectChange[] {
  const name = `site-${index}`;
  const backend = { service: { name, port: { number: 80 } } };
  const paths = [{ path: "/", pathType: "Prefix", backend }];
  return [
    changeOf({
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      metadata: { name },
      spec: { defaultBackend: backend, rules: [{ host: `${name}.example.com`, http: { paths } }] },
    }),
    changeOf({ apiVersion: "v1", kind: "Service", metadata: { name }, spec: { ports: [{ port: 80 }] } }),
    changeOf({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name, labels: { "kubernetes.io/service-name": name } },
      ports: [{ port: 8080 }],
      endpoints: [{ addresses: [address] }],
    }),
  ];
}

describe("among 5,000 VirtualServers that refer to another namespace", () => {
  const model = newModel();
  const object = (text: string) => changeOf(parseYaml(text)[0]);
  const server = (index: number) =>
    object(`{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: web, namespace: n${index}}, spec: {
      host: h${index}.example.com, tls: {secret: shared/wild}, upstreams: [{name: u, service: shared/api, port: 80}],
      routes: [{path: /, action: {pass: u}}, {path: /part, route: shared/part}]}}`);
  const grant = (index: number, to: string) =>
    object(`{apiVersion: gateway.networking.k8s.io/v1, kind: ReferenceGrant, metadata: {name: g${index}, namespace: shared},
      spec: {from: [{group: k8s.njet.org, kind: VirtualServer, namespace: n${index}}], to: [${to}]}}`);
  model.update(Array.from({ length: 5000 }, (_, index) => server(index)));

  const costOf = (change: ObjectChange) => {
    const before = model.counters;
    const { objects } = model.update([change]);
    const { hosts, upstreams, certificates } = model.counters;
    return [
      hosts - before.hosts,
      upstreams - before.upstreams,
      certificates - before.certificates,
      [...objects].sort().join(" "),
    ];
  };

  it("a grant builds what it allows of the one that it names, and its end the same", () => {
    const services = grant(4321, "{group: '', kind: Service}");
    const built = [0, 1, 0, "ReferenceGrant/shared/g4321 VirtualServer/n4321/web"];
    expect(costOf(services)).toEqual(built);
    expect(costOf(services)).toEqual([0, 0, 0, "ReferenceGrant/shared/g4321"]);
    expect(costOf({ ...services, object: undefined })).toEqual(built);
  });

  it("a grant of another name, or to nobody who asks, builds nothing", () => {
    expect(costOf(grant(4321, "{group: '', kind: Secret, name: other}"))).toEqual([
      0,
      0,
      0,
      "ReferenceGrant/shared/g4321",
    ]);
    expect(costOf(grant(9999, "{group: '', kind: Secret}"))).toEqual([0, 0, 0, "ReferenceGrant/shared/g9999"]);
  });

  it("a grant to who does not ask any more builds nothing", () => {
    model.update([{ ...server(88), object: undefined }]);
    const all =
      "{group: '', kind: Service}, {group: '', kind: Secret}, {group: k8s.njet.org, kind: VirtualServerRoute}";
    expect(costOf(grant(88, all))).toEqual([0, 0, 0, "ReferenceGrant/shared/g88"]);
  });

  it("a grant of all three kinds builds the host, the upstream and the certificate of the one", () => {
    const all =
      "{group: '', kind: Service}, {group: '', kind: Secret}, {group: k8s.njet.org, kind: VirtualServerRoute}";
    // The host's certificate is looked at again with its host, once.
    expect(costOf(grant(77, all)).slice(0, 3)).toEqual([1, 1, 1]);
  });
});

describe("at 5,000 Ingress objects", () => {
  const model = newModel();
  model.update(Array.from({ length: 5000 }, (_, index) => site(index)).flat());

  /** Pieces that an update built. */
  function costOf(changes: ObjectChange[]) {
    const before = model.counters;
    const change = model.update(changes);
    const after = model.counters;
    return {
      parsed: after.parsed - before.parsed,
      hosts: after.hosts - before.hosts,
      upstreams: after.upstreams - before.upstreams,
      changed: change.hosts.size + change.upstreams.size,
    };
  }

  it("every host and upstream is there", () => {
    const { hosts, upstreams } = model.snapshot();
    expect([hosts.size, upstreams.size]).toEqual([5001, 5000]);
  });

  it("a changed endpoint builds one upstream", () => {
    const slice = site(4321, "10.99.0.1")[2];
    expect(costOf([slice])).toEqual({ parsed: 1, hosts: 0, upstreams: 1, changed: 1 });
  });

  it("an Ingress that comes as it was builds its host and upstream, and changes nothing", () => {
    expect(costOf([site(77)[0]])).toEqual({ parsed: 1, hosts: 1, upstreams: 1, changed: 0 });
  });

  it("a removed Ingress takes away its host and upstream", () => {
    const [ingress] = site(78);
    expect(costOf([{ ...ingress, object: undefined }])).toEqual({ parsed: 0, hosts: 1, upstreams: 0, changed: 2 });
  });

  it("1,000 changes one by one cost less than 2 ms each", () => {
    const changes = Array.from({ length: 1000 }, (_, index) => site(index, "10.98.0.1")[2]);
    const start = performance.now();
    for (const change of changes) model.update([change]);
    expect((performance.now() - start) / changes.length).toBeLessThan(2);
  });
});

/** Objects that collide, delegate, share and break in many ways; each list holds the versions of one object. */
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

const OBJECTS = [
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
const randomChange = fc.tuple(fc.nat(OBJECTS.length - 1), fc.nat(), fc.nat(4)).map(([object, version, removal]) => {
  const versions = OBJECTS[object];
  const chosen = versions[version % versions.length];
  return removal === 0 ? removalOf(chosen) : changeOf(chosen);
});

it("any sequence of changes ends in the model that a fresh start from the final objects gives, in any order", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(randomChange, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 60 }),
      fc.infiniteStream(fc.nat()),
      (batches, random) => {
        const model = newModel();
        const applied = { hosts: new Map(), upstreams: new Map(), certificates: new Map() };
        const final = new Map<string, ObjectChange>();
        for (const batch of batches) {
          const change = model.update(batch);
          for (const piece of ["hosts", "upstreams", "certificates"] as const) {
            for (const [key, value] of change[piece]) {
              expect(value !== undefined || applied[piece].has(key)).toBe(true);
              if (value === undefined) applied[piece].delete(key);
              else applied[piece].set(key, value);
            }
          }
          for (const entry of batch) final.set(refText(entry), entry);
        }
        const left = [...final.values()].filter(({ object }) => object !== undefined);
        const shuffled = left
          .map((entry) => ({ entry, rank: random.next().value as number }))
          .sort((a, b) => a.rank - b.rank)
          .map(({ entry }) => entry);
        const fresh = newModel();
        for (const entry of shuffled) fresh.update([entry]);
        expect(model.snapshot()).toEqual(fresh.snapshot());
        expect(applied).toEqual(fresh.snapshot());
        expect(model.allObjects()).toEqual(fresh.allObjects());
      },
    ),
    { numRuns: 400, seed: 3 },
  );
});

it("an update never leaves out an object whose state, or who refers to it, it changed", () => {
  fc.assert(
    fc.property(fc.array(randomChange, { minLength: 1, maxLength: 40 }), (changes) => {
      const model = newModel();
      const textOf = (state: ObjectState) => JSON.stringify([state, model.referencedBy(state.ref)]);
      const statesOf = () => new Map(model.allObjects().map((state) => [refText(state.ref), textOf(state)]));
      for (const change of changes) {
        const before = statesOf();
        const { objects } = model.update([change]);
        const after = statesOf();
        for (const [key, state] of after) if (before.get(key) !== state) expect([...objects]).toContain(key);
      }
    }),
    { numRuns: 60, seed: 4 },
  );
});
