/**
 * What an NGINX with the core inside needs of this machine: the program with its Lua module, and the native core. Both are
 * found, or made in the cache folder, by scripts of their own, which run without anything that is compiled.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** How an NGINX with the Lua module is started. */
export interface NginxInstallation {
  /** Path of the program. */
  binary: string;
  /** As in `1.22.1`. */
  version: string;
  /** Paths for `load_module`, in this order; none where Lua is built in. */
  modules: string[];
  /** For `lua_package_path`; the balancer's own folder comes before it. */
  luaPath: string;
  /** For `lua_package_cpath`. */
  luaCPath: string;
  /** What the environment of the program must hold besides. */
  env: Record<string, string>;
}

/** A part can't be had on this machine; the message says which, and why. */
export class PartUnavailable extends Error {
  override readonly name = "PartUnavailable";
}

const UNAVAILABLE = 3;

/** The folder of the project or package: what this file belongs to as a source, or compiled in dist/. */
export const PACKAGE_ROOT = ["../../../", "../../../../"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(join(path, "balancer/core/native.lua")));

/** Runs a script of the package and reads its JSON. Throws PartUnavailable, or an Error with what the script said. */
function answerOf<T>(script: string, args: readonly string[], say: (text: string) => void): Promise<T> {
  if (PACKAGE_ROOT === undefined) throw new PartUnavailable("the folder balancer/ of the package is missing");
  const path = join(PACKAGE_ROOT, script);
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [path, ...args], (error, stdout, stderr) => {
      if (!error) resolve(JSON.parse(stdout) as T);
      else if (error.code === UNAVAILABLE) reject(new PartUnavailable(lastLine(stderr)));
      else reject(new Error(stderr.trim() || error.message));
    });
    child.stderr?.on("data", (text: string) => say(text.trim()));
  });
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}

/**
 * An NGINX with Lua: an installed one, else Debian's packages, downloaded into the cache folder and unpacked there once.
 * `unpacked` leaves the installed one aside. `say` is told the progress.
 */
export function findNginx({ unpacked = false, say = () => {} }: PartOptions & { unpacked?: boolean } = {}) {
  return answerOf<NginxInstallation>("deploy/debian/nginx.mjs", unpacked ? ["--unpacked"] : [], say);
}

/** Path of the native core, built into the cache folder if it isn't there. `wasm`: another module than the core. */
export async function nativeCore({ say = () => {}, wasm }: PartOptions & { wasm?: string } = {}): Promise<string> {
  const args = ["--cached", ...(wasm === undefined ? [] : ["--wasm", wasm])];
  return (await answerOf<{ library: string }>("core-wasm/native/build.mjs", args, say)).library;
}

export interface PartOptions {
  say?: (text: string) => void;
}
