import { rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load, untilAnswer } from "../support/load.js";
import { httpPeer } from "../support/peers.js";
import { RawClient, servedCertificate } from "../support/raw-client.js";
import { makeFolder, put, runCli, startRun } from "./cli-support.js";
import { ingress, service, tlsSecret } from "./objects.js";
import { HOST, shopFolder } from "./shop.js";

cleanUpAfterEach();

async function statusOf(port: number, host: string): Promise<number> {
  return (await ask(port, { host })).status;
}

describe("run, while files change", () => {
  it("moves a host to another service under load without one failed request", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, "--no-access-log");
    const load = new Load(running.http, HOST);
    for (const to of ["two", "one", "two", "one", "two"]) {
      await load.more(50);
      put(folder, "shop.yaml", ingress("shop", HOST, to));
      await eventually(() => load.latest === to);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(running.process.exitCode).toBeNull();
  });

  it("serves the host of a new file, and no longer that of a deleted one, while another host goes on", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, "--no-access-log");
    const load = new Load(running.http, HOST);
    expect(await statusOf(running.http, "blog.example.com")).toBe(404);
    put(folder, "blog.yaml", ingress("blog", "blog.example.com", "two"));
    await untilAnswer(running.http, "blog.example.com", ({ status }) => status === 200);
    rmSync(join(folder, "blog.yaml"));
    await untilAnswer(running.http, "blog.example.com", ({ status }) => status === 404);
    await load.more(20);
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  it("keeps the last good state of a broken file, says so, and takes the repaired one", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, "--no-access-log");
    const load = new Load(running.http, HOST);
    put(folder, "shop.yaml", `${ingress("shop", HOST, "two")}\n  - : [broken`);
    const said = await running.until("the file is named", () => running.log().find(({ file }) => file === "shop.yaml"));
    expect(said).toMatchObject({ level: "warn", message: "file", code: "FILE_SYNTAX", line: expect.any(Number) });
    expect(said.problem).toMatch(/YAML/);
    await load.more(50);
    expect(load.latest).toBe("one");
    put(folder, "shop.yaml", ingress("shop", HOST, "two"));
    await eventually(() => load.latest === "two");
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  it("serves everything else when an object is invalid, and names it with the reason", async () => {
    const folder = await shopFolder();
    put(folder, "bad.yaml", ingress("bad", "not a host", "one"));
    const running = await startRun(folder, "--no-access-log");
    expect(await statusOf(running.http, HOST)).toBe(200);
    const said = running.log().find(({ object }) => object === "Ingress/default/bad");
    expect(said).toMatchObject({ level: "error", state: "Invalid" });
    expect(said?.problems).toMatchObject([{ path: "spec.rules[0].host", code: "HOST_INVALID" }]);
  });

  it("shows a renewed certificate to the next handshake", async () => {
    const folder = await shopFolder();
    put(folder, "shop.yaml", ingress("shop", HOST, "one", "shop-tls"));
    put(folder, "secret.yaml", tlsSecret("shop-tls", makeCertificate("before", HOST)));
    const running = await startRun(folder, "--no-access-log");
    expect((await servedCertificate(running.https, HOST)).subject.CN).toBe("before");
    put(folder, "secret.yaml", tlsSecret("shop-tls", makeCertificate("renewed", HOST)));
    await running.until(
      "it is applied",
      () => running.log().filter(({ message }) => message === "applied").length >= 2,
    );
    expect((await servedCertificate(running.https, HOST)).subject.CN).toBe("renewed");
  });
});

