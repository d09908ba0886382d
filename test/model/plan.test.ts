import { describe, expect, it } from "vitest";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { Planner, planSteps } from "../../controller/reconcile/plan-changes.js";
import { makeCertificate, tlsSecret } from "../resources/certificates.js";
import { changeOf, modelOf, parseYaml, removalOf } from "./model-support.js";

const OBJECTS = [
  ...parseYaml(`
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: {name: shop}
spec:
  host: shop.example.com
  tls: {secret: cert}
  upstreams: [{name: app, service: app, port: 80}]
  routes: [{path: /, action: {pass: app}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: wild}
spec:
  rules:
    - host: '*.example.com'
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app, port: {number: 80}}}}]}
`),
  tlsSecret("cert", makeCertificate("shop.example.com")),
];

function stepText(step: PlanStep): string {
  switch (step.step) {
    case "set-certificate":
      return `${step.step} ${step.certificate.host}`;
    case "set-upstream":
      return `${step.step} ${step.upstream.peers.key}`;
    case "set-host":
      return `${step.step} ${JSON.stringify(step.rules.pattern)}`;
    case "remove-host":
      return `${step.step} ${JSON.stringify(step.pattern)}`;
    case "remove-upstream":
      return `${step.step} ${step.key}`;
    case "remove-certificate":
      return `${step.step} ${step.host}`;
  }
}

describe("a plan", () => {
  it("puts in place what routes lead to before the routes", () => {
    expect(planSteps(modelOf(OBJECTS).snapshot()).map(stepText)).toEqual([
      "set-certificate shop.example.com",
      "set-upstream Ingress/default/wild/app:80",
      "set-upstream VirtualServer/default/shop/app",
      'set-host {"kind":"wildcard","suffix":"example.com","labels":"one"}',
      'set-host {"kind":"exact","host":"shop.example.com"}',
    ]);
  });

  it("takes routes away before what they lead to, and after everything new is in place", () => {
    const model = modelOf(OBJECTS);
    const added = {
      ...OBJECTS[1],
      metadata: { name: "other" },
      spec: { defaultBackend: { service: { name: "x", port: { number: 1 } } } },
    };
    const change = model.update([removalOf(OBJECTS[0]), removalOf(OBJECTS[1]), changeOf(added)]);
    expect(planSteps(change).map(stepText)).toEqual([
      "set-upstream Ingress/default/other/x:1",
      'set-host {"kind":"default"}',
      'remove-host {"kind":"exact","host":"shop.example.com"}',
      'remove-host {"kind":"wildcard","suffix":"example.com","labels":"one"}',
      "remove-upstream VirtualServer/default/shop/app",
      "remove-upstream Ingress/default/wild/app:80",
      "remove-certificate shop.example.com",
    ]);
  });
});

describe("the generation", () => {
  const hashOf = (planner: Planner) => planner.generation.split("-")[1];

  it("has the same hash on every replica, whatever the order of arrival", () => {
    const one = new Planner();
    const other = new Planner();
    const first = modelOf([]);
    for (const object of OBJECTS) one.planChanges(first.update([changeOf(object)]));
    other.planFull(modelOf([...OBJECTS].reverse()).snapshot());
    expect(hashOf(one)).toBe(hashOf(other));
    expect(hashOf(one)).toMatch(/^[0-9a-f]{16}$/);
  });

  it("changes with the content and returns with it, while the counter goes up", () => {
    const model = modelOf(OBJECTS);
    const planner = new Planner();
    const start = planner.planFull(model.snapshot()).generation;
    const removed = planner.planChanges(model.update([removalOf(OBJECTS[1])])).generation;
    const restored = planner.planChanges(model.update([changeOf(OBJECTS[1])])).generation;
    const [starts, removes, restores] = [start, removed, restored].map((generation) => generation.split("-"));
    expect([starts[0], removes[0], restores[0]]).toEqual(["1", "2", "3"]);
    expect(removes[1]).not.toBe(starts[1]);
    expect(restores[1]).toBe(starts[1]);
  });

  it("stays when nothing changed", () => {
    const model = modelOf(OBJECTS);
    const planner = new Planner();
    const before = planner.planFull(model.snapshot()).generation;
    const plan = planner.planChanges(model.update([changeOf(OBJECTS[0])]));
    expect(plan).toEqual({ generation: before, full: false, steps: [] });
    expect(planner.planFull(model.snapshot()).generation).toBe(before);
  });

  it("changes when a certificate is renewed", () => {
    const model = modelOf(OBJECTS);
    const planner = new Planner();
    planner.planFull(model.snapshot());
    const before = hashOf(planner);
    planner.planChanges(model.update([changeOf(tlsSecret("cert", makeCertificate("shop.example.com")))]));
    expect(hashOf(planner)).not.toBe(before);
  });
});
