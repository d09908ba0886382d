import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { makeFolder, put, type Serving, startRun } from "../cli/cli-support.js";
import { cleanUpAfterEach, cleanup, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { installation, noNginx } from "./installation.js";
import { runFolder } from "./run-folder.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const LONG = 30_000;

/** A real peer whose health is what the test says. */
class Patient {
  /** Status of its answers to checks. */
  check = 200;
  /** Status of its other answers. */
  status = 200;
  /** Of the next checks, so many fail. */
  failing = 0;
  checked = 0;
  served = 0;
  /** Connections that NGINX had to it and that are gone. */
  lost = 0;
  readonly waiting: ServerResponse[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly noted = new WeakSet<Socket>();
  private server: Server | undefined;
  port = 0;

  constructor(readonly name: string) {}

  /** Opens its port, the same each time. */
  async open(): Promise<this> {
    // It closes no connection by itself.
    const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      request.resume();
      if (request.url === "/health") {
        this.checked++;
        const fails = this.failing > 0;
        if (fails) this.failing--;
        response.writeHead(fails ? 500 : this.check).end();
        return;
      }
      this.served++;
      this.note(request.socket);
      if (request.url === "/slow") this.waiting.push(response);
      else response.writeHead(this.status).end(this.name);
    });
    server.on("connection", (socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve));
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
    return this;
  }

  /** Breaks every connection, and refuses new ones. */
  async close(): Promise<void> {
    const { server } = this;
    if (server === undefined) return;
    this.server = undefined;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  /** Counts the end of a connection that requests come on; checks have connections of their own. */
  private note(socket: Socket): void {
    if (this.noted.has(socket)) return;
    this.noted.add(socket);
    socket.once("close", () => this.lost++);
  }
}

function objects(patients: readonly Patient[]): string {
  const slices = patients.map(
    ({ name, port }) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}, labels: { kubernetes.io/service-name: shop } }
addressType: IPv4
ports: [{ port: ${port} }]
endpoints: [{ addresses: [127.0.0.1] }]
`,
  );
  return `apiVersion: v1
kind: Service
metadata: { name: shop }
spec: { ports: [{ port: 80, targetPort: http }] }
${slices.join("")}---
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: { name: shop }
spec:
  host: ${HOST}
  upstreams:
    - name: main
      service: shop
      port: 80
      # Checks alone decide: a failed request would keep a peer out for ten seconds more.
      max-fails: 0
      healthCheck: { enable: true, path: /health, interval: 50ms, fails: 3, passes: 2 }
  routes:
    - path: /
      action: { pass: main }
`;
}

async function clinic() {
  const patients = [new Patient("sick"), new Patient("well"), new Patient("sound")];
  for (const patient of patients) closing(await patient.open());
  const folder = makeFolder();
  put(folder, "shop.yaml", objects(patients));
  const run = runFolder();
  const running = await startRun(
    folder,
    "--proxy",
    "nginx",
    "--nginx-workers",
    "2",
    "--no-access-log",
    "--run-dir",
    run.path,
  );
  cleanup(async () => {
    running.process.kill("SIGTERM");
    await running.ended;
  });
  const client = run.client();
  const pids = async () => (await client.state()).workers.map(({ pid }) => pid);
  await running.until("all are up", () => transitions(running).filter((text) => text === "unchecked up").length === 3);
  const [sick, ...others] = patients;
  return { sick, others, running, pids, before: await pids() };
}

const transitions = (running: Serving) =>
  running
    .log()
    .filter(({ message }) => message === "peer")
    .map(({ from, to }) => `${from} ${to}`);

const times = (running: Serving, what: string) => transitions(running).filter((text) => text === what).length;

/** Resolves when a peer gets nothing of 200 requests. */
async function isOut(load: Load, patient: Patient): Promise<void> {
  for (let before = -1; before !== patient.served; ) {
    before = patient.served;
    await load.more(200);
  }
}

describe.skipIf(noNginx)("a peer that is checked, behind NGINX under load", () => {
  beforeAll(async () => {
    await installation();
    await nativeCore();
  }, 600_000);

  it("is taken out when it answers 500 and put back when it is well, and the connections to others stay", async () => {
    const { sick, others, running, pids, before } = await clinic();
    const load = new Load(running.http, HOST);
    await load.more(200);
    // Requests that are under way at each peer while another one is out. Whose turn it is depends on the load.
    const slow: ReturnType<typeof ask>[] = [];
    const waiting = () => [sick, ...others].map((peer) => peer.waiting.length);
    while (waiting().includes(0)) {
      slow.push(ask(running.http, { host: HOST, path: "/slow" }));
      await eventually(() => waiting().reduce((a, b) => a + b) === slow.length, LONG);
    }
    for (let round = 1; round <= 5; round++) {
      [sick.check, sick.status] = [500, 500];
      const { checked } = sick;
      await running.until("it is down", () => times(running, "up down") === round);
      expect(sick.checked - checked).toBeGreaterThanOrEqual(3);
      await isOut(load, sick);
      const failed = load.failures.length;
      const { served } = sick;
      await load.more(1000);
      expect([load.failures.length, sick.served]).toEqual([failed, served]);
      [sick.check, sick.status] = [200, 200];
      const passed = sick.checked;
      await running.until("it is up", () => times(running, "down up") === round);
      expect(sick.checked - passed).toBeGreaterThanOrEqual(2);
      await eventually(() => sick.served > served + 20, LONG);
      expect(load.failures.length).toBe(failed);
    }
    expect(new Set(load.failures)).toEqual(new Set(["status 500"]));
    for (const { waiting } of [sick, ...others]) for (const response of waiting) response.end("late");
    expect((await Promise.all(slow)).map(({ status, body }) => `${status} ${body}`)).toEqual(
      slow.map(() => "200 late"),
    );
    await load.stop();
    // Not one connection to any of them was closed: who goes out loses nothing that is under way either.
    expect([sick, ...others].map(({ lost }) => lost)).toEqual([0, 0, 0]);
    expect(await pids()).toEqual(before);
  }, 180_000);

  it("costs no request when it dies, is out while it is away, and is put back when it is there again", async () => {
    const { sick, others, running, pids, before } = await clinic();
    const load = new Load(running.http, HOST);
    const { port } = sick;
    for (let round = 1; round <= 5; round++) {
      await load.more(200);
      await sick.close();
      await running.until("it is down", () => times(running, "up down") === round);
      await load.more(200);
      await sick.open();
      expect(sick.port).toBe(port);
      const { served } = sick;
      await running.until("it is up", () => times(running, "down up") === round);
      await eventually(() => sick.served > served + 20, LONG);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(others.map(({ lost }) => lost)).toEqual([0, 0]);
    expect(await pids()).toEqual(before);
  }, 180_000);

  it("stays in when it fails less often in a row than it takes, however often that happens", async () => {
    const { sick, running } = await clinic();
    const load = new Load(running.http, HOST);
    for (let round = 0; round < 10; round++) {
      const { checked } = sick;
      sick.failing = 2;
      await eventually(() => sick.checked >= checked + 3, LONG);
    }
    await load.stop();
    expect(transitions(running)).toEqual(["unchecked up", "unchecked up", "unchecked up"]);
    expect(load.failures).toEqual([]);
    // Nothing has been said of it, so it has its share.
    const { served } = sick;
    for (let i = 0; i < 30; i++) await ask(running.http, { host: HOST });
    expect(sick.served - served).toBeGreaterThan(0);
  }, 180_000);
});
