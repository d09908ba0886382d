import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, eventually } from "../support/harness.js";
import { follow, noCluster, useCluster } from "./cluster-support.js";
import { definition, ingress, ingressClass, namespace, service, slice, virtualServer } from "./objects.js";
import { grant, grantDefinition } from "./reference-grants.js";

cleanUpAfterEach();
const current = useCluster();

describe.skipIf(noCluster)("objects of a cluster", () => {
  it("come in one batch, once every kind is complete, whatever the size of the pages", async () => {
    const { admin } = current();
    const names = Array.from({ length: 23 }, (_, index) => `page-${index}`);
    await admin.applyAll(names.flatMap((name) => [service(name), ingress(name)]));
    const { source, seen } = follow(current(), { pageSize: 5 });
    await eventually(() => source.synced, 20_000);
    expect(seen.batches[0].length).toBeGreaterThanOrEqual(46);
    expect(names.every((name) => seen.objects.has(`Ingress/default/${name}`))).toBe(true);
    expect(source.waitingFor()).toEqual([]);
    for (const name of names) {
      await admin.delete(service(name));
      await admin.delete(ingress(name));
    }
    await eventually(() => names.every((name) => !seen.objects.has(`Ingress/default/${name}`)));
    await eventually(() => names.every((name) => !seen.objects.has(`Service/default/${name}`)));
  });

  it("have the same shape from a list and from a watch, without managedFields", async () => {
    const { admin } = current();
    await admin.apply(ingress("before"));
    const { source, seen } = follow(current());
    await eventually(() => source.synced, 20_000);
    await admin.apply(ingress("after"));
    await eventually(() => seen.objects.has("Ingress/default/after"));
    const shape = (name: string) => {
      const object = seen.objects.get(`Ingress/default/${name}`) as Record<string, Record<string, unknown>>;
      return [object.kind, object.apiVersion, Object.keys(object).sort(), Object.keys(object.metadata).sort()];
    };
    expect(shape("after")).toEqual(shape("before"));
    expect(shape("after")[3]).not.toContain("managedFields");
  });

  it("that change in their status only are not delivered again", async () => {
    const { admin } = current();
    await admin.applyAll([ingress("quiet"), service("marker")]);
    const { source, seen } = follow(current());
    await eventually(() => source.synced, 20_000);
    const batches = seen.batches.length;
    await admin.patch(ingress("quiet"), { status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } } }, "/status");
    await admin.patch(ingress("quiet"), { metadata: { annotations: { touched: "yes" } } });
    await eventually(() => seen.batches.length > batches);
    expect(seen.batches.slice(batches).flat()).toHaveLength(1);
    expect(JSON.stringify(seen.objects.get("Ingress/default/quiet"))).toContain("touched");
  });

  it("of a kind that is installed later are picked up, and go with their definition", async () => {
    const { admin } = current();
    const { source, seen } = follow(current());
    await eventually(() => source.synced, 20_000);
    expect(seen.log.some((line) => line.resource === "virtualservers" && line.status === 404)).toBe(true);
    await admin.applyAll([definition("VirtualServer"), definition("VirtualServerRoute")]);
    await expect.poll(() => admin.apply(virtualServer("later")).catch(() => undefined)).toBeDefined();
    await eventually(() => seen.objects.has("VirtualServer/default/later"), 20_000);
    await admin.delete(definition("VirtualServer"));
    await admin.delete(definition("VirtualServerRoute"));
    await eventually(() => !seen.objects.has("VirtualServer/default/later"), 30_000);
  });

  it("of ReferenceGrants are read in the version that the cluster serves, and follow its change", async () => {
    const { admin } = current();
    await admin.applyAll([namespace("granting"), grantDefinition("v1beta1")]);
    const old = grant("old", "granting", ["Service"], "v1beta1");
    await expect.poll(() => admin.apply(old).catch(() => undefined), { timeout: 20_000 }).toBeDefined();
    const { source, seen } = follow(current());
    await eventually(() => source.synced, 20_000);
    expect(seen.objects.get("ReferenceGrant/granting/old")).toMatchObject({
      apiVersion: "gateway.networking.k8s.io/v1beta1",
      spec: old.spec,
    });
    expect(seen.log.filter((line) => line.resource === "referencegrants")).toEqual([]);
    await admin.apply(grantDefinition("v1"));
    // What comes before the server has ended the old watch comes by that one.
    let count = 0;
    const versionOfNext = async () => {
      const name = `next-${++count}`;
      await admin.apply(grant(name, "granting", ["Secret"])).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 200));
      return (seen.objects.get(`ReferenceGrant/granting/${name}`) as { apiVersion: string } | undefined)?.apiVersion;
    };
    await expect.poll(versionOfNext, { timeout: 60_000 }).toBe("gateway.networking.k8s.io/v1");
    expect(seen.objects.has("ReferenceGrant/granting/old")).toBe(true);
    await admin.delete(grantDefinition("v1"));
    await eventually(() => seen.names().every((name) => !name.startsWith("ReferenceGrant/")), 60_000);
  });

  it("of Secrets are those with certificates only", async () => {
    const { admin } = current();
    const secret = (name: string, type: string, data: Record<string, string>) =>
      admin.apply({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: "default" }, type, data });
    await secret("password", "Opaque", { password: "czNjcmV0" });
    await secret("pair", "kubernetes.io/tls", { "tls.crt": "", "tls.key": "" });
    const { source, seen } = follow(current());
    await eventually(() => source.synced, 20_000);
    expect(seen.names().filter((name) => name.startsWith("Secret/"))).toEqual(["Secret/default/pair"]);
    expect(JSON.stringify([...seen.objects.values(), seen.log])).not.toContain("czNjcmV0");
  });
});

