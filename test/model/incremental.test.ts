import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectState } from "../../controller/model/object-state.js";
import { type ObjectChange, RoutingModel } from "../../controller/model/routing-model.js";
import { refText } from "../../controller/resources/object-ref.js";
import { patternChecker } from "../support/core.js";
import { changeOf, parseYaml } from "./model-support.js";
import { randomChange } from "./random-changes.js";

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
      reclassed: after.reclassed - before.reclassed,
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
    expect(costOf([slice])).toEqual({ parsed: 1, reclassed: 0, hosts: 0, upstreams: 1, changed: 1 });
  });

  it("an Ingress that comes as it was builds its host and upstream, and changes nothing", () => {
    expect(costOf([site(77)[0]])).toEqual({ parsed: 1, reclassed: 0, hosts: 1, upstreams: 1, changed: 0 });
  });

  it("a removed Ingress takes away its host and upstream", () => {
    const [ingress] = site(78);
    const cost = { parsed: 0, reclassed: 0, hosts: 1, upstreams: 0, changed: 2 };
    expect(costOf([{ ...ingress, object: undefined }])).toEqual(cost);
  });

  it("a new host and a new path build one host each, with its upstream", () => {
    const cost = { parsed: 3, reclassed: 0, hosts: 1, upstreams: 1, changed: 2 };
    expect(costOf(site(6000))).toEqual(cost);
    const [ingress] = site(79);
    const text = JSON.stringify(ingress.object).replace('"path":"/"', '"path":"/new"');
    const changed = { ...ingress, object: JSON.parse(text) as unknown };
    expect(costOf([changed])).toEqual({ ...cost, parsed: 1, changed: 1 });
  });

  it("an IngressClass makes only the objects that name a class of another standing be looked at", () => {
    const ingressClass = (name: string, controller: string, isDefault: boolean) =>
      changeOf({
        apiVersion: "networking.k8s.io/v1",
        kind: "IngressClass",
        metadata: { name, annotations: { "ingressclass.kubernetes.io/is-default-class": String(isDefault) } },
        spec: { controller },
      });
    const named = (name: string, className: string) =>
      changeOf({
        apiVersion: "networking.k8s.io/v1",
        kind: "Ingress",
        metadata: { name },
        spec: { ingressClassName: className, rules: [{ host: `${name}.example.com` }] },
      });
    const classed = newModel();
    classed.update([ingressClass("njet", "njet.org/ingress-controller", true), named("edge-1", "edge")]);
    classed.update(Array.from({ length: 100 }, (_, index) => site(index)).flat());
    const looked = (change: ObjectChange) => {
      const before = classed.counters.reclassed;
      classed.update([change]);
      return classed.counters.reclassed - before;
    };
    expect(looked(ingressClass("other", "example.org/other", true))).toBe(0);
    expect(looked(ingressClass("edge", "njet.org/ingress-controller", false))).toBe(1);
    expect(classed.snapshot().hosts.has("edge-1.example.com")).toBe(true);
    expect(looked(ingressClass("edge", "njet.org/ingress-controller", false))).toBe(0);
    expect(looked(ingressClass("njet", "njet.org/ingress-controller", false))).toBe(100);
    expect([...classed.snapshot().hosts.keys()]).toEqual(["edge-1.example.com"]);
  });

  it("1,000 changes one by one build what they touch, and nothing else", () => {
    const before = model.counters;
    for (let index = 0; index < 1000; index++) model.update([site(index, "10.98.0.1")[2]]);
    const { parsed, hosts, upstreams } = model.counters;
    // Site 78 is gone.
    expect([parsed - before.parsed, hosts - before.hosts, upstreams - before.upstreams]).toEqual([1000, 0, 999]);
  });
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
