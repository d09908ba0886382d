import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { INGRESS_CLASSES, NAMESPACED_TYPES, namespaceType } from "../../controller/kubernetes/resource-type.js";
import { CONTROLLER_NAME } from "../../controller/model/classes.js";
import { documents, FOLDER, listed, objects } from "./manifests.js";

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

function object(kind: string) {
  const found = objects.filter((candidate) => candidate.kind === kind);
  expect(found.length, kind).toBe(1);
  return found[0];
}

/** `group/resource[/name] verb`, one for each right. */
function rights(kind: string): string[] {
  const rules: Rule[] = object(kind).rules;
  const each = rules.flatMap(({ apiGroups, resources, resourceNames = [""], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        resourceNames.flatMap((name) => verbs.map((verb) => `${group}/${resource} ${verb} ${name}`.trim())),
      ),
    ),
  );
  return each.sort();
}

/** What the source of the cluster lists and watches. */
const followed = [INGRESS_CLASSES, namespaceType(""), ...NAMESPACED_TYPES].map(({ apiVersion, plural }) =>
  apiVersion.includes("/") ? `${apiVersion.split("/")[0]}/${plural}` : `/${plural}`,
);
/** Kinds whose status is written. */
const withStatus = followed.filter((resource) => /\/(ingresses|virtualserver.*)$/.test(resource));

describe("the manifests", () => {
  it("parse without errors, and the kustomization lists every file, and the definitions of the custom kinds", () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    const files = readdirSync(FOLDER).filter((file) => file !== "kustomization.yaml");
    expect([...listed].sort()).toEqual([...files, "../crds"].sort());
  });

  it("bind both roles to the service account that the pods run as", () => {
    const account = object("ServiceAccount").metadata;
    expect(object("Deployment").spec.template.spec.serviceAccountName).toBe(account.name);
    for (const [binding, role] of [
      ["ClusterRoleBinding", "ClusterRole"],
      ["RoleBinding", "Role"],
    ]) {
      expect(object(binding).roleRef).toMatchObject({ kind: role, name: object(role).metadata.name });
      expect(object(binding).subjects).toEqual([{ kind: "ServiceAccount", ...account }]);
    }
  });

  it("stand in the namespace that they bring", () => {
    const namespace = object("Namespace").metadata.name;
    for (const { kind, metadata } of objects.filter(({ metadata }) => metadata.namespace !== undefined)) {
      expect(metadata.namespace, kind).toBe(namespace);
    }
    expect(namespace).toBe("njet-ingress");
  });

  it("name the class that the controller serves, and the controller of that class", () => {
    const { metadata, spec } = object("IngressClass");
    expect(spec.controller).toBe(CONTROLLER_NAME);
    expect(object("Deployment").spec.template.spec.containers[0].args).toContain(`--ingress-class=${metadata.name}`);
  });

  it("lead from ports 80 and 443 of the Service to the ports that the pods listen on", () => {
    const { spec } = object("Service");
    const { template, selector } = object("Deployment").spec;
    const container = template.spec.containers[0];
    expect(spec.type).toBe("NodePort");
    expect(spec.selector).toEqual({ app: "njet-ingress" });
    expect(template.metadata.labels).toMatchObject(spec.selector);
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
    expect(spec.ports.map(({ port }: { port: number }) => port)).toEqual([80, 443]);
    for (const { name, targetPort } of spec.ports) {
      const to = container.ports.find((port: { name: string }) => port.name === targetPort);
      expect(container.args).toContain(`--${name}-port=${to.containerPort}`);
    }
  });

  it("have scrapers and probes meet the port of the metrics", () => {
    const container = object("Deployment").spec.template.spec.containers[0];
    const port = container.ports.find(({ name }: { name: string }) => name === "metrics").containerPort;
    expect(object("Service").metadata.annotations).toEqual({
      "prometheus.io/scrape": "true",
      "prometheus.io/port": String(port),
      "prometheus.io/path": "/stats",
      "prometheus.io/scheme": "http",
    });
    expect(container.args).toContain(`--metrics-port=${port}`);
    expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz", port: "metrics" });
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "metrics" });
    expect(port).toBe(12001);
  });

  it("run the pods without privileges, and give them longer than they drain", () => {
    const { spec } = object("Deployment").spec.template;
    const container = spec.containers[0];
    expect(spec.securityContext.runAsNonRoot).toBe(true);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    const drain = container.args.find((text: string) => text.startsWith("--drain-seconds=")).split("=")[1];
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(drain));
  });

  it("give rights over the cluster to follow objects, to write status and Events, and no other", () => {
    expect(rights("ClusterRole")).toEqual(
      [
        ...followed.flatMap((resource) => [`${resource} list`, `${resource} watch`]),
        ...withStatus.map((resource) => `${resource}/status patch`),
        ...["create", "get", "patch"].map((verb) => `events.k8s.io/events ${verb}`),
      ].sort(),
    );
  });

  it("give rights over the one Lease by which a leader is elected", () => {
    const args: string[] = object("Deployment").spec.template.spec.containers[0].args;
    const lease = args.find((text) => text.startsWith("--leader-election-lease="))?.split("=")[1];
    expect(args).toContain(`--leader-election-namespace=${object("Role").metadata.namespace}`);
    expect(rights("Role")).toEqual(
      [
        "coordination.k8s.io/leases create",
        `coordination.k8s.io/leases get ${lease}`,
        `coordination.k8s.io/leases update ${lease}`,
      ].sort(),
    );
  });
});
