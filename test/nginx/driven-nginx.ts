/** A NginxProxy over a real NGINX whose workers only record what they are given. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createLogger } from "../../controller/observability/logger.js";
import { ControlClient } from "../../controller/proxies/nginx/control-client.js";
import { NginxProxy, type NginxProxyParts } from "../../controller/proxies/nginx/nginx-proxy.js";
import type { NginxInstallation } from "../../controller/proxies/nginx/parts.js";
import { NginxFolder } from "../../controller/proxies/nginx/run-folder.js";
import { Supervisor } from "../../controller/proxies/nginx/supervisor.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanup } from "../support/harness.js";
import { installation } from "./installation.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TEMP_PATHS = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

export interface DrivenOptions {
  /** Parent of the folder of NGINX; a temporary one by default. */
  runDir?: string;
  workers?: number;
  dict?: string;
  defaultCertificate?: NginxProxyParts["defaultCertificate"];
  /** Lines of `http`. */
  http?: string;
}

export interface Driven {
  proxy: NginxProxy;
  folder: NginxFolder;
  supervisor: Supervisor;
  /** Lines that were logged. */
  lines: Record<string, unknown>[];
  /** Speaks with NGINX beside the proxy. */
  client: ControlClient;
}

/** A folder that is gone after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-test-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A proxy that is started; it is closed after the test. */
export async function driven(options: DrivenOptions = {}): Promise<Driven> {
  const made = await makeDriven(options);
  await made.proxy.listen();
  return made;
}

export async function makeDriven(options: DrivenOptions = {}): Promise<Driven> {
  const found = await installation();
  const folder = options.runDir === undefined ? NginxFolder.temporary() : NginxFolder.stable(options.runDir);
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    sink: { write: (line) => lines.push(JSON.parse(line)) },
    level: "debug",
    now: Date.now,
  });
  const client = new ControlClient(folder.socket, folder.token);
  const text = configurationOf(found, folder, options);
  let supervisor: Supervisor | undefined;
  const proxy = new NginxProxy({
    compiler: makeRoutingTable(),
    folder,
    client,
    logger,
    makeRunner: (onRestart) => {
      supervisor = new Supervisor({
        installation: found,
        folder,
        configuration: () => text,
        client,
        logger,
        onRestart,
      });
      return supervisor;
    },
    defaultCertificate: options.defaultCertificate,
    ports: undefined,
    accessLog: false,
  });
  const beside = new ControlClient(folder.socket, folder.token);
  cleanup(async () => {
    await beside.close();
    await proxy.close(1_000);
  });
  return {
    proxy,
    folder,
    supervisor: supervisor as unknown as Supervisor,
    lines,
    client: beside,
  };
}

function configurationOf(found: NginxInstallation, folder: NginxFolder, options: DrivenOptions): string {
  const { workers = 2, dict = "16m", http = "" } = options;
  const lines = [
    process.getuid?.() === 0 ? "user root;" : "",
    ...found.modules.map((path) => `load_module ${path};`),
    ...["daemon off;", `worker_processes ${workers};`, `pid ${folder.pidFile};`, "error_log stderr notice;"],
    ...["worker_shutdown_timeout 10s;", "events { worker_connections 256; }", "http {", "access_log off;"],
    ...TEMP_PATHS.map((name) => `${name}_temp_path ${folder.path}/${name};`),
    `lua_package_path "${ROOT}?.lua;${ROOT}?/init.lua;${ROOT}test/nginx/?.lua;${found.luaPath}";`,
    `lua_package_cpath "${found.luaCPath}";`,
    `lua_shared_dict njet_kic_state ${dict};`,
    "lua_shared_dict njet_kic_workers 256k;",
    "init_by_lua_block {",
    `  require("balancer.control").open("${folder.tokenFile}")`,
    `  require("balancer.state.journal").restore("${folder.journal}")`,
    '  require "recorder"',
    "}",
    'init_worker_by_lua_block { require("balancer.state.follower").start() }',
    http,
    `server { listen unix:${folder.socket}; client_max_body_size 0;`,
    '  location / { content_by_lua_block { require("balancer.control").handle() } }',
    '  location = /show { content_by_lua_block { require("recorder").show() } }',
    "}",
    "}",
  ];
  return `${lines.join("\n")}\n`;
}

/** Resolves when `holds` answers true; rejects with `what` if it does not in half a minute. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1500; tries++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`it does not happen that ${what}`);
}
