import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { configuration } from "../deploy/webhook-manifests.js";
import { collection, type KubeAnswer, type KubeObject, pathOf } from "../real/kube/client.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { installed, noCluster, useCluster } from "./cluster-support.js";
import { definition, ingress, ingressClass, service, virtualServer } from "./objects.js";
import { answering, type Replica, startReplica } from "./run-support.js";

cleanUpAfterEach();
const current = useCluster();
const LONG = { timeout: 30_000, interval: 20 };

const BROKEN = virtualServer("broken", { routes: [{ path: "/", action: { pass: "nowhere" } }] });
const BROKEN_INGRESS: KubeObject = {
  ...ingress("broken"),
  metadata: { name: "broken", namespace: "default", annotations: { "njet.org/use-regex": "maybe" } },
};

interface Routes {
  routes: unknown[];
}

const create = (object: KubeObject, query = ""): Promise<KubeAnswer> =>
  current().admin.raw("POST", collection(object) + query, object);
const change = (object: KubeObject, patch: unknown): Promise<KubeAnswer> =>
  current().admin.raw("PATCH", pathOf(object), patch, "application/merge-patch+json");
const messageOf = ({ body }: KubeAnswer) => String(body.message);

/** A controller with the webhook of the manifests, which the API server reaches on loopback, and uses. */
async function startWebhook(...options: string[]): Promise<Replica> {
  const { admin } = current();
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-webhook-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  const { chain, key } = makeCertificate("webhook", "localhost");
  writeFileSync(join(folder, "tls.crt"), chain);
  writeFileSync(join(folder, "tls.key"), key, { mode: 0o600 });
  const certificate = ["--validating-webhook", "0", "--validating-webhook-certificate", folder];
  const replica = await startReplica(current(), ...certificate, ...options);
  const { validatingWebhook: port } = replica.log().find(({ message }) => message === "serving") ?? {};
  const reached = structuredClone(configuration) as KubeObject & { webhooks: { clientConfig: unknown }[] };
  reached.webhooks[0].clientConfig = {
    url: `https://localhost:${port}/validate`,
    caBundle: Buffer.from(chain).toString("base64"),
  };
  await admin.apply(reached);
  // The API server takes its time to use a new configuration.
  await expect.poll(async () => (await create(BROKEN, "?dryRun=All")).status, LONG).toBe(422);
  return replica;
}

beforeAll(async () => {
  if (noCluster) return;
  await current().admin.applyAll([definition("VirtualServer"), definition("VirtualServerRoute")]);
  await current().admin.applyAll([ingressClass("njet", "njet.org/ingress-controller"), service("good")]);
  await installed(current());
});

