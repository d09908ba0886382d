import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../controller/observability/logger.js";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { CertificateFiles } from "../../controller/proxies/opennjet/certificate-files.js";
import { CertificateMaps } from "../../controller/proxies/opennjet/certificate-maps.js";
import { systemClock } from "../../controller/proxies/opennjet/clock.js";
import { mapSwitch } from "../../controller/proxies/opennjet/map-switch.js";
import { CARRIERS } from "../../controller/proxies/opennjet/parts.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { put, startRun } from "../cli/cli-support.js";
import { ingress, tlsSecret } from "../cli/objects.js";
import { HOST, shopFolder } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { RequestNginx } from "../nginx/request-nginx.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { certificateStep } from "../support/plans.js";
import { servedCertificate } from "../support/raw-client.js";
import { longHost } from "./long-host.js";
import { noOpenNjet, openNjetWith } from "./real-installation.js";
import { OPENNJET, runFolder } from "./real-shop.js";

cleanUpAfterEach();

const A = makeCertificate("A", HOST);
const B = makeCertificate("B", HOST);

describe.skipIf(noOpenNjet)("A change of certificates in the carrier locations of a real OpenNJet", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it("acts on the next handshakes: got, renewed, renewed back, lost; and no process of OpenNJet is another one", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    put(folder, "tls.yaml", tlsSecret("pair", A));
    const running = await startRun(folder, ...OPENNJET, "--carrier", "locations", "--run-dir", run.path);
    const shown = async () => String((await servedCertificate(running.https, HOST)).subject.CN);
    const processes = async () => {
      const { master, workers } = await run.client().state();
      return [master, ...workers.map(({ pid }) => pid)];
    };
    const before = await processes();
    expect(before).toHaveLength(3);
    expect(await shown()).toBe("default certificate");
    put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
    await until("A is shown", async () => (await shown()) === "A");
    for (const [name, pair] of [
      ["B", B],
      ["A", A],
    ] as const) {
      put(folder, "tls.yaml", tlsSecret("pair", pair));
      await until(`${name} is shown`, async () => (await shown()) === name);
    }
    put(folder, "shop.yaml", ingress("shop", HOST, "one"));
    await until("none is shown", async () => (await shown()) === "default certificate");
    expect(await processes()).toEqual(before);
  });
});

describe.skipIf(noOpenNjet)("The map of certificates of a real OpenNJet", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it.each(CARRIERS)(
    "has the exact host, then the wildcard for one label, then the default, also for the longest names: carrier %s",
    async (carrier) => {
      const folder = await shopFolder();
      const run = runFolder();
      const [long, longWildcard] = [longHost("a"), `*.${longHost("b").slice(2)}`];
      for (const [name, host] of [
        ["exact", HOST],
        ["wildcard", "*.example.com"],
        ["long", long],
        ["long-wildcard", longWildcard],
        ["word", "default"],
      ]) {
        put(folder, `${name}-tls.yaml`, tlsSecret(name, makeCertificate(name, host)));
        put(folder, `${name}.yaml`, ingress(name, `"${host}"`, "one", name));
      }
      put(folder, "shop.yaml", "");
      // One worker: each sees by itself that it has the map.
      const options = [...OPENNJET, "--workers", "1", "--carrier", carrier, "--run-dir", run.path];
      const running = await startRun(folder, ...options);
      const shown = async (name?: string) => String((await servedCertificate(running.https, name)).subject.CN);
      const files = () => readdirSync(run.plane("certificates")).map((name) => run.plane("certificates", name));
      const api = run.api();
      await until("the map names all", async () => {
        // The control server of an OpenNJet that starts answers a little later than its workers.
        const maps = await api.maps.list().catch(() => []);
        return maps.find(({ keyTo }) => keyTo === "$njet_certificate")?.values.length === 6;
      });
      // With the carrier core workers could answer by themselves: only who looks into a file can tell what is in it now.
      for (const file of files()) {
        const { subject } = new X509Certificate(readFileSync(file));
        const { chain, key } = makeCertificate(`${subject.slice(3)} of the map`, HOST);
        writeFileSync(file, chain + key);
      }
      await until("the worker has the map", async () => {
        await ask(running.http, { host: HOST });
        return (await shown(HOST)) === "exact of the map";
      });
      const wildcard = "wildcard of the map";
      expect(await shown("SHOP.example.com")).toBe("exact of the map");
      expect(await shown("other.example.com")).toBe(wildcard);
      expect(await shown("OTHER.example.com")).toBe(wildcard);
      expect(await shown("a.b.example.com")).toBe("default certificate");
      expect(await shown("example.com")).toBe("default certificate");
      expect(await shown()).toBe("default certificate");
      // The word for all other names in a map.
      expect(await shown("default")).toBe("word of the map");
      expect(await shown(long)).toBe("long of the map");
      expect(await shown(longWildcard.replace("*", "x"))).toBe("long-wildcard of the map");
    },
  );

  it("is empty beyond the hosts that it may have, and workers answer all of them by themselves, until they are less again: carrier core", async () => {
    const names = ["a", "b", "c"].map((name) => `${name}.example.com`);
    const steps = names.map((name) => certificateStep(name, makeCertificate(`piece of ${name}`, name)));
    const njet = await RequestNginx.start(steps, { flavour: openNjetWith("core") });
    const api = closing(new OpenNjetApi({ origin: "http://opennjet", socketPath: join(njet.folder, "api.sock") }));
    const folder = join(njet.folder, "certificates");
    const files = new CertificateFiles(folder);
    const certificates = new CertificateMaps({
      maps: api.maps,
      files,
      workers: mapSwitch(njet.client, silentLogger),
      others: { chain: join(njet.folder, "default.pem"), key: join(njet.folder, "default.key") },
      logger: silentLogger,
      clock: systemClock,
      mostHosts: 2,
    });
    cleanup(() => certificates.stop());
    const shown = async (name: string) => String((await servedCertificate(njet.https, name)).subject.CN);
    const all = () => Promise.all([...names, "nobody.example.com"].map(shown));
    const inMap = async () => {
      const map = (await api.maps.list()).find(({ keyTo }) => keyTo === "$njet_certificate");
      return map?.values.map(({ valueFrom }) => valueFrom).filter((name) => name !== "default");
    };
    const reliedOn = async () => (await njet.client.pieces()).pieces["10:certificates"] !== undefined;

    await certificates.after(steps, false);
    await certificates.start();
    await until("the map is in step", () => certificates.settled);
    expect(await inMap()).toEqual([]);
    expect(await reliedOn()).toBe(false);
    // A worker looks for a version of the map after each request.
    await ask(njet.http, { host: names[0] });
    expect(await all()).toEqual([...names.map((name) => `piece of ${name}`), "default"]);

    const less: PlanStep = { step: "remove-certificate", host: names[2] };
    await certificates.before([less], false);
    await njet.apply(less);
    await certificates.after([less], false);
    await until("the map is in step again", () => certificates.settled);
    expect((await inMap())?.sort()).toEqual(names.slice(0, 2));
    expect(await reliedOn()).toBe(true);
    // Who looks into the files can tell.
    for (const name of names.slice(0, 2)) await files.write(name, makeCertificate(`file of ${name}`, name));
    await until("the worker has the map", async () => {
      await ask(njet.http, { host: names[0] });
      return (await shown(names[0])) === `file of ${names[0]}`;
    });
    expect(await all()).toEqual([`file of ${names[0]}`, `file of ${names[1]}`, "default", "default"]);
  });
});
