import { isAbsolute, resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Core } from "../../core-wasm/binding/core.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { Logger } from "../observability/logger.js";
import { attachedNginx, ownNginx } from "../proxies/nginx/make-nginx.js";
import type { ServingOptions, ServingProxy } from "./serving-proxy.js";
import { PACKAGE_VERSION } from "./version.js";

/** Options of `run` and `start` that only NGINX understands. Undefined: not given. */
export interface NginxChoices {
  /** Path of the program. */
  nginx?: string;
  /** Undefined: one for each core that may be used. */
  nginxWorkers?: number;
  /** `USER` or `USER:GROUP` of the workers. */
  nginxUser?: string;
  /** MiB. */
  nginxStateSize?: number;
  /** Control socket of an NGINX that somebody else runs. */
  attach?: string;
  proxyProtocol?: boolean;
}

/** MiB. */
export const DEFAULT_STATE_SIZE = 256;
const FLAGS = {
  nginx: "--nginx",
  nginxWorkers: "--nginx-workers",
  nginxUser: "--nginx-user",
  nginxStateSize: "--nginx-state-size",
} as const;
/** What an NGINX that is running already has been given by who started it. */
const OWN = { ...FLAGS, proxyProtocol: "--proxy-protocol" } as const;

/** Those that OpenNJet understands as well. */
const SHARED: readonly string[] = [OWN.nginxUser, OWN.nginxStateSize, OWN.proxyProtocol];

/** Adds the options to a command. */
export function withNginx(command: Command): Command {
  return command
    .option("--nginx <path>", "nginx: the program; else one on PATH, or Debian's, unpacked into the cache folder", path)
    .addOption(
      new Option("--nginx-workers <n>", "nginx: worker processes")
        .argParser(workers)
        .default(undefined, "one for each core that may be used"),
    )
    .addOption(
      new Option(
        "--nginx-user <user>",
        "nginx, opennjet: who its workers are where the controller is root, as USER or USER:GROUP",
      ).default(undefined, "one without rights: www-data, nginx or nobody"),
    )
    .addOption(
      new Option("--nginx-state-size <MiB>", "nginx, opennjet: memory that workers share for the state")
        .argParser(mebibytes)
        .default(undefined, String(DEFAULT_STATE_SIZE)),
    )
    .option("--attach <socket>", "nginx: drive a running one by its control socket, with the token beside it", path)
    .option("--proxy-protocol", "nginx, opennjet: clients are named by the PROXY protocol, from --trusted-proxies");
}

function path(text: string): string {
  return isAbsolute(text) ? text : resolve(text);
}

function workers(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 1024) throw new InvalidArgumentError("1 to 1024 workers");
  return value;
}

function mebibytes(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65_536) throw new InvalidArgumentError("1 to 65536 MiB");
  return value;
}

/** Throws an Error that names an option which only NGINX understands; `shared`: those that OpenNJet understands as well may be given. */
export function refuseNginxOptions(options: NginxChoices, { shared = false } = {}): void {
  for (const [name, flag] of Object.entries({ ...OWN, attach: "--attach" })) {
    if (shared && SHARED.includes(flag)) continue;
    if (options[name as keyof NginxChoices] !== undefined) throw new Error(`${flag} needs --proxy nginx`);
  }
}

/** NGINX as the options ask for it, not started yet. Rejects with an Error that names an option, or says what is missing. */
export async function makeNginx(
  core: Core,
  options: ServingOptions,
  logger: Logger,
  defaultCertificate: { chain: string; key: string } | undefined,
): Promise<ServingProxy> {
  const compiler = new RouteTable(core);
  const { attach, address, trustedProxies, runDir } = options;
  if (attach !== undefined) {
    for (const [name, flag] of Object.entries(OWN)) {
      if (options[name as keyof NginxChoices] !== undefined) throw new Error(`${flag} can't be given with --attach`);
    }
    return attachedNginx({ compiler, logger }, attach, defaultCertificate);
  }
  if (options.proxyProtocol && trustedProxies.length === 0) throw new Error("--proxy-protocol needs --trusted-proxies");
  return await ownNginx(
    { compiler, logger },
    {
      binary: options.nginx,
      http: { address, port: options.httpPort },
      https: { address, port: options.httpsPort },
      workers: options.nginxWorkers ?? 0,
      user: options.nginxUser,
      stateSize: options.nginxStateSize ?? DEFAULT_STATE_SIZE,
      trustedProxies,
      proxyProtocol: options.proxyProtocol === true,
      accessLog: options.accessLog,
      defaultCertificate,
      runDir,
      drainTime: Math.round(options.drainSeconds * 1000),
      version: PACKAGE_VERSION,
    },
  );
}
