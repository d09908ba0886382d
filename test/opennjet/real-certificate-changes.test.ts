import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { put, startRun } from "../cli/cli-support.js";
import { ingress, tlsSecret } from "../cli/objects.js";
import { HOST, shopFolder } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { servedCertificate } from "../support/raw-client.js";
import { noOpenNjet } from "./real-installation.js";
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
