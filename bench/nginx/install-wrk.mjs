// wrk: the installed one, or Debian's package unpacked into the cache folder.
//   node bench/nginx/install-wrk.mjs
// Prints {binary, env} as JSON: the program, and what its environment must hold. Exit status: 0; 3 it can't be had; 1.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { libraryFolders, runScript, unpackPackages } from "../../deploy/debian/packages.mjs";

/** True if the program starts; wrk ends with status 1 where it has nothing to do but to tell its version. */
function starts({ binary, env }) {
  return /^wrk /.test(spawnSync(binary, ["-v"], { encoding: "utf8", env: { ...process.env, ...env } }).stdout ?? "");
}

function inside(root) {
  return { binary: join(root, "usr/bin/wrk"), env: { LD_LIBRARY_PATH: libraryFolders(root).join(":") } };
}

function check(root) {
  if (!starts(inside(root))) throw new Error("wrk does not start");
}

await runScript(async (say) => {
  const installed = { binary: "wrk", env: {} };
  if (starts(installed)) return installed;
  return inside(await unpackPackages({ name: "wrk", packages: ["wrk"], check, say }));
});
