// Brings a checkout to a state that can run: installs what the lock file names, compiles the core and the TypeScript.
// Does nothing when nothing has changed. Plain JavaScript, because it runs before anything is installed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { linkCore } from "./core-wasm/link/link.mjs";

const root = dirname(fileURLToPath(import.meta.url));
const quiet = process.argv.includes("--quiet");
const force = process.argv.includes("--force");
const SOURCES = ["core-wasm", "controller", "bench", "test"];
const ENVOY_FILTER = "core-wasm/hosts/envoy/asconfig.json";
const SETTINGS = ["package.json", "package-lock.json", "tsconfig.json", "asconfig.json", ENVOY_FILTER];

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`njet-kic needs Node 20.19 or newer; this is ${process.versions.node}`);
  process.exit(1);
}

/** Progress goes to standard error: standard output belongs to the command that follows. */
function say(text) {
  if (!quiet) console.error(text);
}

function run(command, args) {
  const result = spawnSync(command, args, { cwd: root, encoding: "utf8", shell: process.platform === "win32" });
  if (result.status === 0) return;
  console.error(`${command} ${args.join(" ")} failed${result.error ? `: ${result.error.message}` : ""}`);
  console.error(`${result.stdout ?? ""}${result.stderr ?? ""}`);
  process.exit(1);
}

function hash(...contents) {
  const sum = createHash("sha256");
  for (const content of contents) sum.update(content);
  return sum.digest("hex");
}

function sourceFiles(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs|txt)$/.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** True if the stamp at `path` says `value`. */
function stamped(path, value) {
  return existsSync(path) && readFileSync(path, "utf8") === value;
}

function install() {
  const stamp = join(root, "node_modules", ".njet-kic-installed");
  const wanted = hash(readFileSync(join(root, "package-lock.json")));
  if (stamped(stamp, wanted)) return;
  say("installing packages");
  run("npm", ["ci", "--no-audit", "--no-fund"]);
  writeFileSync(stamp, wanted);
}

/**
 * A Go module is fetched from the repository, where nothing is built: so the core stands in the module's folder as a file of the
 * repository, and changes with it.
 */
function copyCore() {
  const folder = join(root, "core-wasm", "hosts", "go");
  if (!existsSync(folder)) return;
  const made = readFileSync(join(root, "dist", "core.wasm"));
  const path = join(folder, "core.wasm");
  if (!existsSync(path) || !readFileSync(path).equals(made)) writeFileSync(path, made);
}

function build() {
  const stamp = join(root, "dist", ".built");
  const files = [...SETTINGS.map((name) => join(root, name)), ...SOURCES.flatMap(sourceFiles)];
  const wanted = hash(...files.flatMap((file) => [file.slice(root.length), readFileSync(file)]));
  if (!force && stamped(stamp, wanted)) return;
  rmSync(join(root, "dist"), { recursive: true, force: true });
  mkdirSync(join(root, "dist"));
  const asc = join("node_modules", "assemblyscript", "bin", "asc.js");
  say("compiling the core");
  run(process.execPath, [asc, "--target", "release"]);
  linkCore();
  copyCore();
  say("compiling the filter of Envoy");
  run(process.execPath, [asc, "--config", ENVOY_FILTER, "--target", "release"]);
  say("compiling TypeScript");
  run(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.json"]);
  writeFileSync(stamp, wanted);
}

install();
build();
