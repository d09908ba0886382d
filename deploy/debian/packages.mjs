// Debian's packages, downloaded and unpacked into the cache folder. Nothing is installed, and no root is needed.
// Plain JavaScript, so that it can run before anything is compiled.
import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { withLock } from "./lock.mjs";

const exec = promisify(execFile);

/** Exit status of the scripts here where this system can't have the packages at all. */
export const UNAVAILABLE = 3;

/** What is asked for can't be had on this system; the message says why. */
export class Unavailable extends Error {
  name = "Unavailable";
}

/** The folder in which everything is kept that is made once. */
export function cacheFolder() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "njet-kic");
}

function release() {
  const text = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  const field = (name) => new RegExp(`^${name}="?([^"\n]*)`, "m").exec(text)?.[1] ?? "";
  return `${field("ID")} ${field("VERSION_ID")} ${process.arch}`;
}

function has(program) {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
}

async function run(program, args, cwd) {
  try {
    const env = { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" };
    return (await exec(program, args, { cwd, env, maxBuffer: 1 << 26 })).stdout;
  } catch (error) {
    const command = `${program} ${args.find((word) => /^[a-z]/.test(word)) ?? args[0]}`;
    throw new Error(`${command} failed: ${complaint(String(error.stderr || error.message))}`);
  }
}

/** What went wrong, on one line: apt's first errors, which it marks, or the last line. */
function complaint(text) {
  const lines = text.trim().split("\n");
  const errors = lines.filter((line) => line.startsWith("E: ")).map((line) => line.slice(3));
  return (errors.length > 0 ? errors.slice(0, 2) : lines.slice(-1)).join("; ");
}

function makeCache() {
  try {
    mkdirSync(cacheFolder(), { recursive: true });
  } catch (error) {
    throw new Error(
      `the cache folder ${cacheFolder()} can't be made (${error.code}); XDG_CACHE_HOME names another place`,
    );
  }
}

/** Options for apt by which it keeps lists of packages of its own, so that no root is needed to update them. */
function privateLists(folder) {
  const state = join(folder, "apt", "state");
  const cache = join(folder, "apt", "cache");
  for (const path of [join(state, "lists", "partial"), join(cache, "archives", "partial")]) {
    mkdirSync(path, { recursive: true });
  }
  const options = { "Dir::State": state, "Dir::Cache": cache, "Dir::State::status": "/var/lib/dpkg/status" };
  return Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

/** The packages, and those that they need and that this system does not have. */
async function resolve(packages, options) {
  const plan = await run("apt-get", [...options, "--simulate", "--no-install-recommends", "install", ...packages]);
  const needed = [...plan.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name);
  return [...new Set([...packages, ...needed])].sort();
}

async function download(packages, folder, say) {
  let options = [];
  let names;
  try {
    names = await resolve(packages, options);
  } catch {
    say("updating lists of packages, in the cache folder");
    options = privateLists(folder);
    await run("apt-get", [...options, "update"]);
    names = await resolve(packages, options);
  }
  say(`downloading ${names.join(", ")}`);
  await run("apt-get", [...options, "download", ...names], folder);
}

/**
 * Unpacks `packages`, and what they need beyond this system, into a folder of the cache whose name begins with `name`;
 * once, as long as neither the list nor the release of the system changes. Answers the folder. `check(folder)` throws where
 * what was unpacked does not work. Throws Unavailable on a system without apt or dpkg.
 */
export async function unpackPackages({ name, packages, check, say }) {
  const key = createHash("sha256")
    .update(`1 ${release()} ${packages.join(" ")}`)
    .digest("hex")
    .slice(0, 12);
  const folder = join(cacheFolder(), `${name}-${key}`);
  const done = () => existsSync(folder);
  if (done()) return folder;
  const missing = ["apt-get", "dpkg"].filter((program) => !has(program));
  if (missing.length > 0) throw new Unavailable(`${missing.join(" and ")} not found: this is no Debian`);
  makeCache();
  await withLock(`${folder}.lock`, done, async () => {
    const part = mkdtempSync(`${folder}.part-`);
    try {
      await download(packages, part, say);
      const unpacked = join(part, "unpacked");
      const archives = readdirSync(part).filter((file) => file.endsWith(".deb"));
      for (const file of archives) await run("dpkg", ["--extract", join(part, file), unpacked]);
      writeFileSync(join(unpacked, "packages.txt"), `${archives.sort().join("\n")}\n`);
      await check(unpacked);
      renameSync(unpacked, folder);
    } finally {
      rmSync(part, { recursive: true, force: true });
    }
  });
  return folder;
}

/** Folders with shared libraries under a folder that packages were unpacked into. */
export function libraryFolders(root) {
  return ["usr/lib", "lib"]
    .map((path) => join(root, path))
    .filter(existsSync)
    .flatMap((path) => readdirSync(path, { recursive: true, encoding: "utf8" }).map((file) => join(path, file)))
    .filter((file) => /^lib.*\.so(\.\d+)*$/.test(file.split("/").pop()))
    .map((file) => file.slice(0, file.lastIndexOf("/")))
    .filter((folder, index, all) => all.indexOf(folder) === index);
}

/** Runs a script: prints what `main` answers as JSON on standard output; exit status 0, 1 or UNAVAILABLE. */
export async function runScript(main) {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => process.exit(1));
  try {
    console.log(JSON.stringify(await main((text) => console.error(text)), undefined, 2));
  } catch (error) {
    console.error(error.message);
    process.exitCode = error instanceof Unavailable ? UNAVAILABLE : 1;
  }
}
