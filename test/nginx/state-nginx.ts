/** A real NGINX with the state side of the balancer alone, and handlers that only record what they are given. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ControlClient, type WorkerState } from "../../controller/proxies/nginx/control-client.js";
import type { NginxInstallation } from "../../controller/proxies/nginx/parts.js";
import { cleanup } from "../support/harness.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TEMP_PATHS = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

export interface StateNginxOptions {
  workers?: number;
  /** Size of the shared dict. */
  dict?: string;
  /** Put there before the start. */
  journal?: Uint8Array;
}

export interface Held {
  pid: number;
  /** MD5 of contents by name of the piece. */
  held?: Record<string, string>;
}

export class StateNginx {
  readonly folder = mkdtempSync(join(tmpdir(), "njet-kic-state-"));
  readonly token = randomBytes(32).toString("hex");
  readonly control: string;
  readonly journalPath: string;
  readonly client: ControlClient;
  #child: ChildProcess | undefined;
  private readonly workerCount: number;

  constructor(
    private readonly installation: NginxInstallation,
    options: StateNginxOptions = {},
  ) {
    this.control = join(this.folder, "control.sock");
    this.journalPath = join(this.folder, "state.journal");
    this.client = new ControlClient(this.control, this.token);
    const { workers = 2, dict = "16m", journal } = options;
    this.workerCount = workers;
    writeFileSync(join(this.folder, "token"), `${this.token}\n`, { mode: 0o600 });
    if (journal !== undefined) writeFileSync(this.journalPath, journal, { mode: 0o600 });
    const paths = TEMP_PATHS.map((name) => {
      mkdirSync(join(this.folder, name));
      return `${name}_temp_path ${this.folder}/${name};`;
    });
    const lines = [
      process.getuid?.() === 0 ? "user root;" : "",
      ...installation.modules.map((path) => `load_module ${path};`),
      ...["daemon off;", `worker_processes ${workers};`, `pid ${this.folder}/pid;`],
      ...["error_log stderr notice;", "events { worker_connections 256; }", "http {", ...paths, "access_log off;"],
      `lua_package_path "${ROOT}?.lua;${ROOT}?/init.lua;${ROOT}test/nginx/?.lua;${installation.luaPath}";`,
      `lua_package_cpath "${installation.luaCPath}";`,
      `lua_shared_dict njet_kic_state ${dict};`,
      "lua_shared_dict njet_kic_workers 256k;",
      "init_by_lua_block {",
      `  require("balancer.control").open("${this.folder}/token")`,
      `  require("balancer.state.journal").restore("${this.journalPath}")`,
      '  require "recorder"',
      "}",
      'init_worker_by_lua_block { require("balancer.state.follower").start() }',
      `server { listen unix:${this.control}; client_max_body_size 0; client_body_buffer_size 16k;`,
      '  location / { content_by_lua_block { require("balancer.control").handle() } }',
      '  location = /show { content_by_lua_block { require("recorder").show() } }',
      '  location = /peek { content_by_lua_block { require("recorder").peek() } }',
      '  location = /die { content_by_lua_block { require("recorder").die_half_way() } }',
      "}",
      "}",
    ];
    writeFileSync(join(this.folder, "nginx.conf"), lines.join("\n"));
    cleanup(() => this.close());
  }

  /** What it has logged so far. */
  log = "";

  async start(): Promise<this> {
    rmSync(this.control, { force: true });
    const { binary, env } = this.installation;
    const child = spawn(binary, ["-p", this.folder, "-e", "stderr", "-c", join(this.folder, "nginx.conf")], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    child.stderr.on("data", (text) => {
      this.log += text;
    });
    for (let tries = 0; tries < 1000 && child.exitCode === null; tries++) {
      if ((await this.workers().catch(() => [])).length === this.workerCount) return this;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`NGINX does not answer: ${this.log}`);
  }

  /** Ends it, and starts it anew as a new NGINX. */
  async restart(): Promise<void> {
    await this.stop("SIGTERM");
    await this.start();
  }

  /** How many workers there are from the next `hangUp` on. */
  setWorkerCount(count: number): void {
    const file = join(this.folder, "nginx.conf");
    writeFileSync(file, readFileSync(file, "utf8").replace(/worker_processes \d+;/, `worker_processes ${count};`));
  }

  hangUp(): void {
    this.#child?.kill("SIGHUP");
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.stop("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }

  async workers(): Promise<WorkerState[]> {
    return (await this.client.state()).workers;
  }

  /** What each worker holds: by its process number. `path`: `/show` as a request would find it, `/peek` as it is. */
  async held(path = "/show"): Promise<Map<number, Record<string, string>>> {
    const found = new Map<number, Record<string, string>>();
    for (let tries = 0; tries < 1000; tries++) {
      // Others may have taken their places since.
      const headers = { authorization: `Bearer ${this.token}` };
      const state = JSON.parse((await this.ask("/state", { headers })).body) as { workers: WorkerState[] };
      const pids = state.workers.map(({ pid }) => pid);
      for (const pid of found.keys()) if (!pids.includes(pid)) found.delete(pid);
      if (found.size === pids.length) break;
      // Which worker takes a connection is the kernel's choice; of several at a time one is soon the other's.
      for (const { body } of await Promise.all(Array.from({ length: tries < 10 ? 1 : 16 }, () => this.ask(path)))) {
        const { pid, held } = JSON.parse(body) as Held;
        if (pids.includes(pid)) found.set(pid, held ?? {});
      }
    }
    return found;
  }

  /** One request, on a connection of its own, so that any worker may answer. */
  ask(
    path: string,
    options: { method?: string; body?: Uint8Array | string; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const { method = "GET", body, headers = {} } = options;
      const sent = request({ socketPath: this.control, path, method, agent: false, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
        response.on("error", reject);
      });
      sent.on("error", reject);
      if (body !== undefined) sent.setHeader("content-length", Buffer.byteLength(body));
      sent.end(body);
    });
  }

  readJournal(): Buffer {
    return readFileSync(this.journalPath);
  }
}

export function md5(content: string | Uint8Array): string {
  return createHash("md5").update(content).digest("hex");
}
