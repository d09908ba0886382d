import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { serviceAccount } from "../../controller/kubernetes/credentials.js";
import { follow, noCluster, useCluster } from "../kubernetes/cluster-support.js";
import { ingress, service } from "../kubernetes/objects.js";
import { KubeClient, type KubeObject } from "../real/kube/client.js";
import { cleanUpAfterEach, cleanup, eventually } from "../support/harness.js";
import { objects } from "./manifests.js";

cleanUpAfterEach();
const current = useCluster();
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/njet-ingress/leases";
const EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events";

let token: string;
/** A client with the rights of the manifests. */
let own: KubeClient;

beforeAll(async () => {
  if (noCluster) return;
  const { admin, server, ca } = current();
  await admin.applyAll(objects);
  token = await current().accountToken("njet-ingress", "njet-ingress");
  own = new KubeClient(server, ca, token);
});

describe.skipIf(noCluster)("the manifests on the real API server", () => {
  it("are taken as they are, each field", async () => {
    for (const object of objects as KubeObject[]) {
      expect(await current().admin.get(object), `${object.kind} ${object.metadata.name}`).toMatchObject(object);
    }
  });

  it("let the source of the cluster read every kind as its service account", async () => {
    const folder = mkdtempSync(join(tmpdir(), "njet-kic-account-"));
    cleanup(async () => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "token"), token, { mode: 0o600 });
    writeFileSync(join(folder, "ca.crt"), current().ca);
    const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: String(current().port) };
    await current().admin.applyAll([service("read"), ingress("read")]);
    const { source, seen } = follow(current(), { credentials: serviceAccount(env, folder) });
    await eventually(() => source.synced, 20_000);
    expect(seen.names()).toEqual(
      expect.arrayContaining(["Ingress/default/read", "IngressClass/njet", "Service/default/read"]),
    );
    expect(seen.log.filter(({ status }) => status === 403)).toEqual([]);
  });

  it("let status, Events and the Lease be written", async () => {
    await current().admin.apply(ingress("told"));
    await own.patch(ingress("told"), { status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } } }, "/status");
    const event = {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: "told", namespace: "default" },
      eventTime: "2024-01-10T08:00:00.000000Z",
      reportingController: "njet.org/ingress-controller",
      reportingInstance: "one",
      action: "Sync",
      reason: "AddedOrUpdated",
      type: "Normal",
      regarding: { apiVersion: "networking.k8s.io/v1", kind: "Ingress", namespace: "default", name: "told" },
    };
    expect((await own.raw("POST", EVENTS, event)).status).toBe(201);
    expect((await own.raw("GET", `${EVENTS}/told`)).status).toBe(200);
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "njet-kic-njet" } };
    expect((await own.raw("POST", LEASES, lease)).status).toBe(201);
    const { status, body } = await own.raw("GET", `${LEASES}/njet-kic-njet`);
    expect(status).toBe(200);
    expect((await own.raw("PUT", `${LEASES}/njet-kic-njet`, body)).status).toBe(200);
  });

  it("refuse what the controller has no need of", async () => {
    const ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    const refused: [string, string, unknown?][] = [
      ["POST", ingresses, ingress("more")],
      ["DELETE", `${ingresses}/told`],
      ["GET", "/api/v1/namespaces/default/secrets/some"],
      ["GET", "/api/v1/pods"],
      ["GET", `${LEASES}/other`],
      ["DELETE", `${LEASES}/njet-kic-njet`],
      ["DELETE", `${EVENTS}/told`],
    ];
    for (const [method, path, body] of refused) {
      expect((await own.raw(method, path, body)).status, `${method} ${path}`).toBe(403);
    }
  });
});
