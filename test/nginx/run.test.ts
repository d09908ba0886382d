import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { Child, CLI, makeFolder, ownTemporaryFolder, put, runCli, startRun } from "../cli/cli-support.js";
import { ingress, service, tlsSecret } from "../cli/objects.js";
import { again, HOST, isClosed, namedPeer, shopFolder, takenOver } from "../cli/shop.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { httpPeer } from "../support/peers.js";
import { RawClient, servedCertificate } from "../support/raw-client.js";
import { until } from "./driven-nginx.js";
import { installation, noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";
import { runFolder } from "./run-folder.js";

cleanUpAfterEach();

const NGINX = ["--proxy", "nginx", "--nginx-workers", "2"];

const noTaskset = spawnSync("taskset", ["--version"]).status !== 0;

/** The first core that we may use. */
function ownCore(): number {
  return Number(/^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}

describe.skipIf(noNginx)("run --proxy nginx", () => {
  beforeAll(async () => {
    await installation();
    await nativeCore();
  }, 600_000);

  it("serves a folder, and moves a host to another service under load without one failed request", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, ...NGINX, "--no-access-log");
    const load = new Load(running.http, HOST);
    for (const to of ["two", "one", "two", "one", "two"]) {
      await load.more(50);
      put(folder, "shop.yaml", ingress("shop", HOST, to));
      await eventually(() => load.latest === to);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  it("takes a renewed certificate for the next handshake, and shows the default one to unknown names", async () => {
    const folder = await shopFolder();
    const [first, renewed] = [makeCertificate("first", HOST), makeCertificate("renewed", HOST)];
    put(folder, "tls.yaml", tlsSecret("pair", first));
    put(folder, "shop.yaml", ingress("shop", HOST, "one", "pair"));
    const running = await startRun(folder, ...NGINX);
    expect((await servedCertificate(running.https, HOST)).subject.CN).toBe("first");
    expect((await servedCertificate(running.https, "nobody.example.com")).subject.CN).toBe("default certificate");
    put(folder, "tls.yaml", tlsSecret("pair", renewed));
    await until("the renewed one is shown", async () => {
      return (await servedCertificate(running.https, HOST)).subject.CN === "renewed";
    });
  });

  it("shows what NGINX counts on the page for metrics, and that its workers are in step", async () => {
    const running = await startRun(await shopFolder(), ...NGINX);
    for (let i = 0; i < 10; i++) expect((await ask(running.http, { host: HOST })).status).toBe(200);
    const { body } = await ask(running.metrics as number, { path: "/stats" });
    expect(body).toContain(`njet_vts_server_requests_total{host="${HOST}",code="2xx"} 10`);
    expect(body).toMatch(
      /njet_vts_upstream_requests_total\{upstream="Ingress\/default\/shop\/one:80".*code="2xx"\} 10/,
    );
    expect(body.match(/njet_kic_nginx_worker_in_step\{.*\} 1/g)).toHaveLength(2);
    expect(body).toMatch(/njet_kic_upstream_peers\{upstream="Ingress\/default\/shop\/one:80",state="unchecked"\} 1/);
    expect((await ask(running.metrics as number, { path: "/readyz" })).status).toBe(200);
  });

  it.skipIf(noTaskset)("has a worker for each core that the controller may use, and no more", async () => {
    const run = runFolder();
    const args = ["run", "--config-dir", await shopFolder(), "--proxy", "nginx", "--run-dir", run.path];
    const ports = ["--http-port", "0", "--https-port", "0", "--metrics-port", "off", "--no-access-log"];
    const child = new Child(CLI, [...args, ...ports], { through: ["taskset", "--cpu-list", String(ownCore())] });
    await child.until("it serves", () => child.log().some(({ message }) => message === "serving"));
    expect((await run.client().state()).workers).toHaveLength(1);
  });

  it("writes the access log to standard output, one JSON line a request", async () => {
    const running = await startRun(await shopFolder(), ...NGINX);
    await ask(running.http, { host: HOST, path: "/tea?x=1" });
    await eventually(() => running.stdout.endsWith("\n"), 30_000);
    expect(JSON.parse(running.stdout)).toMatchObject({ host: HOST, target: "/tea?x=1", status: 200 });
  });

  it("is killed and started anew, while NGINX serves on: it takes it over, and no request fails", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const options = [...NGINX, "--no-access-log", "--run-dir", run.path];
    await takenOver(folder, options, () => run.client().state());
  });

  it("clears away what is left where NGINX's master has died as well as its controller, and starts anew", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const options = [...NGINX, "--no-access-log", "--run-dir", run.path];
    const first = await startRun(folder, ...options);
    const { master, workers } = await run.client().state();
    // Stopped, so that it can't start another one.
    first.process.kill("SIGSTOP");
    process.kill(master, "SIGKILL");
    first.process.kill("SIGKILL");
    await first.ended;
    const second = await again(first, folder, ...options);
    expect((await ask(second.http, { host: HOST })).body).toBe("one");
    for (const { pid } of workers) await until("the old workers go", () => !existsSync(`/proc/${pid}`));
  });

  it("ends on SIGTERM when requests under way are answered, and NGINX with it", async () => {
    let waiting: ServerResponse | undefined;
    const peer = closing(
      await httpPeer((_request, response) => {
        waiting = response;
      }),
    );
    const folder = makeFolder();
    put(folder, "slow.yaml", service("slow", "127.0.0.1", peer.port));
    put(folder, "shop.yaml", ingress("shop", HOST, "slow"));
    const running = await startRun(folder, ...NGINX);
    const answer = ask(running.http, { host: HOST });
    await eventually(() => waiting !== undefined);
    running.process.kill("SIGTERM");
    await until("the port is closed", () => isClosed(running.http));
    expect((await ask(running.metrics as number, { path: "/readyz" })).status).toBe(503);
    waiting?.end("late");
    expect((await answer).body).toBe("late");
    expect((await running.ended).status).toBe(0);
  });

  it("ends on SIGTERM also while NGINX is being started, and NGINX with it", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const args = [...NGINX, "--run-dir", run.path, "--http-port", "0", "--https-port", "0", "--metrics-port", "off"];
    const child = new Child(CLI, ["run", "--config-dir", folder, ...args]);
    const inside = (name: string) => join(run.path, "nginx", name);
    await child.until("its configuration is there", () => existsSync(inside("nginx.conf")));
    child.process.kill("SIGTERM");
    expect((await child.ended).status).toBe(0);
    expect(existsSync(inside("nginx.pid"))).toBe(false);
    await expect(run.client().state()).rejects.toThrow();
  });

  it("drives an NGINX that somebody else runs, by its socket, and leaves it alone when it ends", async () => {
    const nginx = await RequestNginx.start([]);
    const folder = await shopFolder();
    const running = await startRun(folder, "--proxy", "nginx", "--attach", join(nginx.folder, "control.sock"));
    expect((await ask(nginx.http, { host: HOST })).body).toBe("one");
    running.process.kill("SIGTERM");
    expect((await running.ended).status).toBe(0);
    expect((await ask(nginx.http, { host: HOST })).body).toBe("one");
  });

  it("takes the client's address from the PROXY protocol of trusted networks", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, ...NGINX, "--proxy-protocol", "--trusted-proxies", "127.0.0.1");
    const client = await RawClient.plain(running.http);
    client.write(
      `PROXY TCP4 192.0.2.7 192.0.2.1 5555 80\r\nGET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`,
    );
    await eventually(() => running.stdout.endsWith("\n"), 30_000);
    expect(JSON.parse(running.stdout)).toMatchObject({ client: "192.0.2.7", status: 200 });
  });

  it("passes nothing on as said by NGINX that a client has sent in place of a PROXY protocol header", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, ...NGINX, "--proxy-protocol", "--trusted-proxies", "127.0.0.1");
    const client = await RawClient.plain(running.http);
    client.write("nonsense\n2026/01/02 03:04:05 [emerg] 1#1: forged\r\n\r\n");
    await eventually(() => running.stderr.includes("forged"));
    const lines = running.stderr.split("\n").filter((line) => line.includes("forged"));
    expect(lines.map((line) => JSON.parse(line))).toEqual([expect.not.objectContaining({ severity: "emerg" })]);
  });

  it.each([
    [["--nginx", process.execPath], /has no Lua module.*|can't be run as an NGINX.*\(NGINX_UNUSABLE\)/],
    [["--nginx", "/no/such/nginx"], /\/no\/such\/nginx can't be run as an NGINX.*\(NGINX_UNUSABLE\)/],
    [["--attach", "/no/such/control.sock"], /\/no\/such\/token does not exist/],
    [["--attach", "/no/such/control.sock", "--nginx-workers", "2"], /--nginx-workers can't be given with --attach/],
    [["--proxy-protocol"], /--proxy-protocol needs --trusted-proxies/],
    [["--nginx-workers", "0"], /1 to 1024 workers/],
    [["--proxy", "embedded", "--nginx-workers", "2"], /--nginx-workers needs --proxy nginx/],
  ])("refuses %j with status 1 and a reason", async (options, reason) => {
    const { status, stderr } = await runCli([
      "run",
      "--proxy",
      "nginx",
      "--config-dir",
      await shopFolder(),
      ...options,
    ]);
    expect(stderr).toMatch(reason);
    expect(status).toBe(1);
  });

  it("ends with status 1 where another program has the port, and says so", async () => {
    const other = await namedPeer("other");
    const port = String(other.port);
    const args = [
      "run",
      ...NGINX,
      "--config-dir",
      await shopFolder(),
      "--address",
      "127.0.0.1",
      "--metrics-port",
      "off",
    ];
    const { status, stderr } = await runCli([...args, "--http-port", port, "--https-port", "0"]);
    expect(stderr).toMatch(/nginx does not start: .*bind\(\) to 127\.0\.0\.1:\d+ failed.*\(NGINX_NOT_ANSWERING\)/);
    expect(status).toBe(1);
  });

  it("ends NGINX when its controller is killed that nobody could take over", async () => {
    const shop = await shopFolder();
    const temporary = ownTemporaryFolder();
    const running = await startRun(shop, ...NGINX);
    expect(readdirSync(temporary)).not.toEqual([]);
    running.process.kill("SIGKILL");
    await until("the port is closed", () => isClosed(running.http));
    await until("the folder is gone", () => readdirSync(temporary).length === 0);
  });

  it("leaves no temporary folder behind", async () => {
    const shop = await shopFolder();
    const temporary = ownTemporaryFolder();
    const running = await startRun(shop, ...NGINX);
    expect(readdirSync(temporary)).not.toEqual([]);
    running.process.kill("SIGTERM");
    await running.ended;
    expect(readdirSync(temporary)).toEqual([]);
  });
});
