import { describe, expect, it } from "vitest";
import { modelOf, modelOfYaml, parseYaml, stateText } from "./model-support.js";

interface Claim {
  name: string;
  created?: string;
  uid?: string;
  host?: string;
  namespace?: string;
}

function metadata({ name, namespace = "default", created, uid }: Claim): string {
  const age = `${created ? `, creationTimestamp: '${created}'` : ""}${uid ? `, uid: '${uid}'` : ""}`;
  return `{name: ${name}, namespace: ${namespace}${age}}`;
}

const ingress = (claim: Claim, path = "/") => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: ${metadata(claim)}
spec:
  rules:
    - host: '${claim.host ?? "shared.example.com"}'
      http: {paths: [{path: ${path}, pathType: Prefix, backend: {service: {name: ${claim.name}, port: {number: 80}}}}]}
---`;

const server = (claim: Claim) => `
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: ${metadata(claim)}
spec: {host: '${claim.host ?? "shared.example.com"}', routes: [{path: /, action: {return: {body: ${claim.name}}}}]}
---`;

const EARLY = "2024-01-01T00:00:00Z";
const LATE = "2024-06-01T00:00:00Z";

/** Objects that own a route of the only host. */
function owners(text: string): string[] {
  const forwards = parseYaml(text);
  const [rules] = modelOf(forwards).snapshot().hosts.values();
  const [reversed] = modelOf(forwards.reverse()).snapshot().hosts.values();
  expect(reversed).toEqual(rules);
  return rules.routes.map(({ resource }) => resource);
}

describe("the age of objects", () => {
  it("is the creationTimestamp first", () => {
    expect(owners(server({ name: "a", created: LATE }) + server({ name: "b", created: EARLY }))).toEqual([
      "VirtualServer/default/b",
    ]);
  });

  it("is greatest without a creationTimestamp", () => {
    expect(owners(server({ name: "a", created: EARLY }) + server({ name: "b" }))).toEqual(["VirtualServer/default/b"]);
  });

  it("is decided by the greater UID at one time", () => {
    const text = server({ name: "a", created: EARLY, uid: "1" }) + server({ name: "b", created: EARLY, uid: "2" });
    expect(owners(text)).toEqual(["VirtualServer/default/b"]);
  });

  it("is decided by namespace and name without time and UID", () => {
    const text = server({ name: "a", namespace: "z" }) + server({ name: "b", namespace: "y" });
    expect(owners(text)).toEqual(["VirtualServer/y/b"]);
  });

  it("compares times, not their texts", () => {
    const text =
      server({ name: "a", created: "2024-01-01T02:00:00+02:00" }) +
      server({ name: "b", created: "2024-01-01T00:00:01Z" });
    expect(owners(text)).toEqual(["VirtualServer/default/a"]);
  });
});

describe("an Ingress and a VirtualServer on one host", () => {
  it("leave the whole host to an older VirtualServer", () => {
    const model = modelOfYaml(
      ingress({ name: "i", created: LATE }, "/only-here") + server({ name: "v", created: EARLY }),
    );
    expect([...model.snapshot().hosts.values()][0].routes.map(({ resource }) => resource)).toEqual([
      "VirtualServer/default/v",
    ]);
    expect(stateText(model, "Ingress", "i")).toBe("Warning Rejected HOST_TAKEN@spec.rules[0].host");
    expect(stateText(model, "VirtualServer", "v")).toBe("Valid AddedOrUpdated");
  });

  it("leave the whole host to older Ingress objects, also to those younger than the VirtualServer", () => {
    const model = modelOfYaml(
      ingress({ name: "i", created: "2023-01-01T00:00:00Z" }, "/i") +
        server({ name: "v", created: EARLY }) +
        ingress({ name: "j", created: LATE }, "/j"),
    );
    const [rules] = model.snapshot().hosts.values();
    expect(rules.routes.map(({ resource }) => resource)).toEqual(["Ingress/default/i", "Ingress/default/j"]);
    expect(stateText(model, "VirtualServer", "v")).toBe("Warning Rejected HOST_TAKEN@spec.host");
  });

  it("collide on a wildcard as well, and the winner says how many labels it covers", () => {
    const wild = "*.example.com";
    const byServer = modelOfYaml(ingress({ name: "i", host: wild, created: LATE }) + server({ name: "v", host: wild }));
    expect([...byServer.snapshot().hosts.keys()]).toEqual(["**.example.com"]);
    const byIngress = modelOfYaml(
      ingress({ name: "i", host: wild }) + server({ name: "v", host: wild, created: LATE }),
    );
    expect([...byIngress.snapshot().hosts.keys()]).toEqual(["*.example.com"]);
  });

  it("name the winner to the loser", () => {
    const model = modelOfYaml(ingress({ name: "i" }) + server({ name: "v", created: LATE }));
    const state = model.problems({ kind: "VirtualServer", namespace: "default", name: "v" });
    expect(state?.problems[0].message).toContain("Ingress/default/i");
  });
});

describe("Ingress objects on one host", () => {
  it("share it, and the older has a path that both claim", () => {
    const model = modelOfYaml(
      ingress({ name: "a", created: LATE }) + ingress({ name: "b", created: EARLY }) + ingress({ name: "c" }, "/c"),
    );
    const [rules] = model.snapshot().hosts.values();
    expect(rules.routes.map(({ label, resource }) => `${label} ${resource}`)).toEqual([
      "/ Ingress/default/b",
      "/c Ingress/default/c",
    ]);
    expect(stateText(model, "Ingress", "a")).toContain("Warning Rejected PATH_TAKEN@spec.rules[0].http.paths[0].path");
  });

  it("claim one path with and without its final slash", () => {
    const model = modelOfYaml(ingress({ name: "a" }, "/x/") + ingress({ name: "b" }, "/x"));
    expect(stateText(model, "Ingress", "b")).toContain("PATH_TAKEN");
  });

  it("do not collide with a path of another type", () => {
    const other = ingress({ name: "b" }, "/x").replace("Prefix", "Exact");
    const model = modelOfYaml(ingress({ name: "a" }, "/x") + other);
    expect(stateText(model, "Ingress", "b")).not.toContain("PATH_TAKEN");
  });

  it("that list a path twice keep the first one with a warning", () => {
    const model = modelOfYaml(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
spec:
  rules:
    - host: one.example.com
      http: {paths: [{path: /x, pathType: Prefix, backend: {service: {name: first, port: {number: 80}}}}]}
    - host: one.example.com
      http: {paths: [{path: /x, pathType: Prefix, backend: {service: {name: second, port: {number: 80}}}}]}`);
    const [rules] = model.snapshot().hosts.values();
    expect(rules.routes.map(({ outcome }) => outcome)).toEqual([
      { kind: "proxy", upstream: "Ingress/default/a/first:80" },
    ]);
    expect(stateText(model, "Ingress", "a")).toContain("DUPLICATE_PATH@spec.rules[1].http.paths[0].path");
  });

  it("have their patterns in one order: from the longest, then by text", () => {
    const pattern = (name: string, path: string) =>
      ingress({ name }, `'${path}'`)
        .replace("Prefix", "ImplementationSpecific")
        .replace("namespace: default", "namespace: default, annotations: {njet.org/use-regex: 'true'}");
    const text = pattern("a", "/b+") + pattern("b", "/long[0-9]+") + pattern("c", "/a+") + ingress({ name: "d" }, "/x");
    const patterns = owners(text).filter((resource) => resource !== "Ingress/default/d");
    expect(patterns).toEqual(["Ingress/default/b", "Ingress/default/c", "Ingress/default/a"]);
  });
});

describe("a loser", () => {
  it("takes over as soon as the winner goes", () => {
    const [winner, loser] = parseYaml(server({ name: "a", created: EARLY }) + server({ name: "b", created: LATE }));
    const model = modelOf([winner, loser]);
    const change = model.update([{ kind: "VirtualServer", namespace: "default", name: "a", object: undefined }]);
    expect(change.hosts.get("shared.example.com")?.routes[0].resource).toBe("VirtualServer/default/b");
    expect(change.objects).toContain("VirtualServer/default/b");
    expect(stateText(model, "VirtualServer", "b")).toBe("Valid AddedOrUpdated");
  });

  it("that changes the kind of a wildcard replaces its pattern in one update", () => {
    const wild = "*.example.com";
    const model = modelOfYaml(
      server({ name: "v", host: wild, created: EARLY }) + ingress({ name: "i", host: wild, created: LATE }),
    );
    const { hosts } = model.update([{ kind: "VirtualServer", namespace: "default", name: "v", object: undefined }]);
    expect(hosts.get("**.example.com")).toBeUndefined();
    expect(hosts.has("**.example.com")).toBe(true);
    expect(hosts.get("*.example.com")?.routes).toHaveLength(1);
  });
});
