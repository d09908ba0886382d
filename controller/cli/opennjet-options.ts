import { isAbsolute, resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Core } from "../../core-wasm/binding/core.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { Logger } from "../observability/logger.js";
import { DEFAULT_MAX_LOCATIONS } from "../proxies/opennjet/locations/locations-carrier.js";
import { ownOpenNjet } from "../proxies/opennjet/make-opennjet.js";
import { BALANCERS, type BalancerName, CARRIERS, type Carrier } from "../proxies/opennjet/parts.js";
import { DEFAULT_STATE_SIZE } from "./nginx-options.js";
import type { ServingOptions, ServingProxy } from "./serving-proxy.js";
import { PACKAGE_VERSION } from "./version.js";

/** Options of `run` and `start` that only OpenNJet understands. Undefined: not given. */
export interface OpenNjetChoices {
  /** Folder of the installation; else `NJET_PREFIX`. */
  opennjetPrefix?: string;
  carrier?: Carrier;
  /** With the carrier locations: who balances. */
  balancer?: BalancerName;
  /** With the carrier locations: how many there may be. */
  maxLocations?: number;
  /** Undefined: one for each core that may be used. */
  workers?: number;
  /** Port of OpenNJet's own metrics. */
  opennjetStatsPort?: number;
}

/** Beyond it OpenNJet loses some when it is started again. */
const MOST_LOCATIONS = 900;
const FLAGS = {
  opennjetPrefix: "--opennjet-prefix",
  carrier: "--carrier",
  balancer: "--balancer",
  maxLocations: "--max-locations",
  workers: "--workers",
  opennjetStatsPort: "--opennjet-stats-port",
} as const;

/** Adds the options to a command. */
export function withOpenNjet(command: Command): Command {
  return command
    .option("--opennjet-prefix <dir>", "opennjet: folder of the installation; else NJET_PREFIX", path)
    .addOption(
      new Option("--carrier <name>", "opennjet: how routes get there: decided by the core, or as dynamic locations")
        .choices(CARRIERS)
        .default(undefined, CARRIERS[0]),
    )
    .addOption(
      new Option("--balancer <name>", "opennjet: who balances with the carrier locations: our Lua, or OpenNJet's own")
        .choices(BALANCERS)
        .default(undefined, BALANCERS[0]),
    )
    .addOption(
      new Option("--max-locations <n>", "opennjet: dynamic locations that the carrier locations makes at most")
        .argParser(locations)
        .default(undefined, String(DEFAULT_MAX_LOCATIONS)),
    )
    .addOption(
      new Option("--workers <n>", "opennjet: worker processes")
        .argParser(workers)
        .default(undefined, "one for each core that may be used"),
    )
    .addOption(
      new Option("--opennjet-stats-port <n>", "opennjet: port for its own /stats")
        .argParser(port)
        .default(undefined, "none"),
    );
}

function path(text: string): string {
  return isAbsolute(text) ? text : resolve(text);
}

function workers(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 512) throw new InvalidArgumentError("1 to 512 workers");
  return value;
}

function locations(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > MOST_LOCATIONS)
    throw new InvalidArgumentError(`1 to ${MOST_LOCATIONS} locations`);
  return value;
}

function port(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65535) throw new InvalidArgumentError("a port is 1 to 65535");
  return value;
}

/** Throws an Error that names an option which only OpenNJet understands. */
export function refuseOpenNjetOptions(options: OpenNjetChoices): void {
  for (const [name, flag] of Object.entries(FLAGS)) {
    if (options[name as keyof OpenNjetChoices] !== undefined) throw new Error(`${flag} needs --proxy opennjet`);
  }
}

/** OpenNJet as the options ask for it, not started yet. Rejects with an Error that names an option, or says what is missing. */
export async function makeOpenNjet(
  core: Core,
  options: ServingOptions,
  logger: Logger,
  defaultCertificate: { chain: string; key: string } | undefined,
): Promise<ServingProxy> {
  const { address, trustedProxies, opennjetStatsPort: stats } = options;
  if (options.proxyProtocol && trustedProxies.length === 0) throw new Error("--proxy-protocol needs --trusted-proxies");
  const carrier = options.carrier ?? CARRIERS[0];
  if (options.maxLocations !== undefined && carrier !== "locations")
    throw new Error("--max-locations needs --carrier locations");
  const balancer = options.balancer ?? BALANCERS[0];
  if (balancer === "bundled" && carrier !== "locations")
    throw new Error("--balancer bundled needs --carrier locations: it can't route");
  return await ownOpenNjet(
    { compiler: new RouteTable(core), logger },
    {
      carrier,
      balancer,
      maxLocations: options.maxLocations ?? DEFAULT_MAX_LOCATIONS,
      prefix: options.opennjetPrefix ?? process.env.NJET_PREFIX,
      http: { address, port: options.httpPort },
      https: { address, port: options.httpsPort },
      workers: options.workers,
      user: options.nginxUser,
      stateSize: options.nginxStateSize ?? DEFAULT_STATE_SIZE,
      trustedProxies,
      proxyProtocol: options.proxyProtocol === true,
      accessLog: options.accessLog,
      defaultCertificate,
      stats: stats === undefined ? undefined : { address, port: stats },
      runDir: options.runDir,
      drainTime: Math.round(options.drainSeconds * 1000),
      version: PACKAGE_VERSION,
    },
  );
}
