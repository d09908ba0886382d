// wasm2c, the compiler from WebAssembly to C: the installed one, or Debian's package unpacked into the cache folder.
//   node deploy/debian/wabt.mjs
// Prints, as JSON, the folder of its programs and those of its C files. Exit status: 0; 3 it can't be had; 1.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runScript, Unavailable, unpackPackages } from "./packages.mjs";

/** The C interface of what wasm2c writes changes between versions; the shim is written for this one. */
const VERSION = "1.0.32";

function at(root) {
  return {
    version: VERSION,
    programs: join(root, "bin"),
    include: join(root, "include"),
    runtime: join(root, "share/wabt/wasm2c"),
  };
}

/** Throws if the program does not run or has another version. */
function check(root) {
  const { status, stdout } = spawnSync(join(root, "bin/wasm2c"), ["--version"], { encoding: "utf8" });
  if (status !== 0) throw new Error("wasm2c does not run");
  if (stdout.trim() !== VERSION) throw new Unavailable(`wabt ${VERSION} is needed; there is ${stdout.trim()}`);
}

function works(root) {
  try {
    check(root);
    return existsSync(join(at(root).runtime, "wasm-rt-impl.c"));
  } catch {
    return false;
  }
}

/** Finds or unpacks wabt. Answers `{version, programs, include, runtime}`: its version, and folders. Throws Unavailable. */
export async function wabt({ say }) {
  const installed = ["/usr", "/usr/local"].find(works);
  if (installed) return at(installed);
  const inside = (folder) => join(folder, "usr");
  try {
    const folder = await unpackPackages({
      name: "wabt",
      packages: ["wabt"],
      check: (root) => check(inside(root)),
      say,
    });
    return at(inside(folder));
  } catch (error) {
    const message = `wasm2c of wabt ${VERSION} is not installed, and can't be unpacked: ${error.message}`;
    throw error instanceof Unavailable ? new Unavailable(message) : new Error(message);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runScript((say) => wabt({ say }));
