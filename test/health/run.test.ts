import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeFolder, put, runCli, type Serving, startRun } from "../cli/cli-support.js";
import { service } from "../cli/objects.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { httpPeer } from "../support/peers.js";
import { until } from "./health-support.js";

cleanUpAfterEach();

function virtualServer(extra = ""): string {
  return `apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: { name: shop, namespace: default }
spec:
  host: shop.example.com
  upstreams:
    - name: api
      service: api
      port: 80
      healthCheck: { enable: true, path: /healthz, interval: 50ms, fails: 2, passes: 2${extra} }
  routes:
    - path: /
      action: { pass: api }
`;
}

/** A peer that is well or not, and a folder in which it is checked. */
async function checkedShop() {
  const mood = { status: 200, asked: 0 };
  const peer = closing(
    await httpPeer((request, response) => {
      if (request.url === "/healthz") mood.asked++;
      response.writeHead(mood.status).end();
    }),
  );
  const folder = makeFolder();
  put(folder, "service.yaml", service("api", "127.0.0.1", peer.port));
  put(folder, "shop.yaml", virtualServer());
  return { mood, folder };
}

const transitions = (running: Serving) =>
  running
    .log()
    .filter(({ message }) => message === "peer")
    .map(({ from, to }) => `${from} ${to}`);

async function probePid(running: Serving): Promise<number> {
  const line = await running.until("the probe process is started", () =>
    running.log().find(({ message }) => message === "health process: started"),
  );
  const pid = line.pid as number;
  cleanup(() => isThere(pid) && process.kill(pid, "SIGKILL"));
  return pid;
}

function isThere(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}

describe("run, with health checks", () => {
  it("logs each transition of a peer, with the reason", async () => {
    const { mood, folder } = await checkedShop();
    const running = await startRun(folder, "--no-access-log");
    await probePid(running);
    await running.until("it is up", () => transitions(running).includes("unchecked up"));
    mood.status = 500;
    await running.until("it is down", () => transitions(running).includes("up down"));
    expect(running.log().find(({ to }) => to === "down")).toMatchObject({
      level: "warn",
      upstream: "VirtualServer/default/shop/api",
      reason: "status 500",
    });
    mood.status = 200;
    await running.until("it is up again", () => transitions(running).includes("down up"));
  });

  it("takes a changed check and one that is switched off, without a restart", async () => {
    const { mood, folder } = await checkedShop();
    const running = await startRun(folder, "--no-access-log");
    const pid = await probePid(running);
    await running.until("it is up", () => transitions(running).includes("unchecked up"));
    put(folder, "shop.yaml", virtualServer(", statusMatch: '204'"));
    await running.until("it is down", () => transitions(running).includes("unchecked down"));
    put(folder, "shop.yaml", virtualServer().replace("enable: true", "enable: false"));
    await running.until(
      "it is applied",
      () => running.log().filter(({ message }) => message === "applied").length >= 3,
    );
    // Nobody asks any more: a probe that was under way may still come.
    const quiet = async () => {
      const before = mood.asked;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return mood.asked === before;
    };
    for (let tries = 0; !(await quiet()); tries++) expect(tries).toBeLessThan(20);
    expect(isThere(pid)).toBe(true);
  });

  it("probes on while the controller does nothing at all, and takes in afterwards what was found", async () => {
    const { mood, folder } = await checkedShop();
    const running = await startRun(folder, "--no-access-log");
    await probePid(running);
    await running.until("it is up", () => transitions(running).includes("unchecked up"));
    running.process.kill("SIGSTOP");
    mood.status = 500;
    const { asked } = mood;
    await until("it is probed", () => mood.asked > asked + 5);
    expect(transitions(running)).toEqual(["unchecked up"]);
    running.process.kill("SIGCONT");
    await running.until("it is down", () => transitions(running).includes("up down"));
  });

  it("leaves no probe process behind, on SIGTERM or when it is killed", async () => {
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const { folder } = await checkedShop();
      const running = await startRun(folder, "--no-access-log");
      const pid = await probePid(running);
      await running.until("it is up", () => transitions(running).includes("unchecked up"));
      running.process.kill(signal);
      await running.ended;
      await until("the probe process is gone", () => !isThere(pid));
    }
  });

  it("with --run-dir probes on while it is away, and has the states again at once", async () => {
    const { mood, folder } = await checkedShop();
    const runDir = mkdtempSync(join(tmpdir(), "njet-kic-cli-run-"));
    cleanup(() => rmSync(runDir, { recursive: true, force: true }));
    const first = await startRun(folder, "--no-access-log", "--run-dir", runDir);
    const pid = await probePid(first);
    await first.until("it is up", () => transitions(first).includes("unchecked up"));
    first.process.kill("SIGKILL");
    await first.ended;
    const asked = mood.asked;
    await until("it probes on", () => mood.asked > asked + 3);
    expect(isThere(pid)).toBe(true);

    const second = await startRun(folder, "--no-access-log", "--run-dir", runDir);
    await second.until("it has found the process", () =>
      second.log().find(({ message }) => String(message).includes("found at work")),
    );
    mood.status = 500;
    // From up: it did not begin anew.
    await second.until("it is down", () => transitions(second).length > 0);
    expect(transitions(second)).toEqual(["up down"]);
    expect(readdirSync(join(runDir, "health")).length).toBe(2);
    second.process.kill("SIGTERM");
    expect((await second.ended).status).toBe(0);
    expect(isThere(pid)).toBe(true);
  });

  it("refuses a run folder that it cannot use, with the reason", async () => {
    const { status, stderr } = await runCli(["run", "--config-dir", makeFolder(), "--run-dir", "/dev/null/x"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^njet-kic: --run-dir: /);
  });
});
