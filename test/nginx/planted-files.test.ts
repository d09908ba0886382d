import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createConnection, createServer } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { RunFolder } from "../../controller/health/run-folder.js";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { NginxFolder } from "../../controller/proxies/nginx/run-folder.js";
import { makeFolder, put, runCli, startRun } from "../cli/cli-support.js";
import { service } from "../cli/objects.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { installation, noNginx } from "./installation.js";
import { runFolder } from "./run-folder.js";

cleanUpAfterEach();

/** Somebody else on the machine. */
const OTHER = 65534;
const VICTIM = "what must stay as it is\n";
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn("tests with files of another user are skipped: only root can make them");

/** Every name that is written or read in the folder of NGINX, and those on the way to it. */
const NAMES = [
  ...["token", "state.journal", "state.journal.new", "nginx.conf", "nginx.conf.new", "nginx.pid", "nginx.lock"],
  ...["default.crt", "default.key", "default.key.new", "control.sock", "owner.sock", "access.pipe"],
];

/** A file that is not to be touched, and a check that it wasn't. */
function victim() {
  const path = join(makeFolder(), "victim");
  writeFileSync(path, VICTIM, { mode: 0o640 });
  const untouched = () => {
    const { mode, uid, nlink } = statSync(path);
    return [readFileSync(path, "utf8"), mode & 0o777, uid === process.getuid?.(), nlink];
  };
  return { path, untouched };
}

const UNTOUCHED = [VICTIM, 0o640, true, 1];

/** A folder for run folders, with `nginx` in it as somebody has left it. */
function planted(mode = 0o700): { parent: string; folder: string } {
  const parent = makeFolder();
  const folder = join(parent, "nginx");
  mkdirSync(folder);
  chmodSync(folder, mode);
  return { parent, folder };
}

async function shop(folder: string): Promise<void> {
  const peer = closing(await httpPeer((_request, response) => response.end("served")));
  put(folder, "web.yaml", service("web", "127.0.0.1", peer.port));
  put(
    folder,
    "shop.yaml",
    `apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: { name: shop }
spec:
  host: shop.example.com
  upstreams:
    - { name: web, service: web, port: 80, healthCheck: { enable: true, interval: 100ms } }
  routes: [{ path: /, action: { pass: web } }]
`,
  );
}

