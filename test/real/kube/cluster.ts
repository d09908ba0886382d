import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KubeClient } from "./client.js";

/** Beside the source, also where this runs compiled. */
const BUILD = ["build.mjs", "../../../../test/real/kube/build.mjs"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find(existsSync) as string;
const READY_MS = 60_000;

/** Builds what is missing and returns the folder with the programs; undefined, after the reason was printed, without Go. */
export function kubePrograms(): Promise<string | undefined> {
  return build("etcd", "kube-apiserver");
}

/** Builds kubectl if it is missing and returns its path; undefined, after the reason was printed, without Go. */
export async function kubectlProgram(): Promise<string | undefined> {
  const folder = await build("kubectl");
  return folder && join(folder, "kubectl");
}

/** Folder with these programs, which are of one module. */
async function build(...names: string[]): Promise<string | undefined> {
  const built = spawn(process.execPath, [BUILD, ...names], { stdio: ["ignore", "pipe", "inherit"] });
  let folder = "";
  built.stdout.setEncoding("utf8").on("data", (text: string) => {
    folder += text;
  });
  const status = await new Promise((resolve) => built.on("close", resolve));
  if (status === 0) return folder.trim();
  if (status === 3) return undefined;
  throw new Error(`${names.join(", ")} could not be built`);
}

/** A request as the API server has noted it (audit.k8s.io/v1, Event), once when it was answered, or began to be. */
export interface AuditedRequest {
  verb: string;
  user: { username: string };
  objectRef?: { apiGroup?: string; resource: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code: number };
  annotations?: Record<string, string>;
}

export interface ClusterOptions {
  /** Further flags of kube-apiserver. */
  flags?: string[];
  /** Writes down every request, for `audit`. */
  audited?: boolean;
}

/** A real etcd and kube-apiserver on loopback, with an empty store of their own; RBAC is on. */
export class TestCluster {
  readonly folder = mkdtempSync(join(tmpdir(), "njet-kic-kube-"));
  readonly #programs: string;
  readonly #flags: string[];
  readonly #processes = new Map<string, ChildProcess>();
  readonly #tokens = { admin: randomBytes(16).toString("hex"), tester: randomBytes(16).toString("hex") };
  #ports = { etcd: 0, peer: 0, api: 0 };

  private constructor(programs: string, options: ClusterOptions) {
    this.#programs = programs;
    this.#flags = [...(options.flags ?? []), ...(options.audited ? this.#auditFlags() : [])];
  }

  static async start(programs: string, options: ClusterOptions = {}): Promise<TestCluster> {
    const cluster = new TestCluster(programs, options);
    // Nothing of it outlives this process, even if nobody stops it.
    process.once("exit", () => cluster.#kill());
    await cluster.#prepare();
    cluster.#startEtcd();
    await cluster.startApiServer();
    return cluster;
  }

  get port(): number {
    return this.#ports.api;
  }

  get server(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** PEM of the certificate that the server presents. */
  get ca(): string {
    return readFileSync(join(this.folder, "apiserver.crt"), "utf8");
  }

  get caFile(): string {
    return join(this.folder, "apiserver.crt");
  }

  /** With every right. */
  get admin(): KubeClient {
    return new KubeClient(this.server, this.ca, this.#tokens.admin);
  }

  /** Token of the user `tester`, who has no right that a test does not give. */
  get testerToken(): string {
    return this.#tokens.tester;
  }

  /** Writes a kubeconfig and returns its path. `server` may be a proxy before the API server. */
  kubeconfig(user: "admin" | "tester" = "admin", server = this.server): string {
    const file = join(this.folder, `kubeconfig-${randomBytes(4).toString("hex")}`);
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster: { server, "certificate-authority": this.caFile } }],
      users: [{ name: "test", user: { token: this.#tokens[user] } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace: "default" } }],
      "current-context": "test",
    };
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  }

  /** What the API server was asked for so far, if it is `audited`. */
  audit(): AuditedRequest[] {
    const lines = readFileSync(join(this.folder, "audit.log"), "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as AuditedRequest);
  }

  /** A token of a service account, from the API server. */
  async accountToken(namespace: string, name: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
    const answer = await this.admin.raw("POST", path, body);
    if (answer.status !== 201) throw new Error(`no token for ${name}: ${JSON.stringify(answer.body)}`);
    return (answer.body.status as { token: string }).token;
  }

  /** Starts the API server on its port; resolves when it is ready. */
  async startApiServer(): Promise<void> {
    const { etcd, api } = this.#ports;
    const at = (name: string) => join(this.folder, name);
    this.#spawn("kube-apiserver", [
      `--etcd-servers=http://127.0.0.1:${etcd}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      `--secure-port=${api}`,
      `--cert-dir=${this.folder}`,
      "--endpoint-reconciler-type=none",
      "--service-cluster-ip-range=10.0.0.0/16",
      "--service-account-issuer=https://127.0.0.1",
      `--service-account-key-file=${at("sa.pub")}`,
      `--service-account-signing-key-file=${at("sa.key")}`,
      `--token-auth-file=${at("tokens.csv")}`,
      "--authorization-mode=RBAC",
      "--disable-admission-plugins=ServiceAccount",
      "--profiling=false",
      ...this.#flags,
    ]);
    await this.#until("the API server is ready", async () => {
      if (!existsSync(this.caFile)) return false;
      return (await this.admin.raw("GET", "/readyz")).status === 200;
    });
  }

  /** Kills the API server as a crash would: no connection is closed in good order. */
  async killApiServer(): Promise<void> {
    await this.#end("kube-apiserver");
  }

  /** Makes etcd forget every revision before the newest one. */
  async compact(): Promise<void> {
    const { header } = (await this.#etcd("/v3/kv/range", { key: "AA==" })) as { header: { revision: string } };
    await this.#etcd("/v3/kv/compaction", { revision: header.revision, physical: true });
  }

  /** Stops exactly what was started, and removes its files. */
  async stop(): Promise<void> {
    await this.#end("kube-apiserver");
    await this.#end("etcd");
    rmSync(this.folder, { recursive: true, force: true });
  }

  #auditFlags(): string[] {
    const policy = join(this.folder, "audit-policy.json");
    const rules = [{ level: "Metadata", omitStages: ["RequestReceived"] }];
    writeFileSync(policy, JSON.stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules }));
    return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(this.folder, "audit.log")}`];
  }

  async #prepare(): Promise<void> {
    const keys = generateKeyPairSync("ec", {
      namedCurve: "prime256v1",
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    const write = (name: string, text: string) => writeFileSync(join(this.folder, name), text, { mode: 0o600 });
    write("sa.pub", keys.publicKey);
    write("sa.key", keys.privateKey);
    write("tokens.csv", `${this.#tokens.admin},admin,admin,"system:masters"\n${this.#tokens.tester},tester,tester\n`);
    const [etcd, peer, api] = await freePorts(3);
    this.#ports = { etcd, peer, api };
  }

  #startEtcd(): void {
    const url = (port: number) => `http://127.0.0.1:${port}`;
    const { etcd, peer } = this.#ports;
    this.#spawn("etcd", [
      "--name=test",
      `--data-dir=${join(this.folder, "etcd")}`,
      "--log-level=warn",
      `--listen-client-urls=${url(etcd)}`,
      `--advertise-client-urls=${url(etcd)}`,
      `--listen-peer-urls=${url(peer)}`,
      `--initial-advertise-peer-urls=${url(peer)}`,
      `--initial-cluster=test=${url(peer)}`,
      // A throw-away store.
      "--unsafe-no-fsync",
    ]);
  }

  /** Output goes to a file, which is shown if the program ends before it is ready. */
  #spawn(name: string, args: string[]): void {
    const log = openSync(join(this.folder, `${name}.log`), "a", 0o600);
    const program = join(this.#programs, name);
    // Where it is to be had, setpriv ends the child with its parent, however that ends.
    const withParent = spawnSync("setpriv", ["--version"]).status === 0;
    const [command, ...rest] = withParent ? ["setpriv", "--pdeathsig", "KILL", program] : [program];
    this.#processes.set(name, spawn(command, [...rest, ...args], { stdio: ["ignore", log, log] }));
    closeSync(log);
  }

  async #end(name: string): Promise<void> {
    const child = this.#processes.get(name);
    this.#processes.delete(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  #kill(): void {
    for (const child of this.#processes.values()) child.kill("SIGKILL");
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + READY_MS;
    for (;;) {
      if (await holds().catch(() => false)) return;
      for (const [name, child] of this.#processes) {
        if (child.exitCode === null && performance.now() < deadline) continue;
        const log = readFileSync(join(this.folder, `${name}.log`), "utf8").slice(-2000);
        throw new Error(`${name}: in vain, ${what}\n${log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  #etcd(path: string, body: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const sent = request({ port: this.#ports.etcd, host: "127.0.0.1", path, method: "POST" }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        answer.on("end", () => (answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text))));
      });
      sent.on("error", reject);
      sent.end(JSON.stringify(body));
    });
  }
}

/** Ports of loopback that are free now. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
