// Builds etcd, kube-apiserver, kubectl and, if asked for, kube-controller-manager from Go modules, once for each
// version, into the cache folder. Plain JavaScript, so that it can run before anything is installed or compiled:
//   node test/real/kube/build.mjs [etcd kube-apiserver kubectl kube-controller-manager]
// Prints the folders with the programs on standard output, one a line, progress on standard error.
// Exit status: 0 built, 3 there is no Go, 1 the build failed.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const VERSION = "v1.37.2";
/** kubectl has a module of its own, so that neither it nor what it needs has the API server built again. */
const MODULES = [
  {
    name: "kube",
    folder: here,
    packages: {
      etcd: "go.etcd.io/etcd/server/v3",
      "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
      "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
  },
  { name: "kubectl", folder: join(here, "kubectl"), packages: { kubectl: "k8s.io/kubernetes/cmd/kubectl" } },
];
const NO_GO = 3;
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "njet-kic");

/** Where the programs of a module are kept: for each version of it, and of whatever it is built from, a folder. */
function programsOf({ name, folder }) {
  const sums = createHash("sha256").update(readFileSync(join(folder, "go.sum")));
  return join(cache, `${name}-${VERSION}-${sums.digest("hex").slice(0, 8)}`);
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : ["etcd", "kube-apiserver", "kubectl"];
const known = MODULES.flatMap(({ packages }) => Object.keys(packages));
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`${unknown.join(", ")}: one of ${known.join(", ")} is built here`);
  process.exit(1);
}

/** What is to be built of each module. */
const targets = MODULES.map((module) => ({
  module,
  programs: programsOf(module),
  lock: join(programsOf(module), "lock"),
  names: wanted.filter((name) => name in module.packages),
})).filter(({ names }) => names.length > 0);
const missing = ({ programs, names }) => names.filter((name) => !existsSync(join(programs, name)));

/** The one that holds the lock, or undefined if it is free or its holder is gone. */
function holder(lock) {
  try {
    const pid = Number(readFileSync(lock, "utf8"));
    // A lock that was just made is not yet written.
    if (!Number.isInteger(pid) || pid <= 0) return Date.now() - statSync(lock).mtimeMs < 10_000 ? 1 : undefined;
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    return error.code === "EPERM" ? 1 : undefined;
  }
}

function takeLock(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    if (holder(lock) === undefined) rmSync(lock, { force: true });
    return false;
  }
}

/** Flags as the Kubernetes release sets them. */
function linkerFlags() {
  const variable = "k8s.io/component-base/version";
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(VERSION);
  const values = {
    gitVersion: VERSION,
    gitMajor: major,
    gitMinor: minor,
    gitCommit: "test",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
  };
  return ["-s", "-w", ...Object.entries(values).map(([name, value]) => `-X ${variable}.${name}=${value}`)].join(" ");
}

/** Builds one program beside its final place and renames it: what stands there is whole. */
async function build({ module, programs }, name) {
  const part = join(programs, `${name}.part`);
  const begun = Date.now();
  const args = ["build", "-v", "-trimpath", `-ldflags=${linkerFlags()}`, "-o", part, module.packages[name]];
  // Other work goes first: this may take ten minutes of processor time.
  const nice = process.platform === "win32" ? ["go", args] : ["nice", ["-n", "15", "go", ...args]];
  const child = spawn(...nice, {
    cwd: module.folder,
    env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-mod=readonly", GOWORK: "off" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let packages = 0;
  let last = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    packages += text.split("\n").length - 1;
    last = (last + text).slice(-4000);
  });
  const say = () => {
    const seconds = Math.round((Date.now() - begun) / 1000);
    console.error(`building ${name} ${VERSION} (once; kept in the cache): ${packages} packages, ${seconds} s`);
  };
  const timer = setInterval(say, 15_000);
  const stop = () => child.kill();
  process.once("exit", stop);
  const status = await new Promise((resolve) => {
    child.on("error", () => resolve(-1));
    child.on("close", resolve);
  });
  process.removeListener("exit", stop);
  clearInterval(timer);
  say();
  if (status !== 0) throw new Error(`go build of ${name} failed:\n${last}`);
  renameSync(part, join(programs, name));
}

async function buildMissing(target) {
  mkdirSync(target.programs, { recursive: true });
  for (let waited = 0; !takeLock(target.lock); waited += 1) {
    if (waited % 30 === 0) console.error(`waiting for another build of ${missing(target).join(", ")}`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (missing(target).length === 0) return;
  }
  try {
    for (const name of missing(target)) await build(target, name);
  } finally {
    rmSync(target.lock, { force: true });
  }
}

async function main() {
  const incomplete = targets.filter((target) => missing(target).length > 0);
  if (incomplete.length === 0) return 0;
  const go = spawnSync("go", ["version"], { encoding: "utf8" });
  if (go.status !== 0) {
    console.error("Go is not installed, so the programs of Kubernetes can't be built");
    return NO_GO;
  }
  for (const target of incomplete) await buildMissing(target);
  return 0;
}

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => {
    for (const { lock } of targets) {
      if (existsSync(lock) && readFileSync(lock, "utf8") === String(process.pid)) rmSync(lock, { force: true });
    }
    process.exit(1);
  });
}
try {
  process.exitCode = await main();
  if (process.exitCode === 0) for (const { programs } of targets) console.log(programs);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
