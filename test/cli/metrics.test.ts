import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { labelValues, scrape, seriesValue } from "../support/metrics-page.js";
import { httpPeer } from "../support/peers.js";
import { RawClient } from "../support/raw-client.js";
import { makeFolder, put, runCli, startRun } from "./cli-support.js";
import { ingress, service } from "./objects.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function shopFolder(answer: Parameters<typeof httpPeer>[0] = (_request, response) => response.end("x")) {
  const peer = closing(await httpPeer(answer));
  const folder = makeFolder();
  put(folder, "shop.yaml", `${service("web", "127.0.0.1", peer.port)}---\n${ingress("shop", HOST, "web")}`);
  return folder;
}

describe("run, its metrics", () => {
  it("show traffic, the plans, the objects and the process on one page", async () => {
    const running = await startRun(await shopFolder());
    expect((await ask(running.http, { host: HOST })).status).toBe(200);
    const families = await scrape(running.metrics ?? 0);
    expect(seriesValue(families, "njet_vts_server_requests_total", { host: HOST, code: "2xx" })).toBe(1);
    expect(seriesValue(families, "njet_kic_apply_duration_seconds_count")).toBeGreaterThan(0);
    expect(seriesValue(families, "njet_kic_objects", { kind: "Ingress", state: "Valid" })).toBe(1);
    expect(labelValues(families, "njet_kic_generation_info", "generation")).toHaveLength(1);
    expect(seriesValue(families, "njet_kic_process_resident_memory_bytes")).toBeGreaterThan(0);
  });

  it("are called as those of NGINX with --metrics-prefix nginx", async () => {
    const running = await startRun(await shopFolder(), "--metrics-prefix", "nginx");
    expect((await scrape(running.metrics ?? 0)).has("nginx_vts_main_connections")).toBe(true);
  });

  it("are bound to loopback unless an address is given", async () => {
    const folder = await shopFolder();
    const usual = await startRun(folder, "--address", "0.0.0.0");
    const other = await startRun(folder, "--metrics-address", "127.0.0.2");
    // Every address of 127.0.0.0/8 is this machine; one that is not bound refuses.
    await expect(RawClient.plain(other.metrics ?? 0)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    expect((await ask(usual.metrics ?? 0, { path: "/healthz" })).status).toBe(200);
  });

  it("are not there with --metrics-port off", async () => {
    const running = await startRun(await shopFolder(), "--metrics-port", "off");
    expect(running.metrics).toBeUndefined();
    expect((await ask(running.http, { host: HOST })).status).toBe(200);
  });

  it("say that the controller is ready once it serves, and no longer when it drains", async () => {
    const running = await startRun(
      await shopFolder((_request, response) => {
        response.write("begun");
      }),
    );
    const ready = async () => (await ask(running.metrics ?? 0, { path: "/readyz" })).status;
    expect(await ready()).toBe(200);
    const client = await RawClient.plain(running.http);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await client.until((received) => received.includes("begun"));
    running.process.kill("SIGTERM");
    await running.until("it drains", () => running.log().some(({ message }) => message === "draining"));
    let status = 0;
    void (async () => {
      while (status !== 503) status = await ready();
    })();
    await eventually(() => status === 503);
  });

  it("end the start with status 1 where another program has the port that was asked for", async () => {
    const other = closing(await httpPeer((_request, response) => response.end()));
    const ports = ["--address", "127.0.0.1", "--http-port", "0", "--https-port", "0"];
    const asked = ["--metrics-port", String(other.port)];
    const { status, stderr } = await runCli(["run", "--config-dir", makeFolder(), ...ports, ...asked]);
    expect(status).toBe(1);
    expect(stderr).toContain(`127.0.0.1:${other.port}`);
    expect(stderr).toContain("--metrics-port");
  });

  it.each([
    [["--metrics-port", "on"], "a port is 0 to 65535"],
    [["--metrics-prefix", "x"], "njet, nginx"],
    [["--metrics-series", "0"], "a number of series"],
    [["--metrics-address", "here"], "an IP address"],
  ])("refuse %j with a reason", async (options, reason) => {
    const { status, stderr } = await runCli(["run", "--config-dir", makeFolder(), ...options]);
    expect(status).toBe(1);
    expect(stderr).toContain(reason);
  });
});