describe("in a run folder, a symbolic link", () => {
  it.each(NAMES)("named %s leads nothing of ours anywhere: it is taken away", (name) => {
    const { path, untouched } = victim();
    const { parent, folder } = planted();
    symlinkSync(path, join(folder, name));
    const made = NginxFolder.stable(parent);
    expect(made.foreign).toEqual([join(folder, name)]);
    if (existsSync(join(folder, name))) expect(lstatSync(join(folder, name)).isSymbolicLink()).toBe(false);
    expect(made.token).not.toBe(VICTIM.trim());
    expect(untouched()).toEqual(UNTOUCHED);
  });

  it("in the place of the folder itself is refused, and of the one for temporary files too", () => {
    const elsewhere = makeFolder();
    for (const name of ["nginx", "nginx-temp"]) {
      const parent = makeFolder();
      symlinkSync(elsewhere, join(parent, name));
      expect(() => NginxFolder.stable(parent)).toThrow(`${join(parent, name)} is no folder of our own`);
    }
    const parent = makeFolder();
    symlinkSync(elsewhere, join(parent, "health"));
    expect(() => RunFolder.stable(parent)).toThrow("is no folder of our own");
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it("in the folder for temporary files does not have NGINX give somebody else's folder to its workers", () => {
    const parent = makeFolder();
    const elsewhere = makeFolder();
    mkdirSync(join(parent, "nginx-temp"));
    symlinkSync(elsewhere, join(parent, "nginx-temp", "client_body"));
    mkdirSync(join(parent, "nginx-temp", "proxy"));
    NginxFolder.stable(parent);
    expect(readdirSync(join(parent, "nginx-temp"))).toEqual(["proxy"]);
  });

  it("in the place of what the probe process is found by is not followed", () => {
    const { path, untouched } = victim();
    const parent = makeFolder();
    mkdirSync(join(parent, "health"), { mode: 0o777 });
    for (const name of ["process.json", "process.json.new"]) symlinkSync(path, join(parent, "health", name));
    const folder = RunFolder.stable(parent);
    expect(folder.recorded()).toBeUndefined();
    folder.record(folder.newAddress());
    expect(folder.recorded()).toBeDefined();
    expect(untouched()).toEqual(UNTOUCHED);
  });
});

describe("in a run folder that others could write to", () => {
  it("a second name of a file elsewhere is taken away, so that the file is not written to; the folder is closed", () => {
    const { path, untouched } = victim();
    const { parent, folder } = planted(0o777);
    for (const name of ["state.journal", "token"]) linkSync(path, join(folder, name));
    expect(NginxFolder.stable(parent).foreign).toEqual([join(folder, "state.journal"), join(folder, "token")]);
    expect(untouched()).toEqual(UNTOUCHED);
    expect(lstatSync(folder).mode & 0o777).toBe(0o700);
  });
});

it("a folder in which others can put another one in the place of ours is told of, one with the sticky bit is not", () => {
  const { parent } = planted();
  const told = (mode: number) => {
    chmodSync(parent, mode);
    return NginxFolder.stable(parent).isReplaceable;
  };
  expect([0o700, 0o711, 0o755, 0o1777, 0o777, 0o775].map(told)).toEqual([false, false, false, false, true, true]);
});

describe.skipIf(!isRoot)("of another user,", () => {
  it.each([
    ["a token, which he knows", "token", () => "x".repeat(64)],
    ["a journal, with a state of his own", "state.journal", () => "NJKS\x01\0\0\0"],
    ["a pair of certificate and key", "default.key", () => "his key"],
  ])("%s is taken away", (_what, name, content) => {
    const { parent, folder } = planted();
    writeFileSync(join(folder, name), content());
    chownSync(join(folder, name), OTHER, OTHER);
    const made = NginxFolder.stable(parent);
    expect(made.foreign).toEqual([join(folder, name)]);
    expect(made.token).not.toBe(content());
    expect(existsSync(join(folder, name)) && readFileSync(join(folder, name), "utf8") === content()).toBe(false);
  });

  it("a pipe in the place of the token does not hang us", () => {
    const { parent, folder } = planted();
    spawnSync("mkfifo", [join(folder, "token")]);
    chownSync(join(folder, "token"), OTHER, OTHER);
    expect(NginxFolder.stable(parent).token).toMatch(/^[0-9a-f]{64}$/);
  });

  it("a folder, full as it may be, is taken away where a file of ours belongs, and refused as ours", () => {
    const { parent, folder } = planted();
    mkdirSync(join(folder, "state.journal", "deep"), { recursive: true });
    chownSync(join(folder, "state.journal"), OTHER, OTHER);
    expect(NginxFolder.stable(parent).foreign).toEqual([join(folder, "state.journal")]);
    for (const name of ["nginx", "nginx-temp"]) {
      const other = makeFolder();
      mkdirSync(join(other, name));
      chownSync(join(other, name), OTHER, OTHER);
      expect(() => NginxFolder.stable(other)).toThrow(`${join(other, name)} is no folder of our own`);
    }
  });

  it("a folder above ours is told of", () => {
    const { parent } = planted();
    chownSync(parent, OTHER, OTHER);
    expect(NginxFolder.stable(parent).isReplaceable).toBe(true);
  });
});

describe.skipIf(noNginx)("run --proxy nginx, in a run folder that was prepared by somebody else,", () => {
  beforeAll(async () => {
    await installation();
    await nativeCore();
  }, 600_000);

  it("serves, touches nothing outside of it, and says what it has taken away", async () => {
    const objects = makeFolder();
    await shop(objects);
    const { path, untouched } = victim();
    const run = runFolder();
    for (const name of ["nginx", "health"]) mkdirSync(join(run.path, name));
    chmodSync(join(run.path, "nginx"), 0o777);
    for (const name of NAMES) symlinkSync(path, join(run.path, "nginx", name));
    symlinkSync(path, join(run.path, "health", "process.json"));
    chmodSync(run.path, 0o777);
    const running = await startRun(objects, "--proxy", "nginx", "--nginx-workers", "1", "--run-dir", run.path);
    cleanup(async () => {
      running.process.kill("SIGTERM");
      await running.ended;
    });
    expect((await ask(running.http, { host: "shop.example.com" })).body).toBe("served");
    await running.until("the peer is checked", () => running.log().some(({ to }) => to === "up"));
    expect(untouched()).toEqual(UNTOUCHED);
    const warnings = running.log().filter(({ level }) => level === "warn");
    expect(warnings.map(({ message }) => message)).toEqual([
      "taken out of the run folder: it was not ours",
      "others can write where the run folder is: they could put another one in its place",
    ]);
    expect(warnings[0].paths).toHaveLength(NAMES.length);
  });

  it("is refused with status 1 and a reason where the folder is somebody else's", async () => {
    const run = makeFolder();
    symlinkSync(makeFolder(), join(run, "nginx"));
    const args = ["run", "--proxy", "nginx", "--config-dir", makeFolder(), "--metrics-port", "off", "--run-dir", run];
    const { status, stderr } = await runCli(args);
    expect(stderr).toMatch(/nginx is no folder of our own \(ENOTDIR\)/);
    expect(status).toBe(1);
  });

  it("takes no control socket that somebody else listens on for that of NGINX", async () => {
    const objects = makeFolder();
    await shop(objects);
    const run = runFolder();
    mkdirSync(join(run.path, "nginx"), { mode: 0o700 });
    const elsewhere = join(makeFolder(), "his.sock");
    const asked: string[] = [];
    const his = createServer((socket) => socket.on("data", (data) => asked.push(data.toString("latin1"))));
    await new Promise<void>((resolve) => his.listen(elsewhere, resolve));
    cleanup(() => his.close());
    symlinkSync(elsewhere, join(run.path, "nginx", "control.sock"));
    const running = await startRun(objects, "--proxy", "nginx", "--nginx-workers", "1", "--run-dir", run.path);
    cleanup(async () => {
      running.process.kill("SIGTERM");
      await running.ended;
    });
    expect((await ask(running.http, { host: "shop.example.com" })).body).toBe("served");
    // The token was told to nobody.
    expect(asked).toEqual([]);
    createConnection(elsewhere).destroy();
  });
});
