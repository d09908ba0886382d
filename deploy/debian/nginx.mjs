// An NGINX with the Lua module: the installed one, or Debian's packages unpacked into the cache folder.
//   node deploy/debian/nginx.mjs [--unpacked | --binary PATH]
// Prints how it is started, as JSON: an NginxInstallation of controller/proxies/nginx/parts.ts. Exit status: 0; 3 there is none and none can be had; 1.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { libraryFolders, runScript, Unavailable, unpackPackages } from "./packages.mjs";

const exec = promisify(execFile);

/** `libluajit2` is named, since the Lua module may be had with either of two LuaJITs, and only this one has all it asks for. */
const PACKAGES = [
  "libluajit2-5.1-2",
  "libnginx-mod-http-lua",
  "libnginx-mod-http-ndk",
  "lua-cjson",
  "lua-resty-core",
  "lua-resty-lrucache",
  "nginx",
];
const MODULES = ["ndk_http_module.so", "ngx_http_lua_module.so"];

async function output(binary, args, env) {
  const { stdout, stderr } = await exec(binary, args, { env: { ...process.env, ...env } });
  return stdout + stderr;
}

/** Answers the installation with its version if it starts and finds the Lua libraries. Throws what is wrong otherwise. */
async function checked(installation) {
  const { binary, env, luaPath, luaCPath } = installation;
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-nginx-"));
  try {
    const modules = installation.modules.map((path) => `load_module ${path};`);
    const lua = [`lua_package_path "${luaPath}";`, `lua_package_cpath "${luaCPath}";`];
    const test =
      'init_by_lua_block { require "resty.core" require "ngx.balancer" require "ngx.ssl" require "cjson.safe" require "ffi" }';
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`);
    const lines = [
      ...modules,
      `pid ${folder}/pid;`,
      "events {}",
      "http {",
      ...paths,
      "access_log off;",
      ...lua,
      test,
      "}",
    ];
    writeFileSync(join(folder, "nginx.conf"), `${lines.join("\n")}\n`);
    await output(binary, ["-t", "-q", "-p", folder, "-e", "stderr", "-c", join(folder, "nginx.conf")], env);
    const version = /nginx\/([\d.]+)/.exec(await output(binary, ["-v"], env))?.[1];
    return { ...installation, version };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const LIKELY = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/local/openresty/nginx/sbin/nginx"];

/** The last thing that a program said before it ended. */
function lastWords(error) {
  const lines = String(error.stderr || error.message)
    .trim()
    .split("\n");
  return lines.findLast((line) => /\[(emerg|error|alert)\]/.test(line)) ?? lines.at(-1);
}

/** How the NGINX at a path is started. Throws Unavailable with what it lacks. */
async function installed(binary) {
  let built;
  try {
    built = await output(binary, ["-V"], {});
  } catch (error) {
    throw new Unavailable(`${binary} can't be run as an NGINX: ${lastWords(error)}`);
  }
  const folder = /--modules-path=(\S+)/.exec(built)?.[1] ?? "";
  const modules = MODULES.map((file) => join(folder, file)).filter(existsSync);
  if (modules.length < MODULES.length && !/--add-module=\S*lua/.test(built)) {
    const missing = MODULES.filter((file) => !existsSync(join(folder, file)));
    throw new Unavailable(
      `${binary} has no Lua module: ${missing.join(" and ")} not found in ${folder || "any folder"}`,
    );
  }
  try {
    return await checked({ binary, modules, luaPath: ";;", luaCPath: ";;", env: {} });
  } catch (error) {
    throw new Unavailable(`${binary} does not start with what the balancer needs: ${lastWords(error)}`);
  }
}

/** The first NGINX on PATH, or at the usual places, that has all that is needed; and why others have not. */
async function firstInstalled() {
  const onPath = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute);
  const candidates = [...new Set([...onPath.map((folder) => join(folder, "nginx")), ...LIKELY])].filter(existsSync);
  const reasons = [];
  for (const binary of candidates) {
    try {
      return { installation: await installed(binary), reasons };
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      reasons.push(error.message);
    }
  }
  return { installation: undefined, reasons };
}

function fromPackages(root) {
  const libraries = libraryFolders(root);
  return {
    binary: join(root, "usr/sbin/nginx"),
    modules: MODULES.map((file) => join(root, "usr/lib/nginx/modules", file)),
    luaPath: ["?.lua", "?/init.lua"].map((file) => join(root, "usr/share/lua/5.1", file)).join(";"),
    luaCPath: libraries.map((folder) => join(folder, "lua/5.1/?.so")).join(";"),
    env: { LD_LIBRARY_PATH: libraries.join(":") },
  };
}

/**
 * Answers an NginxInstallation: of the program `binary`, if it is given; else the first installed one with Lua, unless
 * `unpacked` asks for one of the cache folder; else one that is unpacked there. `say` is told the progress. Throws
 * Unavailable where none can be had.
 */
async function nginxWithLua({ binary, unpacked, say }) {
  if (binary !== undefined) return await installed(binary);
  const { installation, reasons } = unpacked ? { reasons: [] } : await firstInstalled();
  if (installation) return installation;
  try {
    const check = (folder) => checked(fromPackages(folder));
    const folder = await unpackPackages({ name: "nginx", packages: PACKAGES, check, say });
    return await checked(fromPackages(folder));
  } catch (error) {
    const found = reasons.length === 0 ? "no NGINX is installed" : reasons.join("; ");
    const message = `${found}; and none with the Lua module can be unpacked: ${error.message}`;
    throw error instanceof Unavailable ? new Unavailable(message) : new Error(message);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: { unpacked: { type: "boolean", default: false }, binary: { type: "string" } },
  });
  await runScript((say) => nginxWithLua({ ...values, say }));
}
