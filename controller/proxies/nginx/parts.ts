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

/** Which part it is that can't be had. */
export type PartCode =
  | "NGINX_MISSING"
  | "NGINX_UNUSABLE"
  | "NGINX_CORE_MISSING"
  | "OPENNJET_MISSING"
  | "OPENNJET_UNUSABLE";

/** A part is not there; the message says which, and why. */
export class PartMissing extends Error {
  constructor(
    readonly code: PartCode,
    message: string,
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/** A part can't be had on this machine. */
export class PartUnavailable extends PartMissing {}

/** A part could not be brought or made here, which may succeed another time. */
export class PartFailed extends PartMissing {}

const UNAVAILABLE = 3;

/** The folder of the project or package: what this file belongs to as a source, or compiled in dist/. */
export const PACKAGE_ROOT = ["../../../", "../../../../"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(join(path, "balancer/core/native.lua")));

/** Runs a script of the package and reads its JSON. Rejects with PartUnavailable or PartFailed, with what the script said last. */
function answerOf<T>(script: string, args: readonly string[], code: PartCode, say: (text: string) => void): Promise<T> {
  if (PACKAGE_ROOT === undefined) throw new PartUnavailable(code, "the folder balancer/ of the package is missing");
  const path = join(PACKAGE_ROOT, script);
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [path, ...args], (error, stdout, stderr) => {
      if (!error) resolve(JSON.parse(stdout) as T);
      else if (error.code === UNAVAILABLE) reject(new PartUnavailable(code, lastLine(stderr)));
      else reject(new PartFailed(code, lastLine(stderr) || error.message));
    });
    child.stderr?.on("data", (text: string) => say(text.trim()));
  });
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}

/**
 * An NGINX with Lua: the program `binary`, if it is given; else an installed one, on PATH or at the usual places; else Debian's
 * packages, downloaded into the cache folder and unpacked there once. `unpacked` leaves installed ones aside. `say` is told the
 * progress. Rejects with PartUnavailable, which says what is missing.
 */
export function findNginx({
  binary,
  unpacked = false,
  say = () => {},
}: PartOptions & { binary?: string; unpacked?: boolean } = {}): Promise<NginxInstallation> {
  const args = [...(unpacked ? ["--unpacked"] : []), ...(binary === undefined ? [] : ["--binary", binary])];
  const code = binary === undefined ? "NGINX_MISSING" : "NGINX_UNUSABLE";
  return answerOf("deploy/debian/nginx.mjs", args, code, say);
}

/** Path of the native core, built into the cache folder if it isn't there. `wasm`: another module than the core. */
export async function nativeCore({ say = () => {}, wasm }: PartOptions & { wasm?: string } = {}): Promise<string> {
  const args = ["--cached", ...(wasm === undefined ? [] : ["--wasm", wasm])];
  const answer = await answerOf<{ library: string }>("core-wasm/native/build.mjs", args, "NGINX_CORE_MISSING", say);
  return answer.library;
}

export interface PartOptions {
  say?: (text: string) => void;
}
