import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ProbeProcessSettings } from "./probe-process.js";

/** Where the built file lies: beside this one, or in dist/ when the sources themselves are run. */
const PLACES = ["./probe-process.js", "../../dist/controller/health/probe-process.js"];
/** How long a process may take to begin. */
const START_TIME = 15_000;
/** How long it may take to end when it is asked to. */
const END_TIME = 2_000;
/** What it says on standard error is for the log; a broken one must not fill it. */
const MOST_LINES = 50;
const MOST_LINE = 500;

/** The probe process as a child of ours. */
export class ProbeChild {
  /** Resolves with exit status or signal, once it is reaped. */
  readonly exited: Promise<string>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.exited = new Promise((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (status, signal) => resolve(signal ?? `status ${status}`));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /**
   * Starts a process; resolves when it listens, rejects with an Error when it does not come to that. It gets what it needs
   * over its standard input, which nobody else can read, and nothing of our environment.
   */
  static async start(settings: ProbeProcessSettings, onLine: (line: string) => void): Promise<ProbeChild> {
    const file = PLACES.map((place) => fileURLToPath(new URL(place, import.meta.url))).find((path) => existsSync(path));
    if (file === undefined) throw new Error("the probe process is missing: run npm run build");
    // A session of its own: a Ctrl-C in the terminal is for the controller.
    const child = spawn(process.execPath, [file], { stdio: ["pipe", "pipe", "pipe"], detached: true, env: {} });
    const started = new ProbeChild(child);
    const { stdin, stdout, stderr } = child;
    stdin.on("error", () => undefined);
    stdin.end(JSON.stringify(settings));
    let lines = 0;
    createInterface({ input: stderr }).on("line", (line) => {
      if (++lines <= MOST_LINES) onLine(line.slice(0, MOST_LINE));
    });
    try {
      await listening(started, stdout);
    } catch (error) {
      await started.kill();
      throw error;
    }
    // It may outlive us, and does not keep us.
    for (const stream of [stdout, stderr]) (stream as unknown as { unref(): void }).unref();
    child.unref();
    return started;
  }

  /** Asks it to end, and makes it end where it does not; resolves when it is gone. */
  async stop(): Promise<void> {
    this.#child.ref();
    this.#child.kill("SIGTERM");
    const late = setTimeout(() => this.#child.kill("SIGKILL"), END_TIME);
    await this.exited;
    clearTimeout(late);
  }

  async kill(): Promise<void> {
    this.#child.ref();
    this.#child.kill("SIGKILL");
    await this.exited;
  }
}

async function listening(child: ProbeChild, stdout: NodeJS.ReadableStream): Promise<void> {
  let late: NodeJS.Timeout | undefined;
  const said = new Promise<void>((resolve) => {
    stdout.once("data", () => resolve());
  });
  const timeUp = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error("the probe process does not begin")), START_TIME);
  });
  const gone = child.exited.then((how) => {
    throw new Error(`the probe process ended while it began: ${how}`);
  });
  try {
    await Promise.race([said, gone, timeUp]);
  } finally {
    clearTimeout(late);
    gone.catch(() => undefined);
  }
}
