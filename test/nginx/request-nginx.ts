/** A real NGINX with the whole balancer, its state given as plans. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nginxConfiguration } from "../../controller/proxies/nginx/configuration.js";
import type { NginxConfigurationOptions } from "../../controller/proxies/nginx/configuration-options.js";
import { ControlClient } from "../../controller/proxies/nginx/control-client.js";
import type { NginxInstallation } from "../../controller/proxies/nginx/parts.js";
import { nativeCore, PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import type { Piece } from "../../controller/proxies/nginx/piece.js";
import { peerStatesPiece, pieceOfStep } from "../../controller/proxies/nginx/plan-pieces.js";
import { customaryUser, userDatabase } from "../../controller/proxies/nginx/worker-user.js";
import type { PeerStateChange } from "../../controller/proxies/proxy.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { makeCertificate } from "../support/certificates.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanup, eventually } from "../support/harness.js";
import { closedPort } from "../support/peers.js";
import { installation, OVER_OPENNJET } from "./installation.js";

/** A server that understands the configuration of NGINX: which, and how it is started. */
export interface Flavour {
  installation(): Promise<Pick<NginxInstallation, "binary" | "env" | "luaPath" | "luaCPath"> & { modules: string[] }>;
  /** Text of its configuration; `folder` is its own, for what else it needs. */
  configuration(options: NginxConfigurationOptions, folder: string): string;
}

const DEFAULT: Flavour = OVER_OPENNJET
  ? (await import("../opennjet/real-installation.js")).OPENNJET
  : { installation, configuration: nginxConfiguration };

export type RequestNginxOptions = Partial<NginxConfigurationOptions> & {
  flavour?: Flavour;
  /** Images are compiled by it. */
  compiler?: ReturnType<typeof makeRoutingTable>;
  /** What the text of the configuration becomes. */
  edit?(text: string): string;
};

export class RequestNginx {
  readonly folder = mkdtempSync(join(tmpdir(), "njet-kic-proxy-"));
  /** Workers can get into it that are somebody else. */
  readonly temp = mkdtempSync(join(tmpdir(), "njet-kic-temp-"));
  readonly client: ControlClient;
  private readonly errorLogFile = join(this.folder, "logs", "error.log");
  readonly controlSocket = join(this.folder, "control.sock");
  readonly compiler: ReturnType<typeof makeRoutingTable>;
  http = 0;
  https = 0;
  readonly token = randomBytes(32).toString("hex");
  private child: ChildProcess | undefined;
  private spawn: (() => ChildProcess) | undefined;
  private generation = 0;

  private constructor(compiler: ReturnType<typeof makeRoutingTable>) {
    this.compiler = compiler;
    this.client = new ControlClient(this.controlSocket, this.token);
    chmodSync(this.temp, 0o711);
    writeFileSync(join(this.folder, "token"), this.token, { mode: 0o600 });
  }

  /** An NGINX on free loopback ports with `steps` applied; closed after the test. */
  static async start(steps: readonly PlanStep[], options: RequestNginxOptions = {}): Promise<RequestNginx> {
    const nginx = new RequestNginx(options.compiler ?? makeRoutingTable());
    cleanup(() => nginx.close());
    // Somebody else may have taken a free port in between.
    for (let tries = 1; !(await nginx.open(options)); tries++) {
      if (tries === 5) throw new Error(`NGINX does not answer: ${nginx.errorLog()}`);
    }
    await nginx.apply(...steps);
    return nginx;
  }

