import { describe, expect, it } from "vitest";
import { changeOf, modelOf, parseYaml, removalOf, stateText } from "./model-support.js";

const OURS = "njet.org/ingress-controller";
const ingressClass = (name: string, controller: string, isDefault = false) => `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ${name}, annotations: {ingressclass.kubernetes.io/is-default-class: '${isDefault}'}}
spec: {controller: ${controller}}
---`;

const ingress = (name: string, className: string | undefined) => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ${name}}
spec: {${className === undefined ? "" : `ingressClassName: ${className}, `}rules: [{host: ${name}.example.com}]}
---`;

function served(text: string, source: "folder" | "cluster" = "folder"): string[] {
  return [...modelOf(parseYaml(text), source).snapshot().hosts.keys()].sort();
}

describe("in a folder", () => {
  it("without IngressClass the class njet exists and is the default", () => {
    expect(served(ingress("none", undefined) + ingress("njet", "njet") + ingress("other", "other"))).toEqual([
      "njet.example.com",
      "none.example.com",
    ]);
  });

  it("with an IngressClass of ours objects without class need it to be the default", () => {
    expect(served(ingressClass("njet", OURS) + ingress("none", undefined))).toEqual([]);
    expect(served(ingressClass("njet", OURS, true) + ingress("none", undefined))).toEqual(["none.example.com"]);
  });
});

describe("in a cluster", () => {
  it("objects without class are served only if our class is the default", () => {
    expect(served(ingress("none", undefined), "cluster")).toEqual([]);
    expect(served(ingressClass("edge", "other.org/c", true) + ingress("none", undefined), "cluster")).toEqual([]);
    expect(served(ingressClass("edge", OURS, true) + ingress("none", undefined), "cluster")).toEqual([
      "none.example.com",
    ]);
  });
});

it("every class of our controller is served, whatever its name", () => {
  expect(served(ingressClass("edge", OURS) + ingress("a", "edge"))).toEqual(["a.example.com"]);
});

it("a class of our name that belongs to another controller is not served", () => {
  expect(served(ingressClass("njet", "other.org/c") + ingress("a", "njet"))).toEqual([]);
});

it("an object that is left out says so, and its own mistakes are no concern", () => {
  const [object] = parseYaml(ingress("a", "other"));
  const model = modelOf([{ ...object, spec: { ingressClassName: "other", rules: 7 } }]);
  expect(stateText(model, "Ingress", "a")).toBe("Warning Ignored CLASS_NOT_SERVED@spec.ingressClassName");
});

it("objects follow when their class comes, changes and goes", () => {
  const [ours, theirs, object] = parseYaml(
    ingressClass("edge", OURS) + ingressClass("edge", "other.org/c") + ingress("a", "edge"),
  );
  const model = modelOf([object]);
  expect(model.snapshot().hosts.size).toBe(0);
  expect([...model.update([changeOf(ours)]).hosts.keys()]).toEqual(["a.example.com"]);
  expect(model.update([changeOf(theirs)]).hosts.get("a.example.com")).toBeUndefined();
  expect([...model.update([changeOf(ours)]).hosts.keys()]).toEqual(["a.example.com"]);
  const gone = model.update([removalOf(ours)]);
  expect(gone.hosts.get("a.example.com")).toBeUndefined();
  expect(gone.objects).toContain("Ingress/default/a");
});
