import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { Child, ROOT } from "../cli/cli-support.js";
import { installed, noCluster, useCluster, useKubectl } from "../kubernetes/cluster-support.js";
import { ingress, namespace, service, slice } from "../kubernetes/objects.js";
import { grantDefinition } from "../kubernetes/reference-grants.js";
import { answering } from "../kubernetes/run-support.js";
import type { KubeObject } from "../real/kube/client.js";
import type { AuditedRequest } from "../real/kube/cluster.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { FOLDER, objects } from "./manifests.js";
import { type Pod, podFor } from "./pod.js";

cleanUpAfterEach();
const current = useCluster({ audited: true });
const kubectl = useKubectl(current);
const LONG = { timeout: 60_000, interval: 50 };
const USER = "system:serviceaccount:njet-ingress:njet-ingress";

/** What a rule allows, one entry for each verb of each resource of each name. */
interface Right {
  role: string;
  verb: string;
  resource: string;
  name: string;
}

function rightsOf(kind: "ClusterRole" | "Role"): Right[] {
  return objects
    .filter((object) => object.kind === kind)
    .flatMap(({ metadata, rules }) =>
      rules.flatMap((rule: Record<string, string[]>) =>
        rule.apiGroups.flatMap((group) =>
          rule.resources.flatMap((resource) =>
            (rule.resourceNames ?? [""]).flatMap((name) =>
              rule.verbs.map((verb) => ({
                role: `${kind} "${metadata.name}"`,
                verb,
                resource: `${group}/${resource}`,
                name,
              })),
            ),
          ),
        ),
      ),
    );
}

function resourceOf({ objectRef }: AuditedRequest): string {
  const { apiGroup = "", resource = "", subresource } = objectRef ?? {};
  return `${apiGroup}/${resource}${subresource === undefined ? "" : `/${subresource}`}`;
}

/** Whether a request was allowed by this very right. */
function uses(request: AuditedRequest, { role, verb, resource, name }: Right): boolean {
  return (
    request.verb === verb &&
    resourceOf(request) === resource &&
    (name === "" || request.objectRef?.name === name) &&
    (request.annotations?.["authorization.k8s.io/reason"] ?? "").includes(role)
  );
}

function requestText(request: AuditedRequest): string {
  return `${request.verb} ${resourceOf(request)} ${request.objectRef?.name ?? ""} ${request.responseStatus?.code ?? ""}`;
}

/** The command with the arguments of the Deployment, on free ports, as its service account. */
async function startAsDeployed(pod: Pod, ...more: string[]): Promise<Child> {
  const deployment = JSON.parse(
    await kubectl().run("get", "deployment", "-n", "njet-ingress", "njet-ingress", "-o=json"),
  );
  const args: string[] = deployment.spec.template.spec.containers[0].args;
  const own = args.map((text) => text.replace(/^(--(?:http|https|metrics)-port)=.*$/, "$1=0"));
  expect(own.filter((text) => text.endsWith("-port=0"))).toHaveLength(3);
  const child = new Child(
    join(ROOT, "dist/controller/cli/main.js"),
    [...own, `--service-account-dir=${pod.accountFolder}`, ...more],
    pod,
  );
  await child.until("it serves", () => child.log().find((entry) => entry.message === "serving"));
  return child;
}

async function statusOf(object: KubeObject): Promise<Record<string, unknown>> {
  return ((await current().admin.get(object))?.status ?? {}) as Record<string, unknown>;
}

const part: KubeObject = {
  apiVersion: "k8s.njet.org/v1",
  kind: "VirtualServerRoute",
  metadata: { name: "part", namespace: "default" },
  spec: {
    ingressClassName: "njet",
    host: "whole.example.com",
    subroutes: [{ path: "/part", action: { return: { body: "part" } } }],
  },
};
const whole: KubeObject = {
  ...answering("whole", ""),
  spec: { ingressClassName: "njet", host: "whole.example.com", routes: [{ path: "/part", route: "part" }] },
};