  /** False if it did not start. */
  private async open({
    compiler,
    flavour = DEFAULT,
    edit = (text) => text,
    ...options
  }: RequestNginxOptions): Promise<boolean> {
    const { binary, env, modules, luaPath, luaCPath } = await flavour.installation();
    const { folder } = this;
    const pair = makeCertificate("default", "default.example.com");
    const certificate = { chain: join(folder, "default.pem"), key: join(folder, "default.key") };
    writeFileSync(certificate.chain, pair.chain);
    writeFileSync(certificate.key, pair.key, { mode: 0o600 });
    this.http = await closedPort();
    this.https = await closedPort();
    mkdirSync(join(folder, "logs"), { recursive: true });
    const configured = {
      ...{ modules, luaPath, luaCPath, packageRoot: PACKAGE_ROOT ?? "", library: await nativeCore() },
      ...{ runDirectory: folder, controlSocket: join(folder, "control.sock"), tokenFile: join(folder, "token") },
      journalFile: join(folder, "state.journal"),
      http: { address: "127.0.0.1", port: this.http },
      https: { address: "127.0.0.1", port: this.https },
      defaultCertificate: certificate,
      ...{ workers: 1, connections: 1024, trustedProxies: [], proxyProtocol: false, allowUnderscoreHeaders: false },
      ...(process.getuid?.() === 0 ? { user: customaryUser(userDatabase()) } : {}),
      tempDirectory: this.temp,
      accessLog: join(folder, "access.log"),
      ...{
        errorLog: this.errorLogFile,
        errorLevel: "info" as const,
        bodyLimit: 0,
        stateSize: 32,
        shutdownTimeout: 5000,
      },
      ...options,
    };
    writeFileSync(join(folder, "nginx.conf"), edit(flavour.configuration(configured, folder)));
    const arguments_ = ["-p", folder, "-e", this.errorLogFile, "-c", join(folder, "nginx.conf")];
    this.spawn = () => spawn(binary, arguments_, { env: { ...process.env, ...env }, stdio: "inherit" });
    return this.launch();
  }

  /** Ends NGINX, and starts it anew with the same configuration; `between` while there is none. */
  async restart(between: () => void = () => undefined): Promise<void> {
    await this.end();
    between();
    if (!(await this.launch())) throw new Error(`NGINX does not answer: ${this.errorLog()}`);
  }

  /** False if it does not answer. */
  private async launch(): Promise<boolean> {
    const child = this.spawn?.();
    this.child = child;
    let answers = false;
    for (let tries = 0; tries < 1000 && child?.exitCode === null && !answers; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      // Its own socket, not the port: that could be another NGINX's, which was faster.
      answers = await this.client.state().then(
        () => true,
        () => false,
      );
    }
    return answers;
  }

  /** Applies steps; throws where a piece is refused. */
  async apply(...steps: PlanStep[]): Promise<void> {
    await this.send(steps.map((step) => pieceOfStep(step, this.compiler)));
  }

  async setPeerStates(upstream: string, states: readonly PeerStateChange[]): Promise<void> {
    await this.send([peerStatesPiece(upstream, states)]);
  }

  async send(pieces: readonly Piece[]): Promise<void> {
    if (pieces.length === 0) return;
    const answer = await this.client.post(pieces, { generation: `${++this.generation}-test` });
    if (answer.failures.length > 0) throw new Error(JSON.stringify(answer.failures));
    if (answer.late.length > 0) throw new Error(`workers are late: ${answer.late}`);
  }

  /** Has NGINX read its configuration anew, with new workers; comes back when the old ones take no more requests. */
  async reload(): Promise<void> {
    const pids = async () => (await this.client.state()).workers.map(({ pid }) => pid);
    const before = await pids();
    this.child?.kill("SIGHUP");
    // A kept connection may end with the old worker that has it.
    const now = () => pids().catch(() => before);
    while ((await now()).some((pid) => before.includes(pid))) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  errorLog(): string {
    return readFileSync(this.errorLogFile, "utf8");
  }

  /** Lines of the access log, parsed. */
  accessLog(): Record<string, unknown>[] {
    const text = readFileSync(join(this.folder, "access.log"), "utf8");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  }

  /** The whole access log, once it has `count` lines. */
  async logLines(count: number): Promise<Record<string, unknown>[]> {
    await eventually(() => this.accessLog().length >= count);
    return this.accessLog();
  }

  /** Lines of the access log for requests to `host`, once there are `count` of them. */
  async logged(host: string, count: number): Promise<Record<string, unknown>[]> {
    const found = () => this.accessLog().filter((line) => line.host === host);
    await eventually(() => found().length >= count);
    return found();
  }

  private async end(): Promise<void> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await gone;
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.end();
    if (process.env.KEEP_NGINX !== undefined) return;
    for (const folder of [this.folder, this.temp]) rmSync(folder, { recursive: true, force: true });
  }
}
