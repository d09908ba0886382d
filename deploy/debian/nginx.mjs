// An NGINX with the Lua module: the installed one, or Debian's packages unpacked into the cache folder.
//   node deploy/debian/nginx.mjs [--unpacked]
// Prints how it is started, as JSON: an NginxInstallation of controller/proxies/nginx/parts.ts. Exit status: 0; 3 there is none and none can be had; 1.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
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

/** The NGINX that is installed, if it has the Lua module and its libraries. */
async function installed() {
  for (const binary of ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/local/openresty/nginx/sbin/nginx"]) {
    if (!existsSync(binary)) continue;
    try {
      const built = await output(binary, ["-V"], {});
      const folder = /--modules-path=(\S+)/.exec(built)?.[1] ?? "";
      const modules = MODULES.map((file) => join(folder, file)).filter(existsSync);
      return await checked({ binary, modules, luaPath: ";;", luaCPath: ";;", env: {} });
    } catch {
      // It has no Lua, or lacks a library: the next one.
    }
  }
  return undefined;
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
 * Finds an installed NGINX with Lua, unless `unpacked` asks for one of the cache folder, or unpacks one. `say` is told the
 * progress. Answers an NginxInstallation; throws Unavailable where none can be had.
 */
async function nginxWithLua({ unpacked, say }) {
  const own = unpacked ? undefined : await installed();
  if (own) return own;
  try {
    const check = (folder) => checked(fromPackages(folder));
    const folder = await unpackPackages({ name: "nginx", packages: PACKAGES, check, say });
    return await checked(fromPackages(folder));
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    throw new Unavailable(`no NGINX with the Lua module is installed, and none can be unpacked: ${error.message}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runScript((say) => nginxWithLua({ unpacked: process.argv.includes("--unpacked"), say }));
}
