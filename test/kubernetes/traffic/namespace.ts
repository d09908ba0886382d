import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Compiled by the build: what runs in a namespace is a program of its own. */
const SCENARIOS = fileURLToPath(new URL("../../../dist/test/kubernetes/traffic/", import.meta.url));
const SETUP = 'ip link set lo up && ip route add local 10.0.0.0/8 dev lo && exec "$0" "$@"';

/** How a network namespace is made here, or undefined, after the reason was printed, where it can't be. */
export function namespaceCommand(): string[] | undefined {
  const ways = [
    ["unshare", "-n"],
    ["unshare", "-rn"],
  ];
  for (const way of ways) {
    const [command, ...args] = [...way, "sh", "-c", SETUP, "true"];
    if (spawnSync(command, args).status === 0) return way;
  }
  console.error("no network namespace can be made (unshare, ip), so endpoints with cluster addresses are not tested");
  return undefined;
}

/** Runs a scenario where every address 10.x.x.x is this machine, and returns what it observed. */
export function runScenario(way: readonly string[], name: string, ...args: string[]): Promise<unknown> {
  return runProgram(way, `${SCENARIOS}${name}.js`, args);
}

/** Runs a program of Node in such a namespace, and returns the JSON that it prints. `onError` is shown its other output. */
export async function runProgram(
  way: readonly string[],
  program: string,
  args: readonly string[],
  onError: (text: string) => void = () => undefined,
): Promise<unknown> {
  const [command, ...rest] = [...way, "sh", "-c", SETUP, process.execPath, program, ...args];
  const child = spawn(command, rest, { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    onError(text);
  });
  const status = await new Promise((resolve) => child.on("close", resolve));
  if (status !== 0) throw new Error(`the scenario ended with ${status}: ${stderr.slice(-3000)}`);
  return JSON.parse(stdout);
}
