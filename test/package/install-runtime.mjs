// A runtime of JavaScript, by the package of npm that holds its program for this machine, in the cache folder.
//   node test/package/install-runtime.mjs deno | bun | workerd
// Prints {binary} as JSON. Exit status: 0; 3 where there is none for this machine, or npm can't get it; 1.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../../deploy/debian/lock.mjs";
import { cacheFolder, runScript, Unavailable } from "../../deploy/debian/packages.mjs";

/** By runtime: version, path of the program, and the package for each machine. */
const RUNTIMES = {
  deno: {
    version: "2.9.6",
    program: "deno",
    packages: { "linux x64": "@deno/linux-x64-glibc", "linux arm64": "@deno/linux-arm64-glibc" },
  },
  bun: {
    version: "1.4.5",
    program: "bin/bun",
    packages: { "linux x64": "@oven/bun-linux-x64", "linux arm64": "@oven/bun-linux-aarch64" },
  },
  workerd: {
    version: "1.20261117.1",
    program: "bin/workerd",
    packages: { "linux x64": "@cloudflare/workerd-linux-64", "linux arm64": "@cloudflare/workerd-linux-arm64" },
  },
};

function starts(binary) {
  return existsSync(binary) && spawnSync(binary, ["--version"], { stdio: "ignore" }).status === 0;
}

await runScript(async (say) => {
  const name = process.argv[2];
  const runtime = RUNTIMES[name];
  if (!runtime) throw new Error(`usage: node test/package/install-runtime.mjs ${Object.keys(RUNTIMES).join(" | ")}`);
  const machine = `${process.platform} ${process.arch}`;
  const packageName = runtime.packages[machine];
  if (!packageName) throw new Unavailable(`no program of ${name} is known for ${machine}`);
  const folder = join(cacheFolder(), `${name}-${runtime.version}`);
  const binary = join(folder, "node_modules", packageName, runtime.program);
  const done = () => existsSync(folder);
  if (!done()) {
    mkdirSync(cacheFolder(), { recursive: true });
    await withLock(`${folder}.lock`, done, () => {
      const part = mkdtempSync(`${folder}.part-`);
      try {
        say(`installing ${name} ${runtime.version} into the cache folder`);
        const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", part];
        execFileSync("npm", ["install", ...options, `${packageName}@${runtime.version}`], { stdio: "pipe" });
        renameSync(part, folder);
      } catch (error) {
        throw new Unavailable(`${name} can't be had from npm: ${String(error.stderr || error.message).slice(-500)}`);
      } finally {
        rmSync(part, { recursive: true, force: true });
      }
    });
  }
  if (!starts(binary)) throw new Unavailable(`${name} does not start on this machine`);
  return { binary };
});
