import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { ADMISSION_PATH } from "../../controller/admission/admission-server.js";
import { NAMESPACED_TYPES } from "../../controller/kubernetes/resource-type.js";
import { CERTIFICATE, parseOne, post, reviewFor, server, startAdmission } from "../admission/admission-support.js";
import { runCli } from "../cli/cli-support.js";
import { noCluster, useCluster } from "../kubernetes/cluster-support.js";
import { type KubeObject, pathOf } from "../real/kube/client.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { objects } from "./manifests.js";
import { certManager, configuration, deploymentPatch, FOLDER, kustomization, service } from "./webhook-manifests.js";

cleanUpAfterEach();
const current = useCluster();
const deployment: KubeObject = objects.find(({ kind }) => kind === "Deployment");
const [webhook] = configuration.webhooks;
const added = (path: string) => deploymentPatch.filter((entry) => entry.path.endsWith(path)).map(({ value }) => value);

/** What `webhook-certificate` prints for the manifests. */
async function printed(): Promise<[secret: KubeObject & { data: Record<string, string> }, bundle: KubeObject]> {
  const { status, stdout } = await runCli(["webhook-certificate"]);
  expect(status).toBe(0);
  return JSON.parse(stdout).items;
}

const decoded = (text: string) => Buffer.from(text, "base64").toString();

describe("the manifests of the validating webhook", () => {
  it("build upon the others, and list every file but the one for cert-manager", () => {
    expect(kustomization.resources[0]).toBe("../manifests");
    const files = readdirSync(FOLDER).filter((file) => file !== "kustomization.yaml" && file !== "cert-manager.yaml");
    const patches = kustomization.patches.map(({ path }: { path: string }) => path);
    expect([...kustomization.resources.slice(1), ...patches].sort()).toEqual(files.sort());
    expect(kustomization.patches[0].target).toEqual({ kind: "Deployment", name: deployment.metadata.name });
  });

  it("lead from the API server to the port that the pods open", () => {
    const { name, namespace } = service.metadata;
    expect(webhook.clientConfig.service).toEqual({
      name,
      namespace,
      path: ADMISSION_PATH,
      port: service.spec.ports[0].port,
    });
    expect(service.spec.selector).toEqual(
      (deployment.spec as { selector: { matchLabels: unknown } }).selector.matchLabels,
    );
    const [port] = added("/ports/-") as { name: string; containerPort: number }[];
    expect(service.spec.ports[0].targetPort).toBe(port.name);
    expect(added("/args/-")).toContain(`--validating-webhook=${port.containerPort}`);
  });

  it("have the pods start without the certificate, and find it where it is mounted", () => {
    const [mount] = added("/volumeMounts/-") as { name: string; mountPath: string }[];
    const [volume] = added("/volumes/-") as { name: string; secret: { secretName: string; optional: boolean } }[];
    expect(volume.name).toBe(mount.name);
    expect(volume.secret.optional).toBe(true);
    expect(added("/args/-")).toContain(`--validating-webhook-certificate=${mount.mountPath}`);
    const [, certificate] = certManager;
    expect(certificate.spec.secretName).toBe(volume.secret.secretName);
    expect(certificate.spec.dnsNames).toEqual([`${service.metadata.name}.${service.metadata.namespace}.svc`]);
    const { name, namespace } = certificate.metadata;
    expect(configuration.metadata.annotations["cert-manager.io/inject-ca-from"]).toBe(`${namespace}/${name}`);
  });

  it("ask about the kinds that bring routes, and let changes pass while the webhook is away", () => {
    const asked = webhook.rules.flatMap(({ resources }: { resources: string[] }) => resources).sort();
    const routing = ["Ingress", "VirtualServer", "VirtualServerRoute"];
    expect(asked).toEqual(
      NAMESPACED_TYPES.filter(({ kind }) => routing.includes(kind))
        .map(({ plural }) => plural)
        .sort(),
    );
    expect([webhook.failurePolicy, webhook.sideEffects, webhook.timeoutSeconds]).toEqual(["Ignore", "None", 5]);
  });
});

describe("webhook-certificate", () => {
  it("prints a certificate for the Service, and the same as the authority that the API server is to trust", async () => {
    const [secret, bundle] = await printed();
    const [chain, key] = [decoded(secret.data["tls.crt"]), decoded(secret.data["tls.key"])];
    const [{ name, clientConfig }] = bundle.webhooks as [{ name: string; clientConfig: { caBundle: string } }];
    expect([bundle.metadata.name, name]).toEqual([configuration.metadata.name, webhook.name]);
    const { port, server: admission } = await startAdmission();
    admission.use({ cert: chain, key });
    const ca = decoded(clientConfig.caBundle);
    const servername = `${service.metadata.name}.${service.metadata.namespace}.svc`;
    const review = reviewFor(parseOne(server("shop", "shop.example.com")));
    expect((await post(port, review, { ca, servername })).status).toBe(200);
    await expect(post(port, review, { ca, servername: "other.njet-ingress.svc" })).rejects.toThrow();
    await expect(post(port, review, { ca: CERTIFICATE.chain, servername })).rejects.toThrow();
  });

  it("refuses names that are none", async () => {
    expect((await runCli(["webhook-certificate", "--service", "a/b"])).status).toBe(1);
    expect((await runCli(["webhook-certificate", "--days", "0"])).status).toBe(1);
  });
});

describe.skipIf(noCluster)("the manifests of the validating webhook on the real API server", () => {
  beforeAll(async () => {
    if (!noCluster) await current().admin.applyAll([...objects, service, configuration]);
  });

  it("are taken as they are, each field, and the patch with them", async () => {
    const { admin } = current();
    for (const object of [service, configuration]) expect(await admin.get(object)).toMatchObject(object);
    const patch = await admin.raw("PATCH", pathOf(deployment), deploymentPatch, "application/json-patch+json");
    expect(patch.status).toBe(200);
    const [container] = (patch.body.spec as { template: { spec: { containers: { args: string[] }[] } } }).template.spec
      .containers;
    expect(container.args).toEqual(expect.arrayContaining(added("/args/-")));
  });

  it("get their certificate by server-side apply, which leaves the rest as it was and survives the next apply", async () => {
    const { admin } = current();
    const [secret, bundle] = await printed();
    for (const object of [secret, bundle]) {
      const path = `${pathOf(object)}?fieldManager=kubectl`;
      const { status } = await admin.raw("PATCH", path, object, "application/apply-patch+yaml");
      expect([200, 201]).toContain(status);
    }
    const bundled = structuredClone(configuration);
    bundled.webhooks[0].clientConfig.caBundle = secret.data["tls.crt"];
    expect(await admin.get(configuration)).toMatchObject(bundled);
    // Without a caBundle in it, as the file is.
    const again = `${pathOf(configuration)}?fieldManager=kustomize&force=true`;
    const { status } = await admin.raw("PATCH", again, configuration, "application/apply-patch+yaml");
    expect(status).toBe(200);
    expect(await admin.get(configuration)).toMatchObject(bundled);
  });
});
