/** What an OpenNJet needs of this machine: an installation, whole enough for what is used of it. */
import { execFile } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { type NginxInstallation, PartUnavailable } from "../nginx/parts.js";

const run = promisify(execFile);

/** How the routes of objects reach an OpenNJet: by the core inside its workers, or as dynamic locations. The default first. */
export const CARRIERS = ["core", "locations"] as const;
export type Carrier = (typeof CARRIERS)[number];

/** Who balances with the carrier locations: our Lua, or that of OpenNJet itself. The default first. */
export const BALANCERS = ["own", "bundled"] as const;
export type BalancerName = (typeof BALANCERS)[number];

/** Modules of the data plane, and of the control server; only what is used is loaded. */
export interface ModuleFiles {
  helpers: { broker: string; control: string };
  data: string[];
  control: string[];
}

/** An OpenNJet that can be started. */
export interface OpenNjetInstallation
  extends Pick<NginxInstallation, "binary" | "version" | "luaPath" | "luaCPath" | "env"> {
  prefix: string;
  /** Folder with the dynamic modules. */
  modules: string;
}

const PROGRAM = "sbin/njet";
const MODULES = "modules";
const LUA = "lualib/lib";
const LUA_C = "lualib/clib";
const LIBRARIES = "lib";
/** What the balancer requires of the Lua libraries. */
const LUA_FILES = [
  "resty/core.lua",
  "resty/lrucache.lua",
  "ngx/balancer.lua",
  "ngx/process.lua",
  "ngx/ssl.lua",
  "ngx/ssl/clienthello.lua",
];
const LUA_C_FILES = ["cjson.so"];
/** What the bundled balancer has in `modules/`, and what it requires of the Lua libraries. */
const BUNDLED_FILES = [
  "balancer.lua",
  "balancer/chash.lua",
  "balancer/chashsubset.lua",
  "balancer/resty.lua",
  "balancer/round_robin.lua",
  "balancer/sticky.lua",
  "balancer/sticky_balanced.lua",
  "balancer/sticky_persistent.lua",
  "configuration.lua",
  "util.lua",
  "util/dns.lua",
  "util/nodemap.lua",
  "util/resolv_conf.lua",
  "util/same_site.lua",
  "util/split.lua",
];
const BUNDLED_LUA_FILES = [
  "njt/balancer.lua",
  "njt/process.lua",
  "resty/core.lua",
  "resty/lrucache.lua",
  "resty/balancer/utils.lua",
  "resty/chash.lua",
  "resty/cookie.lua",
  "resty/dns/resolver.lua",
  "resty/roundrobin.lua",
];
const BUNDLED_LUA_C_FILES = ["cjson.so", "librestychash.so"];
const LUAJIT = "libluajit-5.1.so.2";

/** The files of `modules/` that a carrier with a balancer uses. */
export function moduleFiles(carrier: Carrier): ModuleFiles {
  const locations = carrier === "locations";
  return {
    helpers: { broker: "njt_helper_broker_module.so", control: "njt_helper_ctrl_module.so" },
    data: [
      "njt_http_lua_module.so",
      "njt_http_dyn_map_module.so",
      "njt_http_vtsc_module.so",
      ...(locations ? ["njt_http_location_module.so"] : []),
    ],
    control: [
      "njt_http_sendmsg_module.so",
      "njt_ctrl_config_api_module.so",
      "njt_http_vtsd_module.so",
      ...(locations ? ["njt_http_location_api_module.so"] : []),
    ],
  };
}

/**
 * The OpenNJet in `prefix` (`NJET_PREFIX` without). Rejects with PartUnavailable, whose message lists all that is missing or
 * says why the program can't be run.
 */
export async function findOpenNjet(
  prefix: string | undefined,
  carrier: Carrier,
  balancer: BalancerName = "own",
): Promise<OpenNjetInstallation> {
  if (prefix === undefined) {
    throw new PartUnavailable(
      "OPENNJET_MISSING",
      "no OpenNJet is named: --opennjet-prefix, or NJET_PREFIX in the environment",
    );
  }
  if (!isAbsolute(prefix)) throw new PartUnavailable("OPENNJET_MISSING", `${prefix} is no absolute path`);
  if (!existsSync(prefix)) throw new PartUnavailable("OPENNJET_MISSING", `${prefix} does not exist`);
  const missing = neededFiles(carrier, balancer).filter((file) => !existsSync(join(prefix, file)));
  if (missing.length > 0) {
    throw new PartUnavailable("OPENNJET_UNUSABLE", `${prefix} has no ${missing.join(", no ")}`);
  }
  const binary = join(prefix, PROGRAM);
  const env = { LD_LIBRARY_PATH: libraryPath(join(prefix, LIBRARIES)) };
  return {
    prefix,
    binary,
    version: await versionOf(binary, env),
    modules: join(prefix, MODULES),
    luaPath: ["?.lua", "?/init.lua"].map((file) => join(prefix, LUA, file)).join(";"),
    luaCPath: join(prefix, LUA_C, "?.so"),
    env,
  };
}

/** Paths in a prefix of everything that is used. */
function neededFiles(carrier: Carrier, balancer: BalancerName): string[] {
  const { helpers, data, control } = moduleFiles(carrier);
  const bundled = balancer === "bundled";
  return [
    PROGRAM,
    join(LIBRARIES, LUAJIT),
    ...[helpers.broker, helpers.control, ...data, ...control].map((file) => join(MODULES, file)),
    ...(bundled ? BUNDLED_FILES : []).map((file) => join(MODULES, file)),
    ...(bundled ? BUNDLED_LUA_FILES : LUA_FILES).map((file) => join(LUA, file)),
    ...(bundled ? BUNDLED_LUA_C_FILES : LUA_C_FILES).map((file) => join(LUA_C, file)),
  ];
}

function libraryPath(own: string): string {
  const { LD_LIBRARY_PATH: given } = process.env;
  return given ? `${own}:${given}` : own;
}

async function versionOf(binary: string, env: Record<string, string>): Promise<string> {
  try {
    accessSync(binary, constants.X_OK);
    const { stderr, stdout } = await run(binary, ["-v"], { env: { ...process.env, ...env } });
    const version = /njet\/([\d.]+)/.exec(stderr + stdout)?.[1];
    if (version !== undefined) return version;
    throw new Error("it does not say which version it is");
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n").slice(0, 2).join(" ") : String(error);
    throw new PartUnavailable("OPENNJET_UNUSABLE", `${binary} can't be run as an OpenNJet: ${why}`);
  }
}
