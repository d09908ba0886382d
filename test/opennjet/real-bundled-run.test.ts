import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { put, startRun } from "../cli/cli-support.js";
import { ingress, tlsSecret } from "../cli/objects.js";
import { again, HOST, killedAndReplaced, shopFolder } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { servedCertificate } from "../support/raw-client.js";
import { noBundled } from "./real-installation.js";
import { OPENNJET, runFolder } from "./real-shop.js";

cleanUpAfterEach();

const LOCATIONS = [...OPENNJET, "--carrier", "locations"];
const BUNDLED = [...LOCATIONS, "--balancer", "bundled"];
const missing = await noBundled();

async function masterOf(run: ReturnType<typeof runFolder>): Promise<number> {
  return (await run.client().state()).master;
}

const serves = async (port: number, wanted: string) =>
  (await ask(port, { host: HOST }).catch(() => undefined))?.body === wanted;

describe.skipIf(missing)("run --proxy opennjet --carrier locations --balancer bundled", () => {
  it("serves a folder, and moves a host to another service under load without one failed request", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, ...BUNDLED);
    expect((await ask(running.http, { host: HOST })).body).toBe("one");
    expect((await ask(running.http, { host: "nobody.example.com" })).status).toBe(404);
    const load = new Load(running.http, HOST);
    for (const to of ["two", "one", "two"]) {
      await load.more(50);
      put(folder, "shop.yaml", ingress("shop", HOST, to));
      await eventually(() => load.latest === to, 20_000);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  it("moves a host to another name and back under load, and every host that is told as served is", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, ...BUNDLED);
    const load = new Load(running.http, HOST);
    for (const name of ["second", "third"]) {
      put(folder, `${name}.yaml`, ingress(name, `${name}.example.com`, "two"));
      await eventually(
        () => running.log().filter(({ message }) => message === "applied").length >= (name === "second" ? 2 : 3),
        20_000,
      );
      const all = await Promise.all(
        Array.from({ length: 20 }, () => ask(running.http, { host: `${name}.example.com` })),
      );
      expect(all.map(({ status, body }) => `${status} ${body}`)).toEqual(Array(20).fill("200 two"));
    }
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  it("shows certificates by the map, since its own balancer never serves one", async () => {
    const folder = await shopFolder();
    const pairs = { a: makeCertificate("A", HOST), b: makeCertificate("B", HOST) };
    put(folder, "tls.yaml", tlsSecret("pair", pairs.a));
    put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
    const running = await startRun(folder, ...BUNDLED);
    const shown = async (name: string) => String((await servedCertificate(running.https, name)).subject.CN);
    await until("A is shown", async () => (await shown(HOST)) === "A");
    put(folder, "tls.yaml", tlsSecret("pair", pairs.b));
    await until("B is shown", async () => (await shown(HOST)) === "B");
    expect(await shown("nobody.example.com")).toBe("default certificate");
  });

  it("is killed and started anew, while OpenNJet serves on: it takes it over, and no request fails", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const options = [...BUNDLED, "--run-dir", run.path];
    const first = await startRun(folder, ...options);
    expect(statSync(dirname(run.inside("control.sock"))).mode & 0o777).toBe(0o700);
    const before = await masterOf(run);
    const second = await killedAndReplaced(first, folder, options);
    expect(await masterOf(run)).toBe(before);
    second.process.kill("SIGTERM");
    expect((await second.ended).status).toBe(0);
    expect(existsSync(`/proc/${before}`)).toBe(false);
  });

  it("starts OpenNJet again with all of it when its master is killed", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const running = await startRun(folder, ...BUNDLED, "--run-dir", run.path);
    const before = await masterOf(run);
    process.kill(before, "SIGKILL");
    await until("another master serves", async () => {
      const master = await masterOf(run).catch(() => before);
      return master !== before;
    });
    await until("it serves again", () => serves(running.http, "one"));
    put(folder, "shop.yaml", ingress("shop", HOST, "two"));
    await until("a change acts", () => serves(running.http, "two"));
  });

  it("takes over an OpenNJet that our balancer served, and gives it back", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const at = ["--run-dir", run.path];
    let running = await startRun(folder, ...LOCATIONS, ...at);
    const master = await masterOf(run);
    for (const [options, to] of [
      [BUNDLED, "two"],
      [LOCATIONS, "one"],
    ] as const) {
      running.process.kill("SIGKILL");
      await running.ended;
      put(folder, "shop.yaml", ingress("shop", HOST, to));
      running = await again(running, folder, ...options, ...at);
      await until("it serves", () => serves(running.http, to));
      expect(await masterOf(run)).toBe(master);
    }
  });
});
