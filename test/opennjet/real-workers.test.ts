import { existsSync, readdirSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import type { WorkerState } from "../../controller/proxies/nginx/control-client.js";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { WORKER_COUNT_KEY } from "../../controller/proxies/opennjet/api/index.js";
import { put, startRun } from "../cli/cli-support.js";
import { ingress } from "../cli/objects.js";
import { HOST, shopFolder } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { noOpenNjet } from "./real-installation.js";
import { OPENNJET, runFolder } from "./real-shop.js";

cleanUpAfterEach();

/** An OpenNJet with two workers that is driven, and ways to change their number and to see who they are. */
async function driven() {
  const folder = await shopFolder();
  const run = runFolder();
  const running = await startRun(folder, ...OPENNJET, "--run-dir", run.path);
  const api = run.api();
  const control = run.client();
  await until("the store has the number", async () => (await api.keyValue.get(WORKER_COUNT_KEY)) === "2");
  const workers = async () => (await control.state()).workers;
  /** Resolves with the workers once there are so many. */
  const settled = async (count: number) => {
    let now: WorkerState[] = [];
    await until(`there are ${count}`, async () => {
      // What is asked of a worker that ends may get no answer.
      now = await workers().catch(() => []);
      return now.length === count;
    });
    return now;
  };
  const resize = async (count: number) => {
    const before = pids(await workers());
    // The control server is started anew with the workers.
    await until("the store takes it", () =>
      api.keyValue.set(WORKER_COUNT_KEY, String(count)).then(
        () => true,
        () => false,
      ),
    );
    const now = await settled(count);
    // OpenNJet ignores another number as long as workers are ending.
    const ending = before.filter((pid) => !pids(now).includes(pid));
    await until("the others go", () => !ending.some((pid) => existsSync(`/proc/${pid}`)));
    return now;
  };
  return { folder, running, control, workers, settled, resize, api };
}

/** Processes of OpenNJet beside the workers: the broker, the control server, and the agent. */
function helpersOf(master: number): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0)
    .filter((pid) => {
      try {
        const [, , , parent] = /^(\d+) \((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "latin1")) ?? [];
        return Number(parent) === master && !readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("worker process");
      } catch {
        return false;
      }
    });
}

function pids(workers: readonly WorkerState[]): number[] {
  return workers.map(({ pid }) => pid);
}

async function bodies(port: number): Promise<Set<string>> {
  const answers = await Promise.all(Array.from({ length: 60 }, () => ask(port, { host: HOST })));
  return new Set(answers.map(({ body }) => body));
}

describe.skipIf(noOpenNjet)("the number of OpenNJet's workers", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it("goes up by the key-value store: the new one serves the whole state, and the others stay", async () => {
    const { running, workers, resize } = await driven();
    const before = pids(await workers());
    const now = await resize(3);
    expect(pids(now)).toEqual(expect.arrayContaining(before));
    expect(new Set(now.map(({ sum, count }) => `${sum} ${count}`)).size).toBe(1);
    expect(await bodies(running.http)).toEqual(new Set(["one"]));
  });

  it("goes up and down: changes are acknowledged by all workers that there are, and act on the next request", async () => {
    const { folder, running, control, resize } = await driven();
    let to = "one";
    for (const count of [4, 1, 3, 2]) {
      const now = await resize(count);
      to = to === "one" ? "two" : "one";
      put(folder, "shop.yaml", ingress("shop", HOST, to));
      await until("the change acts", async () => (await ask(running.http, { host: HOST })).body === to);
      expect(await bodies(running.http)).toEqual(new Set([to]));
      const { workers, seq, late } = await control.post([]);
      expect(late).toEqual([]);
      expect(workers.map((worker) => [worker.pid, worker.seq])).toEqual(pids(now).map((pid) => [pid, seq]));
    }
  });

  it("is right where a worker that was added is killed, and another one takes its place", async () => {
    const { running, control, settled, resize } = await driven();
    const before = await resize(3);
    const killed = before[2].pid;
    process.kill(killed, "SIGKILL");
    await until("it is gone", () => !existsSync(`/proc/${killed}`));
    const { late } = await control.post([]);
    expect(late).toEqual([]);
    const after = pids(await settled(3));
    expect(after).not.toContain(killed);
    expect(after).toEqual(expect.arrayContaining(pids(before.slice(0, 2))));
    expect(await bodies(running.http)).toEqual(new Set(["one"]));
  });

  it("can be changed after broker, control server and agent were killed, one after the other and all at once", async () => {
    const { control, api, resize } = await driven();
    const { master } = await control.state();
    const helpers = helpersOf(master);
    expect(helpers).toHaveLength(3);
    for (const pid of helpers) {
      process.kill(pid, "SIGKILL");
      await until("it is gone", () => !existsSync(`/proc/${pid}`));
    }
    await until(
      "the control server is back",
      async () => (await api.keyValue.get(WORKER_COUNT_KEY).catch(() => "")) === "2",
    );
    await resize(3);
    for (const pid of helpersOf(master)) process.kill(pid, "SIGKILL");
    await resize(1);
  });

  it("is right where OpenNJet gives two workers one id", async () => {
    const { folder, running, control, workers, settled, resize } = await driven();
    const { master } = await control.state();
    const first = pids(await workers());
    process.kill(master, "SIGHUP");
    await until("all workers are new", async () => {
      const now = pids(await workers().catch(() => []));
      return now.length === 2 && !now.some((pid) => first.includes(pid));
    });
    await until("the places of the old ones are free", () => !first.some((pid) => existsSync(`/proc/${pid}`)));
    // The one that is added has the place of one that ended, so that another one than the last is the first to go.
    await resize(3);
    await resize(2);
    const now = await resize(3);
    expect(new Set(now.map(({ id }) => id)).size).toBe(2);
    put(folder, "shop.yaml", ingress("shop", HOST, "two"));
    await until("the change acts", async () => (await ask(running.http, { host: HOST })).body === "two");
    expect(await bodies(running.http)).toEqual(new Set(["two"]));
    const { seq, late } = await control.post([]);
    expect(late).toEqual([]);
    expect((await settled(3)).map((worker) => worker.seq)).toEqual([seq, seq, seq]);
  });
});
