import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { NginxConfigurationOptions } from "../../controller/proxies/nginx/configuration-options.js";
import { nativeCore, PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import { OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { DEFAULT_OPENNJET_CONFIGURATION } from "../../controller/proxies/opennjet/configuration.js";
import { deployedText } from "../nginx/deployed-file.js";
import { temporaryFolder, until } from "../nginx/driven-nginx.js";
import { type Flavour, RequestNginx } from "../nginx/request-nginx.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { closedPort } from "../support/peers.js";
import { actionHost } from "../support/plans.js";
import { answer } from "../support/rules.js";
import { noOpenNjet, openNjet } from "./real-installation.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const AS_ROOT = process.getuid?.() === 0 ? { user: { name: "root", group: "root" } } : {};

/** Writes the control server's file and gives the data plane's text. */
function deployed(name: string, options: NginxConfigurationOptions, folder: string, ports: [number, number]): string {
  const places = [
    ["/usr/local/njet", openNjet().prefix],
    ["127.0.0.1:8081", `127.0.0.1:${ports[0]}`],
    ["0.0.0.0:12001", `127.0.0.1:${ports[1]}`],
    ["[::]:12001", `[::1]:${ports[1]}`],
  ] as const;
  writeFileSync(join(folder, "njet_ctrl.conf"), deployedText(`opennjet/${name}njet_ctrl.conf`, options, places));
  for (const path of ["data", "logs"]) mkdirSync(join(folder, path), { recursive: true });
  return deployedText(`opennjet/${name}njet.conf`, options, places);
}

describe.skipIf(noOpenNjet)("the files of deploy/opennjet, once the places are those of a machine", () => {
  it("are what an OpenNJet starts and serves with, and tells its statistics with", async () => {
    const ports: [number, number] = [await closedPort(), await closedPort()];
    const flavour: Flavour = {
      installation: async () => ({ ...openNjet(), modules: [] }),
      // Its workers write logs of their own, in a folder that is root's here.
      configuration: (options, folder) => deployed("", { ...options, ...AS_ROOT }, folder, ports),
    };
    const njet = await RequestNginx.start([actionHost(HOST, answer("deployed"))], { flavour });
    expect((await ask(njet.http, { host: HOST })).body).toBe("deployed");
    expect((await ask(njet.https, { host: HOST, tls: true })).body).toBe("deployed");
    const { status, body } = await ask(ports[1], { path: "/stats" });
    expect(status).toBe(200);
    expect(body).toContain("# TYPE");
    const api = new OpenNjetApi({ origin: `http://127.0.0.1:${ports[0]}` });
    cleanup(() => api.close());
    // Just after a start it may know no worker yet.
    let maps: string[] = [];
    await until("the control API answers", async () => {
      maps = (await api.maps.list().catch(() => [])).map(({ keyTo }) => keyTo);
      return maps.length > 0;
    });
    expect(maps.join()).toContain("njet_certificate");
  });

  it.each(["", "bundled/"])("are found to be right by OpenNJet itself: %snjet.conf", async (name) => {
    const folder = temporaryFolder();
    const pair = makeCertificate("default", "default.example.com");
    writeFileSync(join(folder, "default.pem"), pair.chain);
    writeFileSync(join(folder, "default.key"), pair.key, { mode: 0o600 });
    const options: NginxConfigurationOptions = {
      ...DEFAULT_OPENNJET_CONFIGURATION,
      library: await nativeCore(),
      packageRoot: PACKAGE_ROOT ?? "",
      runDirectory: folder,
      http: { port: await closedPort() },
      https: { port: await closedPort() },
      errorLog: "stderr",
      modules: [],
    };
    writeFileSync(join(folder, "token"), "0".repeat(64), { mode: 0o600 });
    writeFileSync(join(folder, "njet.conf"), deployed(name, options, folder, [await closedPort(), await closedPort()]));
    const { binary, env } = openNjet();
    const { stderr } = await promisify(execFile)(binary, ["-t", "-p", folder, "-c", join(folder, "njet.conf")], {
      env: { ...process.env, ...env },
    });
    expect(stderr).toContain("test is successful");
  });
});
