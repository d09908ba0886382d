import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { WORKER_COUNT_KEY } from "../../controller/proxies/opennjet/api/index.js";
import { CARRIERS } from "../../controller/proxies/opennjet/parts.js";
import { ownTemporaryFolder, put, startRun } from "../cli/cli-support.js";
import { ingress, tlsSecret } from "../cli/objects.js";
import { HOST, isClosed, shopFolder, takenOver } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { servedCertificate } from "../support/raw-client.js";
import { noOpenNjet } from "./real-installation.js";
import { OPENNJET, runFolder } from "./real-shop.js";

cleanUpAfterEach();

async function common(port: number, name: string): Promise<string> {
  return String((await servedCertificate(port, name)).subject.CN);
}

/** Process numbers of the master in a folder and of its children: workers, privileged agent, broker, control server. */
function processesIn(folder: string): number[] {
  const master = Number(readFileSync(join(folder, "nginx.pid"), "utf8"));
  const parentOf = (pid: string) => {
    try {
      return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    } catch {
      return 0;
    }
  };
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(name) === master);
  return [master, ...children.map(Number)];
}

describe.skipIf(noOpenNjet)("run --proxy opennjet", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it("serves a folder, and moves a host to another service under load without one failed request", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, ...OPENNJET);
    const load = new Load(running.http, HOST);
    for (const to of ["two", "one", "two", "one", "two"]) {
      await load.more(50);
      put(folder, "shop.yaml", ingress("shop", HOST, to));
      await eventually(() => load.latest === to);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  it("rotates a certificate A, B, A, each for the next handshakes, through a map that stays as it is", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const pairs = { a: makeCertificate("A", HOST), b: makeCertificate("B", HOST) };
    put(folder, "tls.yaml", tlsSecret("pair", pairs.a));
    put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
    const running = await startRun(folder, ...OPENNJET, "--run-dir", run.path);
    const versions = new Set<string>();
    const { workers } = await run.client().state();
    const api = run.api();
    for (const name of ["A", "B", "A"] as const) {
      put(folder, "tls.yaml", tlsSecret("pair", name === "A" ? pairs.a : pairs.b));
      await until(`${name} is shown`, async () => (await common(running.https, HOST)) === name);
      await until("the map is in step", async () => {
        // Until then the control server of an OpenNJet that starts may answer with errors.
        const pieces = await run.client().pieces();
        if (pieces.pieces["10:certificates"] === undefined) return false;
        const maps = await api.maps.list();
        const version = maps.find(({ keyTo }) => keyTo === "$njet_certificate_map")?.values[0]?.valueTo;
        if (!version) return false;
        versions.add(version);
        return true;
      });
      expect(await common(running.https, "nobody.example.com")).toBe("default certificate");
    }
    expect(versions.size).toBe(1);
    expect((await run.client().state()).workers.map(({ pid }) => pid)).toEqual(workers.map(({ pid }) => pid));
    const files = readdirSync(run.plane("certificates"));
    expect(files).toHaveLength(1);
  });

  it.each(CARRIERS)(
    "is killed and started anew, while OpenNJet serves on with the carrier %s: it takes it over, and no request fails",
    async (carrier) => {
      const folder = await shopFolder();
      const run = runFolder();
      const options = [...OPENNJET, "--carrier", carrier, "--run-dir", run.path];
      await takenOver(folder, options, () => run.client().state());
    },
  );

  it.each(CARRIERS)(
    "is started again with its whole state, certificates too, when its master is killed, with the carrier %s",
    async (carrier) => {
      const folder = await shopFolder();
      const run = runFolder();
      put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("A", HOST)));
      put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
      const running = await startRun(folder, ...OPENNJET, "--carrier", carrier, "--run-dir", run.path);
      const before = await run.client().state();
      process.kill(before.master, "SIGKILL");
      await until("another master serves", async () => {
        const state = await run
          .client()
          .state()
          .catch(() => undefined);
        return state !== undefined && state.master !== before.master && state.workers.length === 2;
      });
      // The journal has all of it: with the carrier core nothing waits for a map or a location.
      const serves = async () => (await ask(running.http, { host: HOST })).body === "one";
      const shows = async () => (await common(running.https, HOST)) === "A";
      if (carrier === "core") expect([await serves(), await shows()]).toEqual([true, true]);
      await until("it serves again", async () => (await serves()) && (await shows()));
      if (carrier === "core") {
        await until("the map is in step again", async () => {
          return (await run.client().pieces()).pieces["10:certificates"] !== undefined;
        });
      }
      expect(await common(running.https, HOST)).toBe("A");
      put(folder, "shop.yaml", ingress("shop", HOST, "two", "pair"));
      await until("a change acts", async () => (await ask(running.http, { host: HOST })).body === "two");
      for (const { pid } of before.workers) await until("the old workers go", () => !existsSync(`/proc/${pid}`));
    },
  );

  it("finds a map that was changed behind its back, and repairs it; no handshake is answered otherwise", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("A", HOST)));
    put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
    const running = await startRun(folder, ...OPENNJET, "--run-dir", run.path);
    const inStep = async () => (await run.client().pieces()).pieces["10:certificates"] !== undefined;
    await until("the map is in step", inStep);
    const api = run.api();
    const before = await api.maps.list();
    const certificate = before.find(({ keyTo }) => keyTo === "$njet_certificate");
    expect(certificate?.values).toHaveLength(2);
    await api.maps.replace([
      {
        keyFrom: "$ssl_server_name",
        keyTo: "$njet_certificate_map",
        values: [{ valueFrom: "default", valueTo: "other" }],
      },
    ]);
    await until("it is repaired", async () => JSON.stringify(await api.maps.list()) === JSON.stringify(before));
    expect(await common(running.https, HOST)).toBe("A");
  });

  it("answers handshakes from the file that the map names, in each worker that has seen the map", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("A", HOST)));
    put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
    const running = await startRun(folder, ...OPENNJET, "--run-dir", run.path);
    await until("the map is in step", async () => {
      return (await run.client().pieces()).pieces["10:certificates"] !== undefined;
    });
    const [file = ""] = readdirSync(run.plane("certificates"));
    const path = run.plane("certificates", file);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    // Only who looks into the file can tell.
    const other = makeCertificate("from the file", HOST);
    writeFileSync(path, other.chain + other.key);
    await until("workers have seen the map", async () => {
      await Promise.all(Array.from({ length: 8 }, () => ask(running.http, { host: HOST })));
      return (await common(running.https, HOST)) === "from the file";
    });
  });

  it("starts the number of workers that was asked for, and tells the key-value store", async () => {
    const run = runFolder();
    await startRun(await shopFolder(), ...OPENNJET, "--run-dir", run.path);
    expect((await run.client().state()).workers).toHaveLength(2);
    await until("the store has it", async () => (await run.api().keyValue.get(WORKER_COUNT_KEY)) === "2");
  });

  it("shows OpenNJet's own metrics on a port of their own, and no way to reset them", async () => {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const running = await startRun(await shopFolder(), ...OPENNJET, "--opennjet-stats-port", String(port));
    await ask(running.http, { host: HOST });
    const page = await ask(port, { path: "/stats" });
    expect(page.status).toBe(200);
    expect(page.body).toContain("njet_vts_info");
    expect((await ask(port, { path: "/stats/control?cmd=reset&group=*" })).status).toBe(404);
  });

  it("ends on SIGTERM with all of its processes, and leaves no temporary folder behind", async () => {
    const shop = await shopFolder();
    const temporary = ownTemporaryFolder();
    const running = await startRun(shop, ...OPENNJET);
    const [made] = readdirSync(temporary);
    const inside = processesIn(join(temporary, made, "opennjet"));
    expect(inside.length).toBeGreaterThanOrEqual(6);
    running.process.kill("SIGTERM");
    expect((await running.ended).status).toBe(0);
    expect(await isClosed(running.http)).toBe(true);
    for (const pid of inside) await until("all processes end", () => !existsSync(`/proc/${pid}`));
    expect(readdirSync(temporary)).toEqual([]);
  });
});
