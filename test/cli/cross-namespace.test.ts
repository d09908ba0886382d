import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { httpPeer } from "../support/peers.js";
import { servedCertificate } from "../support/raw-client.js";
import { makeFolder, put, runCli, startRun } from "./cli-support.js";
import { ingress, service, tlsSecret } from "./objects.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

/** A VirtualServer of one namespace whose service and Secret are of another one. */
const SERVER = `apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: { name: web, namespace: shop }
spec:
  host: ${HOST}
  tls: { secret: backend/api }
  upstreams: [{ name: api, service: backend/api, port: 80 }]
  routes: [{ path: /, action: { pass: api } }]
`;

const grant = (...kinds: string[]) => `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: { name: shop, namespace: backend }
spec:
  from: [{ group: k8s.njet.org, kind: VirtualServer, namespace: shop }]
  to: [${kinds.map((kind) => `{ group: "", kind: ${kind}, name: api }`).join(", ")}]
`;

/** A folder with the VirtualServer, what it refers to, and a host of the namespace `backend` itself; no grant. */
async function folderOf(certificate: { chain: string; key: string }): Promise<string> {
  const peer = closing(await httpPeer((_request, response) => response.end("api")));
  const folder = makeFolder();
  const inBackend = (text: string) => text.replaceAll("metadata: { ", "metadata: { namespace: backend, ");
  put(folder, "web.yaml", SERVER);
  put(folder, "api.yaml", inBackend(service("api", "127.0.0.1", peer.port)));
  put(folder, "pair.yaml", inBackend(tlsSecret("api", certificate)));
  put(folder, "own.yaml", inBackend(ingress("own", "own.example.com", "api")));
  return folder;
}

describe("run", () => {
  it("uses a service and a Secret of another namespace while a grant is there, and others see nothing of it", async () => {
    const certificate = makeCertificate(HOST);
    const folder = await folderOf(certificate);
    const running = await startRun(folder, "--no-access-log");
    const answer = async () => (await ask(running.http, { host: HOST })).status;
    const served = async () => (await servedCertificate(running.https, HOST)).subject.CN;
    const load = new Load(running.http, "own.example.com");
    expect(await answer()).toBe(503);
    const byDefault = await served();
    for (let round = 0; round < 3; round += 1) {
      put(folder, "grant.yaml", grant("Service", "Secret"));
      await expect.poll(async () => [await answer(), await served()], { timeout: 20_000 }).toEqual([200, HOST]);
      put(folder, "grant.yaml", grant("Secret"));
      await expect.poll(async () => [await answer(), await served()], { timeout: 20_000 }).toEqual([503, HOST]);
      rmSync(join(folder, "grant.yaml"));
      await expect.poll(async () => [await answer(), await served()], { timeout: 20_000 }).toEqual([503, byDefault]);
    }
    await load.more(20);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(byDefault).not.toBe(HOST);
  });

  it("says which grant is missing", async () => {
    const running = await startRun(await folderOf(makeCertificate(HOST)), "--no-access-log");
    const line = () => running.log().find(({ object }) => object === "VirtualServer/shop/web");
    await eventually(() => line() !== undefined);
    expect(line()).toMatchObject({ level: "warn", state: "Warning" });
    expect(JSON.stringify(line())).toContain("a ReferenceGrant in the namespace backend has to grant it");
  });
});

describe("match and lint", () => {
  it("decide by the grants of the folder, and by the option", async () => {
    const folder = await folderOf(makeCertificate(HOST));
    const match = async (...options: string[]) => {
      const args = ["match", "--config-dir", folder, "--json", ...options, `http://${HOST}/`];
      return JSON.parse((await runCli(args)).stdout) as { action: string; upstream?: string; peer?: string };
    };
    const peerOf = async (...options: string[]) => (await match(...options)).peer !== undefined;
    expect(await peerOf()).toBe(false);
    expect(await peerOf("--cross-namespace-services", "all")).toBe(true);
    put(folder, "grant.yaml", grant("Service"));
    expect(await peerOf()).toBe(true);
    expect(await peerOf("--cross-namespace-services", "off")).toBe(false);
  });

  it("list grants with what is wrong with them", async () => {
    const folder = await folderOf(makeCertificate(HOST));
    const codes = async () => {
      const { status, stdout } = await runCli(["lint", "--json", folder]);
      const rows = JSON.parse(stdout) as { kind: string; state: string; problems: { code: string }[] }[];
      const shown = rows.filter(({ kind }) => kind === "ReferenceGrant" || kind === "VirtualServer");
      return [
        status,
        ...shown.map(({ kind, problems }) => `${kind} ${problems.map(({ code }) => code).join(" ")}`.trim()),
      ];
    };
    put(folder, "grant.yaml", grant("Service", "Secret"));
    expect(await codes()).toEqual([0, "ReferenceGrant", "VirtualServer"]);
    put(folder, "grant.yaml", grant("Service", "Secret, nmae: x"));
    expect(await codes()).toEqual([
      1,
      "ReferenceGrant FIELD_UNKNOWN",
      "VirtualServer REFERENCE_NOT_GRANTED REFERENCE_NOT_GRANTED",
    ]);
  });

  it("refuse a value that the option does not have", async () => {
    const { status, stderr } = await runCli(["lint", "--cross-namespace-routes", "some", "."]);
    expect(status).not.toBe(0);
    expect(stderr).toContain("off, granted, all");
  });
});
