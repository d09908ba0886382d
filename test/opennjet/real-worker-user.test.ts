import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { findUser, userDatabase } from "../../controller/proxies/nginx/worker-user.js";
import { WORKER_COUNT_KEY } from "../../controller/proxies/opennjet/api/index.js";
import { put, startRun } from "../cli/cli-support.js";
import { ingress, tlsSecret } from "../cli/objects.js";
import { HOST, shopFolder } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { four, whoIs } from "../support/process-user.js";
import { servedCertificate } from "../support/raw-client.js";
import { noOpenNjet } from "./real-installation.js";
import { OPENNJET, runFolder } from "./real-shop.js";

cleanUpAfterEach();

const isRoot = process.getuid?.() === 0;
const CARRIERS = ["core", "locations"] as const;

/** A shop with a certificate in a run folder, whose workers are the customary user. */
async function served(carrier: (typeof CARRIERS)[number], ...options: string[]) {
  const folder = await shopFolder();
  const run = runFolder();
  put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("A", HOST)));
  put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
  const all = [...OPENNJET, "--carrier", carrier, "--run-dir", run.path];
  const running = await startRun(folder, ...all, ...options);
  const shown = async (name = HOST) => String((await servedCertificate(running.https, name)).subject.CN);
  await until("the certificate is shown", async () => (await shown()) === "A");
  const workers = async () => (await run.client().state()).workers.map(({ pid }) => pid);
  return { folder, run, running, all, shown, workers };
}

/** What comes of a script of Node that a user runs. */
function as(name: string, script: string): string {
  const { uid, gid } = findUser(name, userDatabase());
  return spawnSync(process.execPath, ["-e", script], { uid, gid, cwd: "/", encoding: "utf8" }).stdout.trim();
}

/** The one file of a certificate. With the carrier core it may come after the certificate is shown. */
async function certificateFile(run: { plane(...names: string[]): string }): Promise<string> {
  const files = () => readdirSync(run.plane("certificates")).filter((name) => name.endsWith(".pem"));
  await until("there is a file", () => files().length > 0);
  return run.plane("certificates", files()[0]);
}

const reading = (path: string) =>
  `try { require("fs").readFileSync(${JSON.stringify(path)}); console.log("read"); } catch (e) { console.log(e.code); }`;
const connecting = (path: string) =>
  `require("net").connect(${JSON.stringify(path)}).on("connect", () => { console.log("in"); process.exit(); }).on("error", (e) => console.log(e.code))`;

