import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../controller/cli/main.js", import.meta.url));
/** Unit of times in /proc/PID/stat: USER_HZ is 100 on every Linux that Node runs on. */
const TICK_SECONDS = 0.01;

/** `njet-kic run` as a process of its own, and what it uses: with whatever processes it starts. */
export class ControllerProcess {
  /** When it was started, by `performance.now()`. */
  readonly started: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #log = "";

  /** `account` has `token`, `ca.crt` and `namespace`, as a pod finds them; `server` is the URL of the API server. */
  constructor(account: string, server: string, httpPort: number) {
    const { hostname, port } = new URL(server);
    const env = { ...process.env, KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
    const options = [
      ["--service-account-dir", account],
      ["--address", "127.0.0.1"],
      ["--http-port", String(httpPort)],
      ["--https-port", "0"],
      ["--metrics-port", "0"],
      ["--publish-status-address", "192.0.2.10"],
      ["--drain-seconds", "1"],
      ["--no-access-log"],
    ].flat();
    this.started = performance.now();
    this.#child = spawn(process.execPath, [MAIN, "run", ...options], { env, stdio: ["ignore", "ignore", "pipe"] });
    this.#ended = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    // Only what is wrong is kept: each change writes a line.
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n")) if (line.includes('"level":"error"')) this.#log += `${line}\n`;
    });
  }

  /** What it has logged as an error; throws if it has ended. */
  get errors(): string {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error(`it ended\n${this.#log}`);
    return this.#log;
  }

  /** Processor time so far, user and system, in seconds. */
  cpu(): number {
    return sum(this.#tree(), (pid) => {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      return (Number(fields[11]) + Number(fields[12])) * TICK_SECONDS;
    });
  }

  /** Resident memory in MB (10^6 bytes). */
  memory(): number {
    return sum(this.#tree(), (pid) => {
      const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
      return (Number(kib) * 1024) / 1e6;
    });
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#ended;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #tree(): number[] {
    const found = [this.#child.pid as number];
    for (const pid of found) {
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        const children = readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").trim();
        if (children !== "") found.push(...children.split(" ").map(Number));
      }
    }
    return found;
  }
}

function sum(pids: readonly number[], figure: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + figure(pid), 0);
}
