/** Real NGINX with the Lua module, in a folder of its own, on unix sockets. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NginxInstallation, PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";

export interface Answer {
  status: number;
  body: Buffer;
}

/** What a test puts into the configuration. */
export interface NginxContent {
  /** Lines of `http`. */
  http?: string;
  /** Lines of the server that the unix socket leads to. */
  server: string;
}

/** One NGINX with one worker that answers on a unix socket. */
export class Nginx {
  readonly folder: string;
  readonly #socket: string;
  readonly #child: ChildProcess;

  private constructor(folder: string, socket: string, child: ChildProcess) {
    this.folder = folder;
    this.#socket = socket;
    this.#child = child;
  }

  static async start(installation: NginxInstallation, { http = "", server }: NginxContent): Promise<Nginx> {
    const folder = mkdtempSync(join(tmpdir(), "njet-kic-nginx-"));
    const socket = join(folder, "socket");
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => {
      mkdirSync(join(folder, name));
      return `${name}_temp_path ${folder}/${name};`;
    });
    const luaPath = [`${PACKAGE_ROOT}?.lua`, installation.luaPath].join(";");
    writeFileSync(
      join(folder, "nginx.conf"),
      [
        // Workers of a root master would run as somebody who may not look into the folder.
        process.getuid?.() === 0 ? "user root;" : "",
        ...installation.modules.map((path) => `load_module ${path};`),
        ...["daemon off;", "worker_processes 1;", `pid ${folder}/pid;`, `error_log ${folder}/error.log info;`],
        ...["events { worker_connections 64; }", "http {", ...paths, "access_log off;"],
        ...[`lua_package_path "${luaPath}";`, `lua_package_cpath "${installation.luaCPath}";`],
        ...["client_max_body_size 1g;", http, "server {", `listen unix:${socket};`, server, "}", "}"],
      ].join("\n"),
    );
    const child = spawn(
      installation.binary,
      ["-p", folder, "-e", join(folder, "error.log"), "-c", join(folder, "nginx.conf")],
      {
        env: { ...process.env, ...installation.env },
        stdio: "inherit",
      },
    );
    const nginx = new Nginx(folder, socket, child);
    await nginx.#answers();
    return nginx;
  }

  /** What the error log says so far. */
  errorLog(): string {
    return readFileSync(join(this.folder, "error.log"), "utf8");
  }

  async #answers(): Promise<void> {
    for (let tries = 0; this.#child.exitCode === null && tries < 1000; tries++) {
      try {
        await this.get("/");
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    throw new Error(`NGINX does not answer: ${this.errorLog()}`);
  }

  get(path: string, headers: Record<string, string | string[]> = {}): Promise<Answer> {
    return this.post(path, undefined, headers);
  }

  post(path: string, body?: Uint8Array, headers: Record<string, string | string[]> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const method = body ? "POST" : "GET";
      const sent = request(
        { socketPath: this.#socket, path, method, agent: false, headers: { host: "test", ...headers } },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part) => parts.push(part));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts) }));
          response.on("error", reject);
        },
      );
      sent.on("error", reject);
      if (body) sent.setHeader("content-length", body.length);
      sent.end(body);
    });
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null) {
      const gone = new Promise((resolve) => this.#child.once("exit", resolve));
      this.#child.kill("SIGTERM");
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