describe.skipIf(noOpenNjet || !isRoot)("workers of an OpenNJet whose controller is root", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it.each(CARRIERS)("are a user without rights with the carrier %s, who serves everything", async (carrier) => {
    const { folder, run, running, shown, workers } = await served(carrier);
    const customary = four(findUser("www-data", userDatabase()));
    for (const pid of await workers()) expect(whoIs(pid)).toBe(customary);
    expect(running.log().filter(({ message }) => String(message).startsWith("workers of"))).toEqual([]);
    expect((await ask(running.http, { host: HOST })).body).toBe("one");
    expect(await shown("nobody.example.com")).toBe("default certificate");
    put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("B", HOST)));
    await until("B is shown", async () => (await shown()) === "B");
    put(folder, "shop.yaml", ingress("shop", HOST, "two", "pair"));
    await until("a change acts", async () => (await ask(running.http, { host: HOST })).body === "two");
    const { mode, uid } = statSync(await certificateFile(run));
    expect([mode & 0o777, uid]).toEqual([0o600, findUser("www-data", userDatabase()).uid]);
  });

  it.each(CARRIERS)(
    "are such a user with the carrier %s where one is added, or takes the place of another",
    async (carrier) => {
      const { run, running, shown, workers } = await served(carrier);
      const api = run.api();
      await until("the store has the number", async () => (await api.keyValue.get(WORKER_COUNT_KEY)) === "2");
      await api.keyValue.set(WORKER_COUNT_KEY, "4");
      await until("there are more", async () => (await workers()).length === 4);
      const [killed = 0] = await workers();
      process.kill(killed, "SIGKILL");
      await until("another one has come", async () => {
        const now = await workers().catch((): number[] => []);
        return now.length === 4 && !now.some((pid) => pid === killed);
      });
      for (const pid of await workers()) expect(whoIs(pid)).toBe(four(findUser("www-data", userDatabase())));
      await until("all serve", async () => {
        const answers = await Promise.all(Array.from({ length: 40 }, () => ask(running.http, { host: HOST })));
        return answers.every(({ body }) => body === "one");
      });
      expect(await shown()).toBe("A");
    },
  );

  it("can't read what the controller has, nor get to a control socket; nobody else gets to the broker or the keys", async () => {
    const { run } = await served("core");
    for (const name of ["token", "state.journal", "njet.conf", "default.key"]) {
      expect(existsSync(run.inside(name))).toBe(true);
      expect(as("www-data", reading(run.inside(name)))).toBe("EACCES");
    }
    for (const name of ["control.sock", "api.sock"]) {
      expect(as("www-data", connecting(run.inside(name)))).toBe("EACCES");
    }
    const key = await certificateFile(run);
    const broker = run.plane("data", "mosquitto.sock");
    expect([as("nobody", reading(key)), as("www-data", reading(key))]).toEqual(["EACCES", "read"]);
    expect([as("nobody", connecting(broker)), as("www-data", connecting(broker))]).toEqual(["EACCES", "in"]);
  });

  it("own no folder in which root opens files", async () => {
    const { run } = await served("locations");
    for (const name of ["", "data", "logs", "certificates", "default"]) {
      const { uid, mode } = statSync(run.plane(name));
      expect([name, uid, mode & 0o777]).toEqual([name, 0, 0o710]);
    }
  });

  it("run as root without a word where that is asked for", async () => {
    const { running, workers } = await served("core", "--nginx-user", "root");
    for (const pid of await workers()) expect(whoIs(pid)).toBe(four({ uid: 0, gid: 0 }));
    expect(running.log().filter(({ message }) => String(message).startsWith("workers of"))).toEqual([]);
  });

  it("are replaced where the next controller has other options; the control API, certificates and changes go on", async () => {
    const { folder, run, running, all, shown, workers } = await served("core");
    const before = await workers();
    running.process.kill("SIGKILL");
    await running.ended;
    const ports = ["--http-port", String(running.http), "--https-port", String(running.https)];
    await startRun(folder, ...all, ...ports, "--drain-seconds", "7");
    await until("the workers are others", async () => {
      const now = await workers().catch(() => before);
      return now.length === 2 && !now.some((pid) => before.includes(pid));
    });
    const customary = four(findUser("www-data", userDatabase()));
    for (const pid of await workers()) expect(whoIs(pid)).toBe(customary);
    expect((await ask(running.http, { host: HOST })).body).toBe("one");
    expect(await shown()).toBe("A");
    const api = run.api();
    const answers = () =>
      api.maps.list().then(
        () => true,
        () => false,
      );
    await until("the control API answers", answers);
    put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("B", HOST)));
    await until("B is shown", async () => (await shown()) === "B");
  });

  it("become another user when the next controller says so; the control API, certificates and changes go on", async () => {
    const { folder, run, running, all, shown, workers } = await served("core");
    const before = await workers();
    running.process.kill("SIGKILL");
    await running.ended;
    const ports = ["--http-port", String(running.http), "--https-port", String(running.https)];
    await startRun(folder, ...all, ...ports, "--nginx-user", "nobody");
    await until("the workers are others", async () => {
      const now = await workers().catch(() => before);
      return now.length === 2 && !now.some((pid) => before.includes(pid));
    });
    for (const pid of await workers()) expect(whoIs(pid)).toBe(four(findUser("nobody", userDatabase())));
    expect((await ask(running.http, { host: HOST })).body).toBe("one");
    expect(await shown()).toBe("A");
    const api = run.api();
    await until("the control API answers", () =>
      api.maps.list().then(
        () => true,
        () => false,
      ),
    );
    put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("B", HOST)));
    await until("B is shown", async () => (await shown()) === "B");
  });
});