describe("run, when it is told to stop", () => {
  it("lets a request under way end, takes no other, and ends with status 0", async () => {
    let pending: ServerResponse | undefined;
    const peer = closing(
      await httpPeer((_request, response) => {
        response.write("first ");
        pending = response;
      }),
    );
    const folder = makeFolder();
    put(folder, "shop.yaml", `${service("slow", "127.0.0.1", peer.port)}---\n${ingress("shop", HOST, "slow")}`);
    const running = await startRun(folder);
    const client = await RawClient.plain(running.http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await client.until((received) => received.includes("first "));
    running.process.kill("SIGTERM");
    await running.until("it drains", () => running.log().some(({ message }) => message === "draining"));
    await expect(RawClient.plain(running.http)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    pending?.end("last");
    expect(await client.end()).toMatch(/first .*last/s);
    const { status, stdout } = await running.ended;
    expect(status).toBe(0);
    // The request that ended last is in the access log all the same.
    expect(JSON.parse(stdout)).toMatchObject({ host: HOST, status: 200 });
  });

  it("breaks off what has not ended after --drain-seconds", async () => {
    const peer = closing(await httpPeer((_request, response) => response.write("first ")));
    const folder = makeFolder();
    put(folder, "shop.yaml", `${service("slow", "127.0.0.1", peer.port)}---\n${ingress("shop", HOST, "slow")}`);
    const running = await startRun(folder, "--drain-seconds", "0.2");
    const client = await RawClient.plain(running.http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await client.until((received) => received.includes("first "));
    running.process.kill("SIGTERM");
    expect((await running.ended).status).toBe(0);
    expect(JSON.parse(running.stdout)).toMatchObject({ aborted: true });
  });
});

describe("run, with options", () => {
  it("ends with status 1 and names the port that another program has", async () => {
    const other = closing(await httpPeer((_request, response) => response.end()));
    const ports = ["--address", "127.0.0.1", "--http-port", String(other.port), "--https-port", "0"];
    const { status, stderr } = await runCli(["run", "--config-dir", makeFolder(), ...ports]);
    expect(status).toBe(1);
    expect(stderr).toContain(`127.0.0.1:${other.port}`);
    expect(stderr).toContain("another program has the port");
    expect(stderr).not.toContain("    at ");
  });

  it.each([
    [["--config-dir", "/no/such/folder"], "--config-dir: /no/such/folder is no folder"],
    [["--http-port", "70000"], "a port is 0 to 65535"],
    [["--address", "localhost"], "an IP address"],
    [["--trusted-proxies", "10.0.0.0/99"], "not a network: 10.0.0.0/99"],
    [["--default-certificate", "/no/such/folder"], "tls.crt does not exist"],
    [["--drain-seconds", "soon"], "a number of seconds"],
    [["--proxy", "other"], "embedded"],
    [["--balancer", "bundled"], "--balancer needs --proxy opennjet"],
    [["--proxy", "opennjet", "--balancer", "bundled"], "--balancer bundled needs --carrier locations: it can't route"],
    [["--proxy", "opennjet", "--carrier", "locations", "--balancer", "other"], "own, bundled"],
  ])("refuses %j with status 1 and a reason", async (options, reason) => {
    const folder = options[0] === "--config-dir" ? [] : ["--config-dir", makeFolder()];
    const { status, stderr, stdout } = await runCli(["run", ...folder, ...options]);
    expect(status).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain("    at ");
  });

  it("shows the given default certificate to unknown names", async () => {
    const pair = makeCertificate("own default", "default.example.com");
    const folder = makeFolder();
    put(folder, "default/tls.crt", pair.chain);
    put(folder, "default/tls.key", pair.key);
    put(folder, "objects/shop.yaml", ingress("shop", HOST, "one"));
    const running = await startRun(join(folder, "objects"), "--default-certificate", join(folder, "default"));
    expect((await servedCertificate(running.https, "unknown.example.com")).subject.CN).toBe("own default");
  });

  it("refuses a default certificate whose key is another's, without a word of the key", async () => {
    const folder = makeFolder();
    const other = makeCertificate("b", "b.example.com").key;
    put(folder, "tls.crt", makeCertificate("a", "a.example.com").chain);
    put(folder, "tls.key", other);
    const { status, stderr } = await runCli(["run", "--config-dir", folder, "--default-certificate", folder]);
    expect(status).toBe(1);
    expect(stderr).toContain("are no PEM certificate with its key");
    expect(stderr).not.toContain(other.split("\n")[1]);
  });

  it("writes one JSON line a request to standard output, and none with --no-access-log", async () => {
    const folder = await shopFolder();
    const loud = await startRun(folder);
    const quiet = await startRun(folder, "--no-access-log");
    for (const { http } of [loud, quiet]) expect(await statusOf(http, HOST)).toBe(200);
    for (const { process } of [loud, quiet]) process.kill("SIGTERM");
    const lines = (await loud.ended).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { status: 200, host: HOST, resource: "Ingress/default/shop", path: "/", upstream: "default/one:80" },
    ]);
    expect((await quiet.ended).stdout).toBe("");
  });

  it("believes X-Forwarded-For from the networks of --trusted-proxies only", async () => {
    const peer = closing(await httpPeer((request, response) => response.end(String(request.headers["x-real-ip"]))));
    const folder = makeFolder();
    put(folder, "shop.yaml", `${service("tell", "127.0.0.1", peer.port)}---\n${ingress("shop", HOST, "tell")}`);
    const trusting = await startRun(folder, "--trusted-proxies", "10.0.0.0/8,127.0.0.0/8");
    const wary = await startRun(folder);
    const headers = { "X-Forwarded-For": "192.0.2.7" };
    expect((await ask(trusting.http, { host: HOST, headers })).body).toBe("192.0.2.7");
    expect((await ask(wary.http, { host: HOST, headers })).body).toBe("127.0.0.1");
  });
});