describe.skipIf(noCluster)("namespaces", () => {
  it("that are given by name are the only ones followed", async () => {
    const { admin } = current();
    await admin.applyAll([namespace("one"), namespace("two"), service("a", "one"), service("b", "two")]);
    const { source, seen } = follow(current(), { namespaces: ["one"] });
    await eventually(() => source.synced, 20_000);
    expect(seen.names().filter((name) => name.startsWith("Service/"))).toEqual(["Service/one/a"]);
  });

  it("are followed as long as they carry the label", async () => {
    const { admin } = current();
    const labelled = namespace("team", { edge: "yes" });
    await admin.applyAll([labelled, service("c", "team"), slice("c-1", "c", ["10.1.0.1"], "team")]);
    const { source, seen } = follow(current(), { namespaceSelector: "edge=yes" });
    await eventually(() => source.synced, 20_000);
    await eventually(() => seen.objects.has("Service/team/c"));
    await admin.patch(labelled, { metadata: { labels: { edge: "no" } } });
    await eventually(() => !seen.objects.has("Service/team/c") && !seen.objects.has("EndpointSlice/team/c-1"));
    await admin.patch(labelled, { metadata: { labels: { edge: "yes" } } });
    await eventually(() => seen.objects.has("Service/team/c"), 10_000);
  });

  it("do not need rights to the whole cluster: what is forbidden there is done without, and said once", async () => {
    const { admin } = current();
    await admin.applyAll([namespace("narrow"), service("d", "narrow"), ingressClass("edge", "other.org/c")]);
    const rules = [{ apiGroups: ["*"], resources: ["*"], verbs: ["list", "watch"] }];
    const rbac = (kind: string, content: Record<string, unknown>) =>
      admin.apply({
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind,
        metadata: { name: "reader", namespace: "narrow" },
        ...content,
      });
    await rbac("Role", { rules });
    await rbac("RoleBinding", {
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "tester" }],
    });
    const kubeconfigFile = current().kubeconfig("tester");
    const { source, seen } = follow(current(), { namespaces: ["narrow"], kubeconfigFile });
    await eventually(() => source.synced, 20_000);
    expect(seen.objects.has("Service/narrow/d")).toBe(true);
    expect(seen.log.filter((line) => line.resource === "ingressclasses")).toMatchObject([{ status: 403 }]);
  });

  it("are served without the right to read grants, as before there were any", async () => {
    const { admin } = current();
    await admin.applyAll([namespace("older"), service("e", "older")]);
    const apiGroups = ["", "networking.k8s.io", "discovery.k8s.io", "k8s.njet.org"];
    const rbac = (kind: string, content: Record<string, unknown>) =>
      admin.apply({
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind,
        metadata: { name: "reader", namespace: "older" },
        ...content,
      });
    await rbac("Role", { rules: [{ apiGroups, resources: ["*"], verbs: ["list", "watch"] }] });
    await rbac("RoleBinding", {
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "tester" }],
    });
    const { source, seen } = follow(current(), {
      namespaces: ["older"],
      kubeconfigFile: current().kubeconfig("tester"),
    });
    await eventually(() => source.synced, 20_000);
    expect(seen.objects.has("Service/older/e")).toBe(true);
    expect(seen.log.filter((line) => line.resource === "referencegrants in older")).toMatchObject([{ status: 403 }]);
  });
});
