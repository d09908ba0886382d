/** The proxies that are compared, each as processes of its own on a port of loopback. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, type Logger } from "../../controller/observability/logger.js";
import { ownNginx } from "../../controller/proxies/nginx/make-nginx.js";
import { findNginx } from "../../controller/proxies/nginx/parts.js";
import type { ImageCompiler } from "../../controller/proxies/nginx/plan-pieces.js";
import type { Proxy as DrivenProxy } from "../../controller/proxies/proxy.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { makeRoutingTable } from "../../test/support/core.js";
import { closedPort } from "../../test/support/peers.js";
import { treeOf } from "./processes.js";
import type { StaticOptions } from "./static-configuration.js";

export interface Contestant {
  readonly port: number;
  /** Everything that serves. */
  pids(): number[];
  close(): Promise<void>;
}

/** MiB of shared memory for the state: what the command has by default. */
const STATE_SIZE = 256;

export function temporaryFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "njet-kic-bench-")));
}

/** A program that runs until it is closed. */
export class Running implements Contestant {
  /** When it was started, by `performance.now()`. */
  readonly since = performance.now();
  private ended = false;
  private said = "";

  private constructor(
    private readonly child: ChildProcess,
    readonly folder: string,
    readonly port: number,
  ) {}

  static start(
    folder: string,
    port: number,
    binary: string,
    args: readonly string[],
    env: Record<string, string> = {},
  ) {
    const child = spawn(binary, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
    const running = new Running(child, folder, port);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      running.said = (running.said + text).slice(-4_000);
    });
    child.once("error", (error) => {
      running.said = error.message;
      running.ended = true;
    });
    child.once("exit", () => {
      running.ended = true;
    });
    return running;
  }

  /** Resolves when there is an answer to a request, whatever it is; rejects when the program ends, or after two minutes. */
  async answering(address = "127.0.0.1"): Promise<this> {
    for (let tries = 0; tries < 6_000 && !this.ended; tries++) {
      if (await accepts(address, this.port)) return this;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await this.close();
    throw new Error(`a program of the benchmark does not serve: ${this.said}`);
  }

  get pid(): number {
    return this.child.pid as number;
  }

  pids(): number[] {
    return treeOf(this.pid);
  }

  async close(): Promise<void> {
    if (!this.ended) {
      const gone = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill("SIGTERM");
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** An NGINX with a configuration that is written by hand; the same program as ours, without the Lua module. */
export async function staticNginx(
  workers: number,
  textOf: (options: StaticOptions) => string,
  address?: string,
): Promise<Running> {
  const { binary, env } = await findNginx();
  const folder = temporaryFolder();
  const port = await closedPort();
  const file = join(folder, "nginx.conf");
  writeFileSync(file, textOf({ folder, workers, port }));
  const running = Running.start(folder, port, binary, ["-p", folder, "-e", "stderr", "-c", file], env);
  return running.answering(address);
}

function accepts(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, address);
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** A proxy of ours that drives a program which serves. */
export interface DrivableProxy extends DrivenProxy {
  listen(): Promise<void>;
  addresses(): { http: { port: number } | undefined };
}

export interface DrivingContext {
  compiler: ImageCompiler;
  logger: Logger;
}

/** What every proxy of ours is made with here. */
export const OUR_OPTIONS = {
  ...{ stateSize: STATE_SIZE, trustedProxies: [], proxyProtocol: false },
  http: { address: "127.0.0.1", port: 0 },
  https: { address: "127.0.0.1", port: 0 },
  ...{ accessLog: false, defaultCertificate: undefined, runDir: undefined, drainTime: 1_000, version: "bench" },
};

/** A program that is driven as `njet-kic run` does. What drives it is this process, and not counted. */
export class Driven implements Contestant {
  private generation = 0;

  private constructor(
    private readonly proxy: DrivableProxy,
    readonly port: number,
    private readonly master: number,
  ) {}

  /** Starts what `make` gives, with these steps in force. */
  static async start(
    make: (context: DrivingContext) => Promise<DrivableProxy>,
    steps: readonly PlanStep[],
  ): Promise<Driven> {
    const before = new Set(treeOf(process.pid));
    const logger = createLogger({
      sink: { write: (line) => process.stderr.write(`${line}\n`) },
      level: "error",
      now: Date.now,
    });
    const proxy = await make({ compiler: makeRoutingTable(), logger });
    await proxy.listen();
    const master = treeOf(process.pid).find((pid) => !before.has(pid));
    if (master === undefined) throw new Error("a program was started, and is not there");
    const driven = new Driven(proxy, proxy.addresses().http?.port ?? 0, master);
    await driven.apply(steps, true);
    await proxy.complete?.();
    return driven;
  }

  /** Resolves when all workers have acknowledged. */
  async apply(steps: readonly PlanStep[], full = false): Promise<void> {
    const { failures } = await this.proxy.apply({ generation: `${++this.generation}-bench`, full, steps: [...steps] });
    if (failures.length > 0) throw new Error(`refused: ${JSON.stringify(failures[0])}`);
  }

  pids(): number[] {
    return treeOf(this.master);
  }

  close(): Promise<void> {
    return this.proxy.close(1_000);
  }
}

/** Our NGINX, as `njet-kic run --proxy nginx` has it. */
export function ourNginx(workers: number, steps: readonly PlanStep[]): Promise<Driven> {
  return Driven.start((context) => ownNginx(context, { ...OUR_OPTIONS, binary: undefined, workers }), steps);
}