describe.skipIf(noCluster)("the validating webhook, asked by the real API server", () => {
  beforeEach(async () => void (await startWebhook()));
  afterEach(async () => current().admin.delete(configuration));

  it("refuses what is wrong, in our words, and nothing of it is stored", async () => {
    const server = await create(BROKEN);
    expect([server.status, server.body.reason]).toEqual([422, "Invalid"]);
    expect(messageOf(server)).toMatch(
      /^admission webhook "objects\.validating\.njet\.org" denied the request: VirtualServer\/default\/broken: spec\.routes\[0\]\.action\.pass: /,
    );
    expect(server.body.details).toMatchObject({
      name: "broken",
      kind: "VirtualServer",
      causes: [{ reason: "UPSTREAM_UNKNOWN", field: "spec.routes[0].action.pass" }],
    });
    const other = await create(BROKEN_INGRESS);
    expect(other.status).toBe(422);
    expect(messageOf(other)).toContain("metadata.annotations");
    for (const object of [BROKEN, BROKEN_INGRESS]) expect(await current().admin.get(object)).toBeUndefined();
  });

  it("lets pass what is good, and its status is written", async () => {
    const object = answering("fine", "x");
    const { status, warnings } = await create(object);
    expect([status, warnings]).toEqual([201, []]);
    const state = async () => ((await current().admin.get(object))?.status as { state?: string } | undefined)?.state;
    await expect.poll(state, LONG).toBe("Valid");
  });

  it("warns of what is missing", async () => {
    const { status, warnings } = await create(ingress("alone"));
    expect(status).toBe(201);
    expect(warnings).toEqual([
      "spec.rules[0].http.paths[0].backend.service: the service default/alone does not exist; requests are answered 503 (SERVICE_MISSING)",
    ]);
  });

  it("refuses a host that another object has, and names the owner", async () => {
    expect((await create(answering("owner", "x"))).status).toBe(201);
    const rival = answering("rival", "y");
    (rival.spec as { host: string }).host = "owner.example.com";
    // Until the controller has heard of the owner, the host is free.
    await expect.poll(async () => (await create(rival, "?dryRun=All")).status, LONG).toBe(403);
    const { status, body } = await create(rival);
    expect([status, body.reason]).toEqual([403, "Forbidden"]);
    // Of two that were made within one second, the UID says which one counts as older.
    expect(body.message).toMatch(/VirtualServer\/default\/owner (is older and )?has the host "owner\.example\.com"/);
  });

  it("refuses a change that makes a good object a bad one, and the good one stays", async () => {
    const object = answering("changed", "x");
    await create(object);
    const { status } = await change(object, {
      spec: { routes: [{ path: "no-slash", action: { return: { body: "x" } } }] },
    });
    expect(status).toBe(422);
    expect(await current().admin.get(object)).toMatchObject({ spec: { routes: (object.spec as Routes).routes } });
  });

  it("has no say in other classes", async () => {
    const object = { ...BROKEN, spec: { ...(BROKEN.spec as object), ingressClassName: "other" } };
    expect((await create(object)).status).toBe(201);
    await current().admin.delete(object);
  });

  it("answers a dry run", async () => {
    expect((await create(BROKEN, "?dryRun=All")).status).toBe(422);
    expect((await create(answering("dry", "x"), "?dryRun=All")).status).toBe(201);
    expect(await current().admin.get(answering("dry", "x"))).toBeUndefined();
  });
});

describe.skipIf(noCluster)("a webhook that is away", () => {
  it("lets everything pass under failurePolicy Ignore, and what got through can be labelled, repaired and deleted", async () => {
    const first = await startWebhook();
    first.process.kill("SIGTERM");
    expect((await first.ended).status).toBe(0);
    expect((await create(BROKEN)).status).toBe(201);
    await startWebhook();
    const marked = { metadata: { labels: { a: "b" }, finalizers: ["example.com/kept"] } };
    expect((await change(BROKEN, marked)).status).toBe(200);
    expect((await change(BROKEN, { spec: { host: "elsewhere.example.com" } })).status).toBe(422);
    expect((await change(BROKEN, { spec: { routes: [{ path: "/", action: { pass: "main" } }] } })).status).toBe(200);
    await current().admin.delete(BROKEN);
    expect((await change(BROKEN, { metadata: { finalizers: null } })).status).toBe(200);
    await expect.poll(() => current().admin.get(BROKEN), LONG).toBeUndefined();
    await current().admin.delete(configuration);
  });
});

describe.skipIf(noCluster)("the options of the webhook", () => {
  it("leave namespaces alone that are not watched", async () => {
    await current().admin.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "apart" } });
    await startWebhook("--watch-namespace", "default");
    const apart = { ...BROKEN, metadata: { name: "broken", namespace: "apart" } };
    expect((await create(apart)).status).toBe(201);
    await current().admin.delete(configuration);
  });

  it("have its answers counted on the page of the metrics", async () => {
    const replica = await startWebhook();
    await create(BROKEN);
    const page = (await ask(replica.metrics, { path: "/stats" })).body;
    expect(Number(page.match(/^njet_kic_admission_requests_total\{answer="refused"\} (\d+)$/m)?.[1])).toBeGreaterThan(
      1,
    );
    expect(page).toMatch(/^njet_kic_admission_certificate_expiry_timestamp_seconds \d+$/m);
    await current().admin.delete(configuration);
  });
});
