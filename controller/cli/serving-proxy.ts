import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import type { Core } from "../../core-wasm/binding/core.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { LineSink } from "../observability/line-sink.js";
import type { Logger } from "../observability/logger.js";
import type { MetricsSource } from "../observability/metrics-text.js";
import { EmbeddedProxy } from "../proxies/embedded/embedded-proxy.js";
import type { Proxy as DrivenProxy } from "../proxies/proxy.js";
import { makeNginx, type NginxChoices, refuseNginxOptions } from "./nginx-options.js";
import { makeOpenNjet, type OpenNjetChoices, refuseOpenNjetOptions } from "./opennjet-options.js";

/** The proxies that `--proxy` can name, the default first. */
export const PROXY_NAMES = ["embedded", "nginx", "opennjet"] as const;

export type ProxyName = (typeof PROXY_NAMES)[number];

/** Options of `run` and `start` that every proxy understands, and those of single ones. */
export interface ServingOptions extends NginxChoices, OpenNjetChoices {
  proxy?: ProxyName;
  httpPort: number;
  httpsPort: number;
  /** Address that both ports are bound to. */
  address: string;
  accessLog: boolean;
  /** Folder with tls.crt and tls.key, for handshakes that no object has a certificate for. */
  defaultCertificate?: string;
  trustedProxies: string[];
  /** How long requests under way may take to end after SIGTERM. */
  drainSeconds: number;
  /** Folder that stays over a restart of the controller. */
  runDir?: string;
}

/** A proxy as the commands run it. */
export interface ServingProxy extends DrivenProxy {
  /** Opens the ports. Rejects, with none left open, with what is in the way. */
  listen(): Promise<void>;
  /** The open ports. */
  addresses(): { http: { port: number } | undefined; https: { port: number } | undefined };
  /** What it counts. `prefix`: families of traffic are called `<prefix>_vts_*`. */
  metrics(prefix: string, version: string): MetricsSource[];
}

/** What a proxy is made with. */
export interface ProxyParts {
  core: Core;
  options: ServingOptions;
  logger: Logger;
  /** Lines of the access log; written to only if `options.accessLog` says so. */
  access: LineSink;
  /** Whether anybody will ask for metrics. */
  counts: boolean;
}

/** How each proxy is made. It opens no port. Throws an Error that names an option which can't be. */
const MAKERS: Record<ProxyName, (parts: ProxyParts) => ServingProxy | Promise<ServingProxy>> = {
  embedded: makeEmbeddedProxy,
  nginx: ({ core, options, logger }) => makeNginx(core, options, logger, defaultPair(options)),
  opennjet: ({ core, options, logger }) => makeOpenNjet(core, options, logger, defaultPair(options)),
};

export async function makeProxy(parts: ProxyParts): Promise<ServingProxy> {
  const { proxy = PROXY_NAMES[0] } = parts.options;
  if (proxy !== "nginx") refuseNginxOptions(parts.options, { shared: proxy === "opennjet" });
  if (proxy !== "opennjet") refuseOpenNjetOptions(parts.options);
  return await MAKERS[proxy](parts);
}

function makeEmbeddedProxy({ core, options, logger, access, counts }: ProxyParts): ServingProxy {
  const pair = defaultPair(options);
  return new EmbeddedProxy({
    table: new RouteTable(core),
    logger,
    http: { address: options.address, port: options.httpPort },
    https: { address: options.address, port: options.httpsPort },
    trustedProxies: options.trustedProxies,
    metrics: counts,
    ...(options.accessLog ? { accessLog: access } : {}),
    ...(pair && { defaultCertificate: pair }),
  });
}

/** The pair of a folder. Throws an Error that names the option and says nothing of what the files hold. */
function defaultPair({ defaultCertificate: folder }: ServingOptions): { chain: string; key: string } | undefined {
  if (folder === undefined) return undefined;
  const read = (name: string) => {
    try {
      return readFileSync(join(folder, name), "utf8");
    } catch {
      throw new Error(`--default-certificate: ${join(folder, name)} does not exist or cannot be read`);
    }
  };
  const pair = { chain: read("tls.crt"), key: read("tls.key") };
  try {
    createSecureContext({ cert: pair.chain, key: pair.key });
  } catch {
    throw new Error(`--default-certificate: tls.crt and tls.key in ${folder} are no PEM certificate with its key`);
  }
  return pair;
}
