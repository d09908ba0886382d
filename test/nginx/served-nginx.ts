/** A NginxProxy over a real NGINX with the whole balancer, as the controller runs it. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createLogger } from "../../controller/observability/logger.js";
import { nginxConfiguration } from "../../controller/proxies/nginx/configuration.js";
import { ControlClient } from "../../controller/proxies/nginx/control-client.js";
import { ListenerPorts } from "../../controller/proxies/nginx/listener-ports.js";
import { NginxProxy } from "../../controller/proxies/nginx/nginx-proxy.js";
import { nativeCore, PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import { NginxFolder } from "../../controller/proxies/nginx/run-folder.js";
import { Supervisor } from "../../controller/proxies/nginx/supervisor.js";
import { customaryUser, userDatabase } from "../../controller/proxies/nginx/worker-user.js";
import { makeCertificate } from "../support/certificates.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanup } from "../support/harness.js";
import { installation } from "./installation.js";

export interface Served {
  proxy: NginxProxy;
  http: number;
  https: number;
  /** Speaks with NGINX beside the proxy. */
  client: ControlClient;
  /** Lines that were logged. */
  lines: Record<string, unknown>[];
  workerPids(): Promise<number[]>;
}

/** A port of loopback that is free. */
const FREE = { address: "127.0.0.1", port: 0 };

/** Two workers on free loopback ports; closed after the test. */
export async function served(): Promise<Served> {
  const found = await installation();
  const folder = NginxFolder.temporary();
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ sink: { write: (line) => lines.push(JSON.parse(line)) }, now: Date.now });
  const ports = await ListenerPorts.choose(FREE, FREE);
  const defaultCertificate = makeCertificate("default");
  folder.write(folder.certificateFile, defaultCertificate.chain);
  folder.write(folder.certificateKeyFile, defaultCertificate.key);
  const settings = {
    ...found,
    packageRoot: PACKAGE_ROOT ?? "",
    library: await nativeCore(),
    runDirectory: folder.path,
    tempDirectory: folder.temp,
    controlSocket: folder.socket,
    tokenFile: folder.tokenFile,
    journalFile: folder.journal,
    defaultCertificate: { chain: folder.certificateFile, key: folder.certificateKeyFile },
    ...{ workers: 2, connections: 1024, trustedProxies: [], proxyProtocol: false, allowUnderscoreHeaders: false },
    ...(process.getuid?.() === 0 ? { user: customaryUser(userDatabase()) } : {}),
    ...{ errorLog: "stderr", errorLevel: "warn" as const, bodyLimit: 0, stateSize: 32, shutdownTimeout: 5_000 },
  };
  const configuration = () => nginxConfiguration({ ...settings, http: ports.http, https: ports.https });
  const client = new ControlClient(folder.socket, folder.token);
  const proxy = new NginxProxy({
    compiler: makeRoutingTable(),
    folder,
    client,
    logger,
    makeRunner: (onRestart) =>
      new Supervisor({ installation: found, folder, configuration, ports, client, logger, onRestart }),
    defaultCertificate,
    accessLog: false,
    ports,
  });
  const beside = new ControlClient(folder.socket, folder.token);
  cleanup(async () => {
    await beside.close();
    await proxy.close(1_000);
  });
  await proxy.listen();
  const workerPids = async () => (await beside.state()).workers.map(({ pid }) => pid);
  return { proxy, http: ports.http.port, https: ports.https.port, client: beside, lines, workerPids };
}

/** Bytes in RAM that a process has for itself; what it shares with others, such as the dicts, is not among them. */
export function ownBytes(pid: number): number {
  const kilobytes = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) * 1024;
}

/** Which of `pids` has the server's end of a connection from `client` (a port of loopback) to `server`. */
export function holderOf(client: number, server: number, pids: readonly number[]): number | undefined {
  const port = (value: number) => value.toString(16).toUpperCase().padStart(4, "0");
  const row = new RegExp(`^\\s*\\d+: \\S+:${port(server)} \\S+:${port(client)} (?:\\S+ +){6}(\\d+)`, "m");
  const inode = row.exec(readFileSync("/proc/net/tcp", "utf8"))?.[1];
  return pids.find((pid) =>
    readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`;
      } catch {
        return false;
      }
    }),
  );
}
