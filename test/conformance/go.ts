import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";

/** The sources of the Go module over wazero; the compiled tree (dist) has none of them. */
export const GO_MODULE = join(PACKAGE_ROOT ?? "", "core-wasm/hosts/go/");

/** Oldest Go that the module builds with. */
const OLDEST = [1, 25] as const;

/** The go program on PATH, or why it can't be used. */
export function findGo(): { go: string } | { skipped: string } {
  for (const go of ["go", "/usr/local/go/bin/go"]) {
    const { status, stdout } = spawnSync(go, ["env", "GOVERSION"], { encoding: "utf8" });
    const found = /^go(\d+)\.(\d+)/.exec(stdout ?? "");
    if (status !== 0 || !found) continue;
    const [major, minor] = [Number(found[1]), Number(found[2])];
    if (major > OLDEST[0] || minor >= OLDEST[1]) return { go };
    return { skipped: `Go ${OLDEST.join(".")} or newer is needed; this is ${stdout.trim()}` };
  }
  return { skipped: "Go is not installed" };
}

/** Environment of go: what the files of the module pin, and nothing of the user's workspace. */
export function goEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, GOFLAGS: "-mod=readonly -buildvcs=false", GOWORK: "off", GOTOOLCHAIN: "local" };
}

/** What go says where the network is away. */
const UNREACHABLE =
  /dial tcp|no such host|i\/o timeout|connection refused|network is unreachable|TLS handshake timeout/;

/** Go with the modules that the module needs, downloaded once; or why they can't be had. Rejects for any other failure. */
export async function readyGo(): Promise<{ go: string } | { skipped: string }> {
  const found = findGo();
  if ("skipped" in found) return found;
  try {
    await runGo(found.go, ["mod", "download"]);
    return found;
  } catch (error) {
    const { message } = error as Error;
    if (UNREACHABLE.test(message)) return { skipped: "the modules that it needs can't be downloaded" };
    throw error;
  }
}

/** Runs go in the module; resolves with its standard output. Rejects with what it said. */
export async function runGo(go: string, args: readonly string[]): Promise<string> {
  const options = { cwd: GO_MODULE, env: goEnvironment(), encoding: "latin1", maxBuffer: 2 ** 28 } as const;
  try {
    return (await promisify(execFile)(go, args, options)).stdout;
  } catch (error) {
    const { stdout = "", stderr = "", message } = error as { stdout?: string; stderr?: string; message: string };
    throw new Error(`go ${args.join(" ")}: ${`${stdout}${stderr}`.slice(-8000) || message}`);
  }
}
