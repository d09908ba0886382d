import { beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../real/kube/client.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { scrape, seriesValue } from "../support/metrics-page.js";
import { servedCertificate } from "../support/raw-client.js";
import { installed, noCluster, useCluster } from "./cluster-support.js";
import { definition, ingress, ingressClass, namespace, service, slice } from "./objects.js";
import { grant, grantDefinition } from "./reference-grants.js";
import { answering, answerOf, type Replica, startReplica } from "./run-support.js";

cleanUpAfterEach();
const current = useCluster();
const LONG = { timeout: 40_000, interval: 50 };
const HOST = "web.example.com";
const GRANTED = ["Service", "Secret", "VirtualServerRoute"];

const { chain, key } = makeCertificate(HOST);
const encode = (text: string) => Buffer.from(text).toString("base64");

/** What the namespace `backend` has. */
const BACKEND: KubeObject[] = [
  service("api", "backend"),
  slice("api-1", "api", ["192.0.2.1"], "backend"),
  {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "pair", namespace: "backend" },
    type: "kubernetes.io/tls",
    data: { "tls.crt": encode(chain), "tls.key": encode(key) },
  },
  {
    apiVersion: "k8s.njet.org/v1",
    kind: "VirtualServerRoute",
    metadata: { name: "part", namespace: "backend" },
    spec: {
      ingressClassName: "njet",
      host: HOST,
      subroutes: [{ path: "/", action: { return: { body: "part" } } }],
    },
  },
];

/** An object of the namespace `default` that refers to all of that. */
const WEB: KubeObject = {
  ...answering("web", ""),
  spec: {
    ingressClassName: "njet",
    host: HOST,
    tls: { secret: "backend/pair" },
    upstreams: [{ name: "api", service: "backend/api", port: 80 }],
    routes: [
      { path: "/", route: "backend/part" },
      { path: "/api", action: { pass: "api" } },
    ],
  },
};

beforeAll(async () => {
  if (noCluster) return;
  const { admin } = current();
  await admin.applyAll([definition("VirtualServer"), definition("VirtualServerRoute"), namespace("backend")]);
  await admin.apply(ingressClass("njet", "njet.org/ingress-controller"));
  await installed(current());
  await admin.applyAll([...BACKEND, WEB]);
});

/** Answer of the delegated path, name in the certificate, number of peers of the upstream, and what status says. */
async function observed(replica: Replica) {
  const labels = { upstream: "VirtualServer/default/web/api", state: "unchecked" };
  const peers = seriesValue(await scrape(replica.metrics), "njet_kic_upstream_peers", labels);
  const { state, message } = ((await current().admin.get(WEB))?.status ?? {}) as { state?: string; message?: string };
  return {
    route: await answerOf(replica, HOST),
    certificate: (await servedCertificate(replica.https, HOST)).subject.CN === HOST,
    peers,
    state,
    missing: message?.includes("a ReferenceGrant in the namespace backend has to grant it"),
  };
}

const REFUSED = { route: "503", certificate: false, peers: 0, state: "Warning", missing: true };
const ALLOWED = { route: "part", certificate: true, peers: 1, state: "Valid", missing: false };

/** Takes the definition away, whole: one that is still going away can't be made anew. */
async function removeDefinition(): Promise<void> {
  const { admin } = current();
  const definition = grantDefinition("v1");
  await admin.delete(definition);
  await expect.poll(() => admin.get(definition), LONG).toBeUndefined();
}

describe.skipIf(noCluster)("run, with references to another namespace", () => {
  it("lets them act while a grant is there, of a kind that is installed later, and tells in status what is missing", async () => {
    const { admin } = current();
    const replica = await startReplica(current(), "--cross-namespace-routes", "granted");
    await expect.poll(() => observed(replica), LONG).toEqual(REFUSED);
    await admin.apply(grantDefinition("v1", "v1beta1"));
    const all = grant("all", "backend", GRANTED);
    await expect.poll(() => admin.apply(all).catch(() => undefined), LONG).toBeDefined();
    await expect.poll(() => observed(replica), LONG).toEqual(ALLOWED);
    await admin.delete(all);
    await expect.poll(() => observed(replica), LONG).toEqual(REFUSED);
    await admin.apply(all);
    await expect.poll(() => observed(replica), LONG).toEqual(ALLOWED);
    await admin.apply(grant("all", "backend", ["Secret"]));
    await expect.poll(() => observed(replica), LONG).toEqual({ ...REFUSED, certificate: true });
    await removeDefinition();
    await expect.poll(() => observed(replica), LONG).toEqual(REFUSED);
  });

  it("has grants in force before it serves", async () => {
    const { admin } = current();
    await admin.apply(grantDefinition("v1beta1"));
    const all = grant("first", "backend", GRANTED, "v1beta1");
    await expect.poll(() => admin.apply(all).catch(() => undefined), LONG).toBeDefined();
    const replica = await startReplica(current(), "--cross-namespace-routes", "granted");
    const { route, certificate, peers } = await observed(replica);
    expect({ route, certificate, peers }).toEqual({ route: "part", certificate: true, peers: 1 });
    await removeDefinition();
  });

  it("sees grants and Secrets of the watched namespaces only", async () => {
    const { admin } = current();
    await admin.apply(grantDefinition("v1"));
    await expect.poll(() => admin.apply(grant("seen", "backend", GRANTED)).catch(() => undefined), LONG).toBeDefined();
    const narrow = await startReplica(current(), "--watch-namespace", "default");
    expect(await observed(narrow)).toMatchObject({ route: "503", certificate: false, peers: 0 });
    const wide = await startReplica(current(), "--watch-namespace", "default,backend");
    expect(await observed(wide)).toMatchObject({ route: "part", certificate: true, peers: 1 });
    await removeDefinition();
  });

  it("the secretName of an Ingress can't name a namespace: the API server refuses it, and the annotation is taken", async () => {
    const { admin } = current();
    const plain = ingress("annotated");
    const tls = (secretName: string) => ({
      ...plain,
      metadata: { ...plain.metadata, annotations: { "njet.org/tls-cert-namespace": "backend" } },
      spec: { ...(plain.spec as object), tls: [{ hosts: ["annotated.example.com"], secretName }] },
    });
    await expect(admin.apply(tls("backend/pair"))).rejects.toThrow("422");
    await admin.apply(tls("pair"));
    await admin.delete(tls("pair"));
  });
});