describe.skipIf(noCluster)("kubectl apply -k deploy/manifests", () => {
  it("installs everything, and changes nothing when it is said again", async () => {
    const first = await kubectl().run("apply", "-k", FOLDER);
    expect(first.trim().split("\n")).toHaveLength(objects.length);
    expect(first).not.toMatch(/unchanged|configured/);
    const again = (await kubectl().run("apply", "-k", FOLDER)).trim().split("\n");
    expect(again).toHaveLength(objects.length);
    expect(again.filter((line) => !line.endsWith(" unchanged"))).toEqual([]);
    expect((await kubectl().attempt(["diff", "-k", FOLDER])).stdout).toBe("");
  });

  it("gives the rights that the controller uses, each of them, and it asks for no other", async () => {
    const { admin } = current();
    await kubectl().run("apply", "-k", FOLDER);
    await installed(current());
    const { chain, key } = makeCertificate("shop", "shop.example.com");
    const data = { "tls.crt": chain, "tls.key": key };
    const pair = { metadata: { name: "pair", namespace: "default" }, type: "kubernetes.io/tls", stringData: data };
    await admin.apply({ apiVersion: "v1", kind: "Secret", ...pair });
    // Without the Gateway API nothing of it is watched.
    await admin.apply(grantDefinition("v1"));
    await admin.applyAll([service("shop"), ingress("shop"), slice("shop-1", "shop", ["10.1.0.1"]), part, whole]);
    const pod = await podFor(current(), "njet-ingress", "njet-ingress");
    const leader = await startAsDeployed(pod);

    const edge = (await admin.get({
      ...service("njet-ingress"),
      metadata: { name: "njet-ingress", namespace: "njet-ingress" },
    }))!;
    const { clusterIP } = edge.spec as { clusterIP: string };
    await expect
      .poll(() => statusOf(ingress("shop")), LONG)
      .toEqual({ loadBalancer: { ingress: [{ ip: clusterIP }] } });
    await expect.poll(() => statusOf(whole), LONG).toMatchObject({ state: "Valid", observedGeneration: 1 });
    await expect.poll(() => statusOf(part), LONG).toMatchObject({ state: "Valid", referencedBy: "default/whole" });
    // Said a second time, an Event counts up.
    await admin.patch(whole, { spec: { routes: [{ path: "~ (", action: { return: { body: "" } } }] } });
    await expect.poll(() => statusOf(whole), LONG).toMatchObject({ state: "Invalid", observedGeneration: 2 });
    await admin.patch(whole, { spec: whole.spec });
    await expect.poll(() => statusOf(whole), LONG).toMatchObject({ state: "Valid", observedGeneration: 3 });
    const counted = () =>
      current()
        .audit()
        .some((request) => request.verb === "patch" && request.objectRef?.resource === "events");
    await expect.poll(counted, LONG).toBe(true);

    // The one right that only an option needs.
    await admin.apply(namespace("team", { edge: "public" }));
    const follower = await startAsDeployed(pod, "--watch-namespace-selector=edge=public");
    for (const child of [follower, leader]) {
      child.process.kill("SIGTERM");
      expect((await child.ended).status).toBe(0);
    }
    const said = [...leader.log(), ...follower.log()].filter(({ level }) => level === "warn" || level === "error");
    expect(said.filter(({ message }) => message !== "object")).toEqual([]);

    const requests = current()
      .audit()
      .filter(({ user }) => user.username === USER);
    const rights = [...rightsOf("ClusterRole"), ...rightsOf("Role")];
    const refused = requests.filter((request) => !rights.some((right) => uses(request, right)));
    expect(refused.map(requestText)).toEqual([]);
    const unused = rights.filter((right) => !requests.some((request) => uses(request, right)));
    expect(unused).toEqual([]);
    expect(requests.filter(({ responseStatus }) => responseStatus?.code === 403).map(requestText)).toEqual([]);
  }, 180_000);

  it("is not needed over the cluster where namespaces are given: the RoleBinding of README.md is enough", async () => {
    const { admin } = current();
    await kubectl().run("apply", "-k", FOLDER);
    await installed(current());
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const binding = parse(/```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(readme)?.[1] ?? "");
    await admin.apply(namespace("team"));
    await kubectl().run("delete", "clusterrolebinding", "njet-ingress");
    await kubectl().apply(binding);
    const inside = { ...answering("narrow", "x"), metadata: { name: "narrow", namespace: "team" } };
    await admin.apply(inside);
    const pod = await podFor(current(), "njet-ingress", "njet-ingress");
    const child = await startAsDeployed(pod, "--watch-namespace=team", "--publish-status-address=192.0.2.1");
    await expect.poll(() => statusOf(inside), LONG).toMatchObject({ state: "Valid" });
    const refused = child.log().filter(({ status }) => status === 403);
    expect(refused.map(({ resource }) => resource)).toEqual(["ingressclasses"]);
  });

  it("runs as a user without rights to the machine, which can write nowhere but to /tmp", async () => {
    const { through } = await podFor(current(), "njet-ingress", "njet-ingress");
    // The reason was printed.
    if (through.length === 0) return;
    const [command, ...args] = [
      ...through,
      "sh",
      "-c",
      "id -u; touch /tmp/yes && echo tmp; touch /usr/no /var/no /mnt/no",
    ];
    const { stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
    expect(stdout).toBe("65532\ntmp\n");
    expect(stderr.match(/touch: /g)).toHaveLength(3);
  });
});
