import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, get, type Server } from "node:http";
import { type AddressInfo, createServer as createPort } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleOf } from "../../controller/model/bundle.js";
import { ingress, service } from "../cli/objects.js";
import { findGo, GO_MODULE, goEnvironment } from "../conformance/go.js";
import { modelOfYaml } from "../model/model-support.js";
import { sharedCore } from "../support/core.js";

const CADDY = join(GO_MODULE, "examples/caddy");

const found = findGo();
if ("skipped" in found) console.error(`tests of the handler of Caddy are skipped: ${found.skipped}`);

/** Caddy with the handler, built once for each content of the module. */
function buildCaddy(go: string): string {
  const sum = createHash("sha256");
  const files = readdirSync(GO_MODULE, { recursive: true, encoding: "utf8" }).sort();
  for (const file of files.filter((name) => /\.(go|mod|sum|wasm)$/.test(name))) {
    sum.update(file).update(readFileSync(join(GO_MODULE, file)));
  }
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "njet-kic");
  const program = join(cache, `caddy-${sum.digest("hex").slice(0, 16)}`);
  if (existsSync(program)) return program;
  mkdirSync(cache, { recursive: true });
  for (const old of readdirSync(cache)) if (old.startsWith("caddy-")) rmSync(join(cache, old));
  console.error("building Caddy, which takes minutes");
  const args = ["-n", "10", go, "build", "-o", `${program}.part`, "."];
  const { status, error, stderr } = spawnSync("nice", args, { cwd: CADDY, env: goEnvironment(), encoding: "utf8" });
  if (status !== 0) throw new Error(`Caddy can't be built: ${error?.message ?? stderr.slice(-4000)}`);
  renameSync(`${program}.part`, program);
  return program;
}

/** A server that says who it is and what it was asked. */
async function startPeer(name: string): Promise<{ server: Server; port: number }> {
  const server = createServer((request, response) => response.end(`${name} ${request.url}`));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

async function freePort(): Promise<number> {
  const server = createPort();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function ask(port: number, host: string, path: string): Promise<{ status?: number; body: string }> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, headers: { host }, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode, body }));
    }).on("error", reject);
  });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("in vain");
}

describe.skipIf("skipped" in found)("a Caddy with the handler", () => {
  let folder: string;
  let port: number;
  let caddy: ChildProcess;
  let log = "";
  const peers: { server: Server; port: number }[] = [];

  const bundlePath = () => join(folder, "site.njkb");
  function put(bytes: Uint8Array): void {
    writeFileSync(`${bundlePath()}.part`, bytes);
    renameSync(`${bundlePath()}.part`, bundlePath());
  }
  function siteOf(peer: number): Uint8Array {
    const objects = `${service("app", "127.0.0.1", peers[peer].port)}---\n${ingress("app", "app.example.com", "app")}`;
    return bundleOf(modelOfYaml(objects).snapshot(), sharedCore).bytes;
  }

  beforeAll(async () => {
    if ("skipped" in found) return;
    const program = buildCaddy(found.go);
    folder = mkdtempSync(join(tmpdir(), "njet-kic-caddy-"));
    for (const name of ["first", "second"]) peers.push(await startPeer(name));
    put(siteOf(0));
    port = await freePort();
    const configuration = join(folder, "Caddyfile");
    const handler = `njet_kic {\n bundle ${bundlePath()}\n }`;
    writeFileSync(
      configuration,
      `{\n admin off\n auto_https off\n persist_config off\n}\nhttp://:${port} {\n bind 127.0.0.1\n route {\n ${handler}\n }\n}\n`,
    );
    caddy = spawn(program, ["run", "--config", configuration, "--adapter", "caddyfile"], {
      env: { PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
      stdio: ["ignore", "ignore", "pipe"],
    });
    caddy.stderr?.on("data", (text) => {
      log += text;
    });
    await until(async () => {
      if (caddy.exitCode !== null) throw new Error(log);
      return (await ask(port, "app.example.com", "/").catch(() => undefined)) !== undefined;
    });
  });

  afterAll(async () => {
    if (caddy && caddy.exitCode === null) {
      const ended = new Promise((resolve) => caddy.once("exit", resolve));
      caddy.kill("SIGTERM");
      await ended;
    }
    for (const { server } of peers) server.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  it("passes a request on as the bundle says", async () => {
    expect(await ask(port, "app.example.com", "/a%2Fb?c=d")).toEqual({ status: 200, body: "first /a%2Fb?c=d" });
  });

  it("answers with 404 what the bundle does not know", async () => {
    expect(await ask(port, "other.example.com", "/")).toMatchObject({ status: 404 });
  });

  it("decides by a new bundle without a reload, and keeps it when a broken one follows", async () => {
    put(siteOf(1));
    await until(async () => (await ask(port, "app.example.com", "/")).body === "second /");
    put(siteOf(0).subarray(0, 100));
    await until(async () => log.includes("CORE_IMAGE_TRUNCATED"));
    expect(await ask(port, "app.example.com", "/")).toEqual({ status: 200, body: "second /" });
  });
});
