import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { serviceAccount } from "../../controller/kubernetes/credentials.js";
import type { KubeObject } from "../real/kube/client.js";
import type { TestCluster } from "../real/kube/cluster.js";
import { TcpProxy } from "../real/kube/tcp-proxy.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { type Delivered, follow, noCluster, useCluster } from "./cluster-support.js";
import { service, slice } from "./objects.js";

cleanUpAfterEach();
// Without a cache of its own the API server asks etcd, and forgets with it.
const current = useCluster({ flags: ["--watch-cache-sizes=services#0"] });
const LONG = 30_000;

/** Services of the cluster as `namespace/name resourceVersion`, and as the source has them. */
async function services(cluster: TestCluster): Promise<string[]> {
  return (await cluster.admin.list("/api/v1/services")).map(nameAndVersion).sort();
}

function delivered(seen: Delivered): string[] {
  const objects = [...seen.objects].filter(([key]) => key.startsWith("Service/")).map(([, object]) => object);
  return (objects as KubeObject[]).map(nameAndVersion).sort();
}

function nameAndVersion({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name} ${metadata.resourceVersion}`;
}

async function converges(cluster: TestCluster, seen: Delivered): Promise<void> {
  const wanted = (await services(cluster)).join();
  await eventually(() => delivered(seen).join() === wanted, LONG);
}

async function synced(source: { synced: boolean }): Promise<void> {
  await eventually(() => source.synced, LONG);
}

describe.skipIf(noCluster)("a source", () => {
  const prefix = () => `s${randomBytes(3).toString("hex")}`;

  it("that finds its resourceVersion compacted lists anew, and reports what went meanwhile", async () => {
    const { admin } = current();
    const name = prefix();
    await admin.applyAll([service(`${name}-stays`), service(`${name}-goes`)]);
    const proxy = closing(await TcpProxy.start(current().port));
    const { source, seen, client } = follow(current(), { kubeconfigFile: current().kubeconfig("admin", proxy.server) });
    await synced(source);
    proxy.block();
    await admin.delete(service(`${name}-goes`));
    await admin.apply(service(`${name}-comes`));
    await current().compact();
    proxy.unblock();
    await converges(current(), seen);
    expect(client.failures).toContain(410);
    expect(seen.objects.has(`Service/default/${name}-goes`)).toBe(false);
    expect(seen.objects.has(`Service/default/${name}-comes`)).toBe(true);
  });

  it("misses no delete between its list and its watch", async () => {
    const { admin } = current();
    const name = prefix();
    await admin.apply(service(name));
    const { source, seen, client } = follow(current(), { later: true });
    let listed = false;
    client.beforeWatch = async (path) => {
      if (listed || !path.includes("/services?")) return;
      await admin.delete(service(name));
      listed = true;
    };
    source.start();
    await eventually(() => listed, LONG);
    // What the watch brings last; the service itself may come and go within one delivery.
    await admin.apply(service(`${name}-later`));
    await eventually(() => seen.objects.has(`Service/default/${name}-later`), LONG);
    expect(seen.objects.has(`Service/default/${name}`)).toBe(false);
  });

  it("converges while its connections are cut every second for a minute", async () => {
    const { admin } = current();
    const name = prefix();
    const proxy = closing(await TcpProxy.start(current().port));
    const { source, seen } = follow(current(), { kubeconfigFile: current().kubeconfig("admin", proxy.server) });
    await synced(source);
    for (let round = 0; round < 60; round++) {
      proxy.cut();
      await admin.apply(service(`${name}-${round}`));
      if (round > 2) await admin.delete(service(`${name}-${round - 3}`));
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    await converges(current(), seen);
    expect(proxy.taken).toBeGreaterThan(120);
  }, 120_000);

  it("takes a watch that is silent for too long for dead", async () => {
    const { admin } = current();
    const name = prefix();
    const proxy = closing(await TcpProxy.start(current().port));
    const kubeconfigFile = current().kubeconfig("admin", proxy.server);
    const { source, seen } = follow(current(), { kubeconfigFile, silenceMs: 2000 });
    await synced(source);
    proxy.freeze();
    await admin.apply(service(name));
    await eventually(() => seen.objects.has(`Service/default/${name}`), LONG);
  });

  it("ends with the last of 500 writes that compete for a few objects", async () => {
    const { admin } = current();
    const name = prefix();
    const names = [0, 1, 2, 3, 4].map((index) => `${name}-${index}`);
    await admin.applyAll(names.map((each) => service(each)));
    const { source, seen } = follow(current());
    await synced(source);
    const answers = await Promise.all(
      Array.from({ length: 500 }, async (_, index) => {
        const object = service(names[index % names.length]);
        const path = `/api/v1/namespaces/default/services/${object.metadata.name}`;
        const { body } = await admin.raw("GET", path);
        const changed = { ...body, metadata: { ...body.metadata, annotations: { write: String(index) } } };
        return (await admin.raw("PUT", path, changed)).status;
      }),
    );
    expect(new Set(answers)).toEqual(new Set([200, 409]));
    await converges(current(), seen);
  });

  it("follows a killed API server once it is back", async () => {
    const { admin } = current();
    const name = prefix();
    const { source, seen } = follow(current());
    await synced(source);
    await current().killApiServer();
    await current().startApiServer();
    await current().admin.apply(service(name));
    await admin.apply(slice(`${name}-1`, name, ["10.1.0.1"]));
    await eventually(() => seen.objects.has(`Service/default/${name}`), LONG);
    await eventually(() => seen.objects.has(`EndpointSlice/default/${name}-1`), LONG);
    await converges(current(), seen);
  });
});

describe.skipIf(noCluster)("a service account", () => {
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "edge", namespace: "default" } };
  let env: NodeJS.ProcessEnv = {};
  let folder = "";
  const newToken = async () => {
    const path = "/api/v1/namespaces/default/serviceaccounts/edge/token";
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 600 } };
    const answer = await current().admin.raw("POST", path, body);
    writeFileSync(join(folder, "token"), (answer.body as unknown as { status: { token: string } }).status.token);
  };

  beforeAll(async () => {
    if (noCluster) return;
    folder = join(current().folder, "account");
    mkdirSync(folder);
    writeFileSync(join(folder, "ca.crt"), current().ca);
    await current().admin.apply(account);
    await current().admin.apply({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "edge" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "ServiceAccount", name: "edge", namespace: "default" }],
    });
    await newToken();
  });

  it("whose token is no longer taken gets in again with the renewed one, and nothing is lost", async () => {
    const proxy = closing(await TcpProxy.start(current().port));
    env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: new URL(proxy.server).port };
    const { source, seen, client } = follow(current(), { credentials: serviceAccount(env, folder) });
    await synced(source);
    // Tokens belong to the account as it was made; one that is made anew does not know them.
    await current().admin.delete(account);
    await current().admin.apply(account);
    // For ten seconds the API server still takes a token that it has just taken. A source has to have its answer before the next cut,
    // also on a machine that is busy.
    proxy.cut();
    const cutting = setInterval(() => proxy.cut(), 12_000);
    await eventually(() => client.failures.includes(401), 4 * LONG).finally(() => clearInterval(cutting));
    await current().admin.apply(service("while-locked-out"));
    await newToken();
    await converges(current(), seen);
    expect(seen.objects.has("Service/default/while-locked-out")).toBe(true);
    const said = JSON.stringify(seen.log);
    expect(said).toContain('"status":401');
    expect(said).not.toContain("eyJ");
  }, 240_000);
});
