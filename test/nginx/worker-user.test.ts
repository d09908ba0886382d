import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore, PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import { findUser, userDatabase } from "../../controller/proxies/nginx/worker-user.js";
import { makeFolder, put, runCli, type Serving, startRun } from "../cli/cli-support.js";
import { ingress, service, tlsSecret } from "../cli/objects.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { four, whoIs } from "../support/process-user.js";
import { RawClient, servedCertificate } from "../support/raw-client.js";
import { until } from "./driven-nginx.js";
import { installation, noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";
import { runFolder } from "./run-folder.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const MIB = 2 ** 20;
const NGINX = ["--proxy", "nginx", "--nginx-workers", "1"];
const isRoot = process.getuid?.() === 0;
if (!isRoot)
  console.warn("tests of workers that are another user than their master are skipped: only root can have that");

const DATABASE = {
  passwd:
    "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/:/bin/false\nlost:x:40:99::/:/bin/false\nodd:x:what:34::/:/bin/false\n",
  group: "root:x:0:\nstaff:x:34:\nweb:x:35:\n",
};

describe("a user of workers", () => {
  it.each([
    ["web", { name: "web", uid: 33, group: "staff", gid: 34 }],
    ["web:web", { name: "web", uid: 33, group: "web", gid: 35 }],
    ["root", { name: "root", uid: 0, group: "root", gid: 0 }],
  ])("%s is found with its group", (text, user) => {
    expect(findUser(text, DATABASE)).toEqual(user);
  });

  it.each([
    ["nobody", "there is no user nobody on this machine"],
    ["web:none", "there is no group none"],
    ["lost", "there is no group with the number 99 of lost"],
    ["odd", "the user database makes no sense of odd"],
    ["", '"" is not the name of a user, nor USER:GROUP'],
    ["web:", '"web:" is not the name of a user, nor USER:GROUP'],
    ["web:web:web", '"web:web:web" is not the name of a user, nor USER:GROUP'],
    ["web; daemon on", '"web; daemon on" is not the name of a user, nor USER:GROUP'],
    ["33", '"33" is not the name of a user, nor USER:GROUP'],
  ])("%j is refused with a reason", (text, reason) => {
    expect(() => findUser(text, DATABASE)).toThrow(reason);
  });
});

/** A run folder that anybody may go through. */
function openRunFolder() {
  const run = runFolder();
  chmodSync(run.path, 0o711);
  return run;
}

/** `run` with NGINX in a run folder; both are ended after the test, in order. */
async function start(run: { path: string }, folder: string, ...options: string[]): Promise<Serving> {
  const running = await startRun(folder, ...NGINX, "--run-dir", run.path, ...options);
  cleanup(async () => {
    running.process.kill("SIGTERM");
    await running.ended;
  });
  return running;
}

async function shopFolder(): Promise<string> {
  const peer = closing(
    await httpPeer((request, response) => {
      let received = 0;
      request.on("data", (chunk: Buffer) => {
        received += chunk.length;
      });
      request.on("end", () => response.end(request.url === "/large" ? Buffer.alloc(32 * MIB, "x") : String(received)));
    }),
  );
  const folder = makeFolder();
  put(folder, "web.yaml", service("web", "127.0.0.1", peer.port));
  put(folder, "tls.yaml", tlsSecret("pair", makeCertificate("shop", HOST)));
  put(folder, "shop.yaml", ingress("shop", HOST, "web", "pair"));
  return folder;
}

/** Processes of NGINX in a run folder: the master, and the one worker. */
async function processes(run: ReturnType<typeof runFolder>): Promise<{ master: number; worker: number }> {
  const { master, workers } = await run.client().state();
  return { master, worker: workers[0].pid };
}

const warned = (running: Serving) => running.log().filter(({ message }) => message === "workers of nginx run as root");

describe.skipIf(noNginx || !isRoot)("workers of an NGINX whose controller is root", () => {
  beforeAll(async () => {
    await installation();
    await nativeCore();
  }, 600_000);

  it("are a user without rights, who serves everything: large bodies both ways, TLS, the access log", async () => {
    const run = openRunFolder();
    const running = await start(run, await shopFolder());
    const { master, worker } = await processes(run);
    expect(whoIs(master)).toBe(four({ uid: 0, gid: 0 }));
    expect(whoIs(worker)).toBe(four(findUser("www-data", userDatabase())));
    expect(warned(running)).toEqual([]);
    // Neither fits into memory that NGINX has for it.
    expect((await ask(running.http, { host: HOST, method: "POST", body: Buffer.alloc(8 * MIB) })).body).toBe(
      String(8 * MIB),
    );
    const slow = await RawClient.plain(running.http);
    slow.socket.pause();
    slow.write(`GET /large HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    await until("the answer waits in a file", () =>
      usesFile(worker, join(run.path, "nginx-temp", "www-data", "proxy")),
    );
    slow.socket.resume();
    expect((await slow.end(60_000)).length).toBeGreaterThan(32 * MIB);
    expect((await servedCertificate(running.https, HOST)).subject.CN).toBe("shop");
    await running.until("the requests are logged", () => running.stdout.split("\n").length > 2);
  });

  it("can't read what the controller and the master have: no key, no token, no journal, no way to the control socket", async () => {
    const run = openRunFolder();
    await start(run, await shopFolder());
    const folder = join(run.path, "nginx");
    const { uid, gid } = findUser("www-data", userDatabase());
    const asWorker = (script: string) =>
      spawnSync(process.execPath, ["-e", script], { uid, gid, cwd: "/", encoding: "utf8" }).stdout.trim();
    const files = readdirSync(folder).filter((name) => statSync(join(folder, name)).isFile());
    expect(files.sort()).toEqual(["default.crt", "default.key", "nginx.conf", "nginx.pid", "state.journal", "token"]);
    for (const name of files) {
      const path = JSON.stringify(join(folder, name));
      expect(
        asWorker(
          `try { require("fs").readFileSync(${path}); console.log("read"); } catch (e) { console.log(e.code); }`,
        ),
      ).toBe("EACCES");
    }
    const socket = JSON.stringify(join(folder, "control.sock"));
    expect(
      asWorker(
        `require("net").connect(${socket}).on("connect", () => { console.log("in"); process.exit(); }).on("error", (e) => console.log(e.code))`,
      ),
    ).toBe("EACCES");
    // Nor has the worker kept an open file of these; what it has is the pipe of the access log.
    const { worker } = await processes(run);
    expect(openFiles(worker).filter((path) => path.startsWith(`${folder}/`))).toEqual([join(folder, "access.pipe")]);
  });

  it("are replaced by such a user too, with the whole state", async () => {
    const run = openRunFolder();
    const running = await start(run, await shopFolder());
    const { worker } = await processes(run);
    process.kill(worker, "SIGKILL");
    await until("another one is there", async () => (await processes(run).catch(() => ({ worker }))).worker !== worker);
    expect((await ask(running.http, { host: HOST })).status).toBe(200);
    expect(whoIs((await processes(run)).worker)).toBe(four(findUser("www-data", userDatabase())));
  });

  it("need no file of the program: a worker that starts serves where they can't be read, or are gone", async () => {
    const hidden = makeFolder();
    const library = join(hidden, "core.so");
    cpSync(join(PACKAGE_ROOT ?? "", "balancer"), join(hidden, "balancer"), { recursive: true });
    copyFileSync(await nativeCore(), library);
    const peer = closing(await httpPeer((_request, response) => response.end("served")));
    const steps = [upstreamStep("web", [peer.port]), proxyHost(HOST, "web")];
    const nginx = await RequestNginx.start(steps, { packageRoot: hidden, library });
    const before = (await nginx.client.state()).workers[0].pid;
    rmSync(hidden, { recursive: true });
    process.kill(before, "SIGKILL");
    await until("another one is there", async () => {
      return ((await nginx.client.state().catch(() => undefined))?.workers[0].pid ?? before) !== before;
    });
    expect((await ask(nginx.http, { host: HOST })).body).toBe("served");
    expect((await ask(nginx.http, { host: "nobody.example.com" })).status).toBe(404);
    await nginx.apply(proxyHost("other.example.com", "web"));
    expect((await ask(nginx.http, { host: "other.example.com" })).body).toBe("served");
    expect((await servedCertificate(nginx.https)).subject.CN).toBe("default");
  });

  it("are who --nginx-user names, and become another one when the next controller says so, without a lost request", async () => {
    const run = openRunFolder();
    const folder = await shopFolder();
    const first = await start(run, folder, "--no-access-log", "--nginx-user", "nobody");
    const before = await processes(run);
    expect(whoIs(before.worker)).toBe(four(findUser("nobody", userDatabase())));
    first.process.kill("SIGKILL");
    await first.ended;
    const ports = ["--http-port", String(first.http), "--https-port", String(first.https)];
    await start(run, folder, "--no-access-log", "--nginx-user", "www-data", ...ports);
    const replaced = async () => (await processes(run).catch(() => before)).worker !== before.worker;
    // More than a worker keeps in memory: each of the two users needs a folder for it, while both have workers.
    const large = { host: HOST, method: "POST", body: Buffer.alloc(MIB) };
    while (!(await replaced())) {
      expect((await ask(first.http, { host: HOST })).status).toBe(200);
      expect((await ask(first.http, large)).body).toBe(String(MIB));
    }
    const { master, worker } = await processes(run);
    expect(master).toBe(before.master);
    expect(whoIs(worker)).toBe(four(findUser("www-data", userDatabase())));
    expect((await ask(first.http, { host: HOST, method: "POST", body: Buffer.alloc(8 * MIB) })).body).toBe(
      String(8 * MIB),
    );
  });

  it("run as root without a word where that is asked for", async () => {
    const run = runFolder();
    const running = await start(run, await shopFolder(), "--nginx-user", "root");
    expect(whoIs((await processes(run)).worker)).toBe(four({ uid: 0, gid: 0 }));
    expect(warned(running)).toEqual([]);
  });

  it("run as root, with a warning that says why, in a run folder that no other user can get into", async () => {
    const run = runFolder();
    chmodSync(run.path, 0o700);
    const running = await start(run, await shopFolder());
    expect(whoIs((await processes(run)).worker)).toBe(four({ uid: 0, gid: 0 }));
    expect(warned(running)).toMatchObject([{ level: "warn", why: `www-data can't get into ${run.path}/nginx-temp` }]);
  });

  it("are refused with status 1 and a reason where they can't be who is asked for", async () => {
    const hidden = join(makeFolder(), "hidden");
    mkdirSync(hidden, { mode: 0o700 });
    for (const [options, reason] of [
      [["--nginx-user", "no-such-user"], /--nginx-user: there is no user no-such-user/],
      [["--nginx-user", "www-data", "--run-dir", hidden], /--nginx-user: www-data can't get into .*nginx-temp/],
    ] as const) {
      const { status, stderr } = await runCli([
        "run",
        ...NGINX,
        "--config-dir",
        makeFolder(),
        "--metrics-port",
        "off",
        ...options,
      ]);
      expect(stderr).toMatch(reason);
      expect(status).toBe(1);
    }
  });
});

/** Paths of the files that a process has open. */
function openFiles(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

/** True while a process has a file of a folder open, which may be deleted already. */
function usesFile(pid: number, folder: string): boolean {
  return openFiles(pid).some((path) => path.startsWith(`${folder}/`));
}
