/**
 * For programs that run in a network namespace of their own, where every address 10.x.x.x is this machine: a real API server
 * behind a relay that can be cut, `run --proxy nginx`, peers with cluster addresses, and what clients see of all that.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { ControlClient } from "../../../controller/proxies/nginx/control-client.js";
import { NginxFolder } from "../../../controller/proxies/nginx/run-folder.js";
import type { KubeClient, KubeObject } from "../../real/kube/client.js";
import { TestCluster } from "../../real/kube/cluster.js";
import { TcpProxy } from "../../real/kube/tcp-proxy.js";
import { ask } from "../../support/http-client.js";

const MAIN = fileURLToPath(new URL("../../../controller/cli/main.js", import.meta.url));
const DEADLINE = 60_000;
/** Nobody else is in the namespace. */
export const PORTS = { http: 8000, https: 8443, metrics: 12001, peer: 8080 };

/** Resolves when `holds` does; rejects after a minute. */
export async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + DEADLINE;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
}

/** A peer that answers with its own address, sends back what comes over a WebSocket, and is well or not when it is checked. */
export class Peer {
  healthy = true;
  served = 0;

  private constructor(readonly address: string) {}

  static async open(address: string): Promise<Peer> {
    const peer = new Peer(address);
    const server = createServer((request, response) => {
      request.resume();
      if (request.url === "/health") {
        response.writeHead(peer.healthy ? 200 : 500).end();
        return;
      }
      peer.served++;
      response.end(address);
    });
    server.on("upgrade", (_request, socket: Duplex) => {
      socket.on("error", () => undefined);
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello");
      socket.on("data", (chunk: Buffer) => socket.write(chunk));
    });
    await new Promise<void>((resolve) => server.listen(PORTS.peer, address, resolve));
    return peer;
  }
}

export class Stage {
  admin: KubeClient;
  private child: ChildProcess | undefined;
  private log = "";
  private readonly control: () => ControlClient;

  private constructor(
    readonly cluster: TestCluster,
    /** Stands between the controller and the API server. */
    readonly relay: TcpProxy,
    private readonly kubeconfig: string,
    private readonly runDir: string,
  ) {
    this.admin = cluster.admin;
    this.control = () => {
      const { socket, token } = NginxFolder.of(join(runDir, "nginx", "control.sock"));
      return new ControlClient(socket, token);
    };
  }

  static async open(programs: string): Promise<Stage> {
    const cluster = await TestCluster.start(programs);
    const relay = await TcpProxy.start(cluster.port);
    const runDir = mkdtempSync(join(tmpdir(), "njet-kic-stage-"));
    return new Stage(cluster, relay, cluster.kubeconfig("admin", relay.server), runDir);
  }

  async close(): Promise<void> {
    this.child?.kill("SIGKILL");
    const nginx = await this.nginx().catch(() => undefined);
    if (nginx !== undefined) process.kill(nginx.master, "SIGTERM");
    await this.relay.close();
    await this.cluster.stop();
    rmSync(this.runDir, { recursive: true, force: true });
  }

  /** Starts the command. */
  startController(): void {
    this.log = "";
    const options = [
      ...["--proxy=nginx", "--nginx-workers=2", `--run-dir=${this.runDir}`, "--no-access-log", "--address=127.0.0.1"],
      ...[`--http-port=${PORTS.http}`, `--https-port=${PORTS.https}`, `--metrics-port=${PORTS.metrics}`],
    ];
    const child = spawn(process.execPath, [MAIN, "run", `--kubeconfig=${this.kubeconfig}`, ...options], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.log += text;
    });
    this.child = child;
  }

  /** Resolves when the controller says so, in its log. */
  async says(message: string): Promise<void> {
    const { child } = this;
    await until(`the controller says ${message}`, () => {
      if (child?.exitCode !== null) throw new Error(`the controller has ended: ${this.log.slice(-2000)}`);
      return this.log.includes(`"message":${JSON.stringify(message)}`);
    });
  }

  /** Ends the controller as a crash would. */
  async killController(): Promise<void> {
    await this.endController("SIGKILL");
  }

  /** Exit status of a controller that is told to end. */
  async endController(signal: NodeJS.Signals): Promise<number | null> {
    const { child } = this;
    if (child === undefined) return null;
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    child.kill(signal);
    return await ended;
  }

  async startApiServer(): Promise<void> {
    await this.cluster.startApiServer();
    this.admin = this.cluster.admin;
  }

  /** Process numbers of NGINX's master and workers. */
  async nginx(): Promise<{ master: number; workers: number[] }> {
    const client = this.control();
    try {
      const { master, workers } = await client.state();
      return { master, workers: workers.map(({ pid }) => pid) };
    } finally {
      await client.close();
    }
  }

  /** A number of the page for metrics; undefined where it is not there. */
  async metric(series: string): Promise<number | undefined> {
    const page = await ask(PORTS.metrics, { path: "/stats" }).catch(() => undefined);
    const line = page?.body.split("\n").find((text) => text.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  }

  /** Resolves when the API server takes objects of the kinds of these definitions. */
  async define(definitions: readonly KubeObject[]): Promise<void> {
    await this.admin.applyAll(definitions);
    for (const { spec } of definitions) {
      const { plural } = (spec as { names: { plural: string } }).names;
      const path = `/apis/k8s.njet.org/v1/${plural}`;
      await until(`${plural} are known`, async () => (await this.admin.raw("GET", path)).status === 200);
    }
  }
}

export function isThere(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}
