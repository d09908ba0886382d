import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cleanup } from "../support/harness.js";

/** Top folder of the project, with a slash at its end. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const CLI = join(ROOT, "dist/controller/cli/main.js");
if (!existsSync(CLI)) throw new Error("the command is not built: npm run build");

export interface Finished {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a command to its end. `input` is its standard input. */
export async function runCli(args: readonly string[], input = ""): Promise<Finished> {
  const child = new Child(CLI, args);
  child.process.stdin.end(input);
  return child.ended;
}

/** A child process with what it wrote so far. */
export class Child {
  readonly process: ChildProcessWithoutNullStreams;
  stdout = "";
  stderr = "";
  readonly ended: Promise<Finished>;

  /** `through`: a command that runs the command given to it. */
  constructor(
    script: string,
    args: readonly string[],
    { env = process.env, through = [] }: { env?: NodeJS.ProcessEnv; through?: readonly string[] } = {},
  ) {
    const [command = process.execPath, ...rest] = [...through, process.execPath, script, ...args];
    this.process = spawn(command, rest, { cwd: ROOT, env });
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    // A child that ends before it has read its input is for the test to judge, by its status.
    this.process.stdin.on("error", () => undefined);
    this.ended = new Promise((resolve, reject) => {
      this.process.on("error", reject);
      this.process.on("close", (status) => resolve({ status, stdout: this.stdout, stderr: this.stderr }));
    });
    cleanup(async () => {
      this.process.kill("SIGKILL");
      await this.ended;
    });
  }

  /** Resolves when `holds` does; rejects when the process ends before, or after half a minute. */
  async until<T>(what: string, holds: () => T | undefined | false): Promise<T> {
    const deadline = performance.now() + 30_000;
    for (;;) {
      const value = holds();
      if (value !== undefined && value !== false) return value;
      if (this.process.exitCode !== null) throw new Error(`the process ended before ${what}: ${this.stderr}`);
      if (performance.now() > deadline) throw new Error(`in vain: ${what}; ${this.stderr.slice(-2000)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Log lines so far, parsed. */
  log(): Record<string, unknown>[] {
    return this.stderr.split("\n").slice(0, -1).map(parseLine);
  }
}

/** Throws with the whole line where it is none of the log: it tells why a command has ended. */
function parseLine(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    throw new Error(`no line of the log: ${line}`);
  }
}

export interface Serving extends Child {
  http: number;
  https: number;
  /** Undefined where `--metrics-port off` is given. */
  metrics: number | undefined;
}

/** `run --config-dir folder` on free ports of loopback; resolves when it serves. */
export async function startRun(folder: string, ...options: string[]): Promise<Serving> {
  const ports = ["--address", "127.0.0.1", "--http-port", "0", "--https-port", "0", "--metrics-port", "0"];
  const child = new Child(CLI, ["run", "--config-dir", folder, ...ports, ...options]);
  const serving = await child.until("it serves", () => child.log().find((line) => line.message === "serving"));
  const { http, https, metrics } = serving as { http: number; https: number; metrics?: number };
  return Object.assign(child, { http, https, metrics });
}

/** A folder of its own for one test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-cli-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a file, whole: a new file takes its name. */
export function put(folder: string, file: string, text: string): void {
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

/** A temporary folder for this test and its children alone: what is in it nobody else has made or taken away. */
export function ownTemporaryFolder(): string {
  const before = process.env.TMPDIR;
  const folder = makeFolder();
  process.env.TMPDIR = folder;
  cleanup(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  return folder;
}
