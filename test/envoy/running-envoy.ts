/** A real Envoy with core-wasm/hosts/envoy/envoy.yaml, on free ports of loopback. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import { filterResource } from "../../core-wasm/hosts/envoy/resource.js";
import { closedPort } from "../support/peers.js";
import { envoyBinary } from "./installation.js";
import { FILTER } from "./proxy-wasm-host.js";

const CONFIGURATION = join(PACKAGE_ROOT ?? "", "core-wasm/hosts/envoy/envoy.yaml");
/** Generous: an Envoy on a busy machine. */
const PATIENCE = 60_000;

/** Parts of the configuration that tests change; the rest is as it is in the file. */
export interface Bootstrap {
  admin: { address: SocketAddress };
  static_resources: { listeners: Listener[]; clusters: Record<string, unknown>[] };
}
interface SocketAddress {
  socket_address: { address: string; port_value: number };
}
export interface Listener {
  name: string;
  address: SocketAddress;
  listener_filters?: unknown[];
  filter_chains: { filters: { typed_config: ConnectionManager }[]; transport_socket?: unknown }[];
}
export interface ConnectionManager {
  http_filters: {
    name: string;
    typed_config?: unknown;
    config_discovery?: { config_source: { path_config_source: { path: string } } };
  }[];
  route_config: { virtual_hosts: Record<string, unknown>[] };
  [setting: string]: unknown;
}

/** The connection manager of a listener. */
export function managerOf(listener: Listener): ConnectionManager {
  return listener.filter_chains[0].filters[0].typed_config;
}

export interface EnvoyOptions {
  bundle: Uint8Array;
  /** Options of the filter. */
  options?: readonly string[];
  /** Path of another filter. */
  filter?: string;
  /** Changes the configuration of the file before Envoy reads it. */
  edit?: (bootstrap: Bootstrap) => void | Promise<void>;
}

export interface HttpAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/**
 * Writes what an Envoy with one worker needs into a folder: envoy.yaml on free ports, and the filter with its bundle. Answers the
 * arguments of the program.
 */
export async function prepareEnvoy(
  folder: string,
  settings: EnvoyOptions,
): Promise<{ args: string[]; port: number; admin: number }> {
  const bootstrap = parse(readFileSync(CONFIGURATION, "utf8")) as Bootstrap;
  const [listener] = bootstrap.static_resources.listeners;
  const port = await closedPort();
  const admin = await closedPort();
  bootstrap.admin.address.socket_address.port_value = admin;
  listener.address.socket_address = { address: "127.0.0.1", port_value: port };
  const discovery = managerOf(listener).http_filters[0].config_discovery;
  if (discovery === undefined) throw new Error("the first filter of envoy.yaml is not discovered");
  discovery.config_source.path_config_source.path = join(folder, "filter.pb");
  await settings.edit?.(bootstrap);
  const file = join(folder, "envoy.json");
  writeFileSync(file, JSON.stringify(bootstrap));
  writeResource(folder, settings, settings.bundle);
  return { args: ["-c", file, "--concurrency", "1", "--disable-hot-restart"], port, admin };
}

export class RunningEnvoy {
  #log = "";
  #ended = false;

  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    private readonly settings: EnvoyOptions,
    readonly port: number,
  ) {
    const take = (text: string) => {
      this.#log += text;
    };
    child.stderr?.setEncoding("utf8").on("data", take);
    child.stdout?.setEncoding("utf8").on("data", take);
    child.once("exit", () => {
      this.#ended = true;
    });
  }

  /** One worker, which serves when this resolves. */
  static async start(settings: EnvoyOptions): Promise<RunningEnvoy> {
    const folder = mkdtempSync(join(tmpdir(), "njet-kic-envoy-"));
    const { args, port, admin } = await prepareEnvoy(folder, settings);
    const child = spawn(envoyBinary(), [...args, "--log-level", "info"], { stdio: ["ignore", "pipe", "pipe"] });
    const envoy = new RunningEnvoy(child, folder, settings, port);
    try {
      await envoy.until(async () => (await envoy.#ask(admin, "/ready")).body.startsWith("LIVE"), "is ready");
    } catch (error) {
      await envoy.close();
      throw error;
    }
    return envoy;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Everything that Envoy has written so far. */
  get log(): string {
    return this.#log;
  }

  /** Puts a resource with another bundle, sound or not, into the file that Envoy watches. */
  write(bundle: Uint8Array): void {
    writeResource(this.folder, this.settings, bundle);
  }

  /** Puts these bytes into that file. */
  writeRaw(bytes: Uint8Array): void {
    putWhole(this.folder, bytes);
  }

  /** Resolves when the worker decides by the bundle with this checksum; needs the option `decide`. */
  async serves(bundle: Uint8Array, secret: string): Promise<void> {
    const sum = Buffer.from(bundle).readUInt32LE(16).toString(16).padStart(8, "0");
    const headers = { "x-njet-decide": secret };
    await this.until(
      async () => (await this.get("any.example.com", "/", headers)).headers["x-njet-bundle"] === sum,
      `serves the bundle ${sum}`,
    );
  }

  get(host: string, path: string, headers: Record<string, string | string[]> = {}): Promise<HttpAnswer> {
    return this.#ask(this.port, path, { host, ...headers });
  }

  async until(holds: () => Promise<boolean>, what: string): Promise<void> {
    const deadline = performance.now() + PATIENCE;
    for (;;) {
      if (this.#ended) throw new Error(`Envoy has ended: ${this.#log.slice(-2_000)}`);
      if (await holds().catch(() => false)) return;
      if (performance.now() > deadline) throw new Error(`it is not so that Envoy ${what}: ${this.#log.slice(-2_000)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  #ask(port: number, path: string, headers: Record<string, string | string[]> = {}): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port, path, headers, setHost: headers.host === undefined },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on("data", (part: Buffer) => parts.push(part));
          answer.on("error", reject);
          answer.on("end", () => {
            const body = Buffer.concat(parts).toString("latin1");
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body });
          });
        },
      );
      sent.on("error", reject).end();
    });
  }

  async close(): Promise<void> {
    if (!this.#ended) {
      const gone = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill("SIGTERM");
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

let versions = 0;

function writeResource(folder: string, { options = [], filter = FILTER }: EnvoyOptions, bundle: Uint8Array): void {
  putWhole(folder, filterResource({ name: "njet_kic", filter, bundle, options, version: String(++versions) }));
}

function putWhole(folder: string, bytes: Uint8Array): void {
  const made = join(folder, "made.part");
  writeFileSync(made, bytes);
  renameSync(made, join(folder, "filter.pb"));
}
