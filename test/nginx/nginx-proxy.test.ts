import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { certificateStep, fullPlan, keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { driven, makeDriven, temporaryFolder, until } from "./driven-nginx.js";
import { installation, noNginx } from "./installation.js";

cleanUpAfterEach();

const HOSTS = ["a.example.com", "b.example.com"];
const EXISTING = [upstreamStep("tea", [8001]), ...HOSTS.map((host) => proxyHost(host, "tea"))];

function removalOf(host: string) {
  return { step: "remove-host", pattern: { kind: "exact", host } } as const;
}

async function names(one: Awaited<ReturnType<typeof driven>>): Promise<string[]> {
  return Object.keys((await one.client.pieces()).pieces).sort();
}

describe.skipIf(noNginx)("NGINX as a proxy that is driven", () => {
  beforeAll(() => installation(), 600_000);

  it("has a plan in force in all workers when it is applied, under its generation", async () => {
    const one = await driven();
    const plan = planOf(...EXISTING);
    expect(await one.proxy.apply(plan)).toEqual({ generation: plan.generation, failures: [] });
    const state = await one.client.state();
    expect(state.generation).toBe(plan.generation);
    expect(state.workers.map(({ sum }) => sum)).toEqual([state.sum, state.sum]);
    expect(await names(one)).toEqual([...HOSTS.map((host) => `1:${host}`), `2:${keyOf("tea")}`]);
  });

  it("ships what a change is about and nothing else", async () => {
    const one = await driven();
    await one.proxy.apply(planOf(...EXISTING));
    const before = (await one.client.pieces()).pieces;
    await one.proxy.apply(planOf(upstreamStep("tea", [8001, 8002])));
    const after = (await one.client.pieces()).pieces;
    const changed = Object.keys(after).filter((name) => after[name] !== before[name]);
    expect(changed).toEqual([`2:${keyOf("tea")}`]);
  });

  it("ships nothing for a plan that says what is in force already", async () => {
    const one = await driven();
    await one.proxy.apply(planOf(...EXISTING));
    const { seq } = await one.client.state();
    const again = planOf(...EXISTING);
    await one.proxy.apply(again);
    const state = await one.client.state();
    // Only the name of the state is another one.
    expect([state.seq, state.generation]).toEqual([seq + 1, again.generation]);
  });

  it("takes away what a full plan does not name, its default certificate aside", async () => {
    const one = await driven({ defaultCertificate: makeCertificate("default") });
    await one.proxy.apply(planOf(...EXISTING));
    await one.proxy.apply(fullPlan(upstreamStep("tea", [8001]), proxyHost(HOSTS[0], "tea")));
    expect(await names(one)).toEqual([`1:${HOSTS[0]}`, `2:${keyOf("tea")}`, "3:"]);
  });

  it("reports a piece that NGINX refuses as the failure of its step, and takes the others", async () => {
    const one = await driven({ dict: "1m" });
    const large = upstreamStep("coffee", [8001]);
    large.upstream.peers.peers = Array.from({ length: 30_000 }, (_, i) => {
      return { address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, port: 80, weight: 1 };
    });
    const { failures } = await one.proxy.apply(planOf(...EXISTING, large));
    expect(failures.map(({ kind, piece, code }) => [kind, piece, code])).toEqual([
      ["upstream", keyOf("coffee"), "PROXY_STATE_FULL"],
    ]);
    expect(await names(one)).toEqual([...HOSTS.map((host) => `1:${host}`), `2:${keyOf("tea")}`]);
  });

  it("reports rules that do not compile, and takes the others", async () => {
    const one = await driven();
    const bad = proxyHost("bad.example.com", "tea");
    if (bad.step !== "set-host") throw new Error("not reached");
    bad.rules.routes[0].path = { kind: "regex", pattern: "(", ignoreCase: false, anchored: true };
    const { failures } = await one.proxy.apply(planOf(...EXISTING, bad));
    expect(failures.map(({ kind, piece }) => [kind, piece])).toEqual([["host", "bad.example.com"]]);
    expect(await names(one)).toHaveLength(3);
  });

  it("refuses a certificate without a word of its key", async () => {
    const one = await driven();
    const step = certificateStep("a.example.com", { chain: "refuse", key: "PRIVATE", fingerprint: "f" });
    const { failures } = await one.proxy.apply(planOf(step));
    expect(failures.map(({ kind, code }) => [kind, code])).toEqual([["certificate", "PROXY_CERTIFICATE_INVALID"]]);
    expect(JSON.stringify([failures, one.lines])).not.toContain("PRIVATE");
  });

  it("hands states of peers on as one piece for each upstream, and takes them away with it", async () => {
    const one = await driven();
    await one.proxy.apply(planOf(...EXISTING));
    const state = { upstream: keyOf("tea"), address: "127.0.0.1", port: 8001 };
    one.proxy.setPeerStates([{ ...state, state: "down" }]);
    await until("the states arrive", async () => (await names(one)).includes(`4:${keyOf("tea")}`));
    one.proxy.setPeerStates([{ ...state, state: "unchecked" }]);
    await until("the states go", async () => !(await names(one)).includes(`4:${keyOf("tea")}`));
    one.proxy.setPeerStates([{ ...state, state: "down" }]);
    await until("the states arrive again", async () => (await names(one)).includes(`4:${keyOf("tea")}`));
    await one.proxy.apply(planOf(...HOSTS.map(removalOf), { step: "remove-upstream", key: keyOf("tea") }));
    expect(await names(one)).toEqual([]);
  });

  it("serves once all workers have the first full state, and not before", async () => {
    const one = await driven();
    await one.proxy.apply(planOf(...EXISTING));
    expect(one.proxy.state().serving).toBe(false);
    await one.proxy.complete();
    expect(one.proxy.state().serving).toBe(true);
    await one.proxy.close(1_000);
    expect(one.proxy.state().serving).toBe(false);
  });

  it("starts NGINX again when its master is killed, frees the ports of the workers, and brings everything back", async () => {
    const one = await driven();
    await one.proxy.apply(planOf(...EXISTING));
    one.proxy.setPeerStates([{ upstream: keyOf("tea"), address: "127.0.0.1", port: 8001, state: "down" }]);
    await until("the states arrive", async () => (await names(one)).length === 4);
    const before = await one.client.state();
    process.kill(before.master, "SIGKILL");
    await until("another master answers", async () => {
      const now = await one.client.state().catch(() => undefined);
      return now !== undefined && now.master !== before.master && now.count === 4;
    });
    expect(await names(one)).toHaveLength(4);
    for (const { pid } of before.workers) await until("the old workers go", () => !existsSync(`/proc/${pid}`));
    expect(one.supervisor.restarts).toBe(1);
    // A change after that is a change as any other.
    const { failures } = await one.proxy.apply(planOf(proxyHost("c.example.com", "tea")));
    expect(failures).toEqual([]);
    // Workers of the dead master may have taken it, and are ended then: the next ones are told anew.
    await until("it is there", async () => (await names(one).catch((): string[] => [])).includes("1:c.example.com"));
  });

  it("waits with changes while NGINX is away", async () => {
    const one = await driven();
    await one.proxy.apply(planOf(...EXISTING));
    const { master } = await one.client.state();
    process.kill(master, "SIGKILL");
    const { failures } = await one.proxy.apply(planOf(proxyHost("c.example.com", "tea")));
    expect(failures).toEqual([]);
    expect(await names(one)).toContain("1:c.example.com");
  });

  it("notices that somebody else has changed the state, and repairs it", async () => {
    const one = await driven();
    await one.proxy.apply(planOf(...EXISTING));
    const before = (await one.client.pieces()).pieces;
    const { makePiece } = await import("../../controller/proxies/nginx/piece.js");
    const foreign = [makePiece(1, HOSTS[0], undefined), makePiece(1, "foreign.example.com", Buffer.from("x"))];
    await one.client.post(foreign);
    await until("it is repaired", async () => {
      return JSON.stringify((await one.client.pieces()).pieces) === JSON.stringify(before);
    });
  });

  it("starts with what the journal holds, and takes away what is not wanted any more once all is there", async () => {
    const runDir = temporaryFolder();
    const first = await driven({ runDir });
    await first.proxy.apply(planOf(...EXISTING));
    await first.proxy.close(1_000);
    const second = await driven({ runDir });
    expect(await names(second)).toHaveLength(3);
    await second.proxy.apply(planOf(upstreamStep("tea", [8001]), proxyHost(HOSTS[0], "tea")));
    expect(await names(second)).toHaveLength(3);
    await second.proxy.complete();
    expect(await names(second)).toEqual([`1:${HOSTS[0]}`, `2:${keyOf("tea")}`]);
  });

  it("does not start in a folder where another controller is at work, and leaves that one's NGINX alone", async () => {
    const runDir = temporaryFolder();
    const first = await driven({ runDir });
    await first.proxy.apply(planOf(...EXISTING));
    const before = readFileSync(first.folder.journal);
    const { master } = await first.client.state();
    const second = await makeDriven({ runDir });
    await expect(second.proxy.listen()).rejects.toThrow(/another controller is at work/);
    expect((await first.client.state()).master).toBe(master);
    expect(readFileSync(first.folder.journal)).toEqual(before);
    await first.proxy.close(1_000);
    const third = await driven({ runDir });
    expect(await names(third)).toHaveLength(3);
  });

  it("takes a folder over from a controller that was killed", async () => {
    const runDir = temporaryFolder();
    const { folder } = await makeDriven({ runDir });
    const script = `require("node:net").createServer().listen(${JSON.stringify(folder.claim)}, () => console.log("held"))`;
    const holder = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    await once(holder.stdout, "data");
    holder.kill("SIGKILL");
    await once(holder, "exit");
    expect(existsSync(folder.claim)).toBe(true);
    await driven({ runDir });
  });

  it("keeps what it writes to itself", async () => {
    const runDir = temporaryFolder();
    const one = await driven({ runDir, defaultCertificate: makeCertificate("default") });
    expect(statSync(one.folder.path).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(one.folder.path)) {
      const found = statSync(join(one.folder.path, name));
      if (found.isFile() && name !== "nginx.pid") expect([name, found.mode & 0o777]).toEqual([name, 0o600]);
    }
  });

  it("says why NGINX does not start, and leaves nothing behind", async () => {
    const one = await makeDriven({ http: "no_such_directive on;" });
    await expect(one.proxy.listen()).rejects.toThrow(/unknown directive "no_such_directive"/);
    expect(existsSync(one.folder.path)).toBe(false);
  });

  it("ends NGINX, and takes its temporary folder away", async () => {
    const one = await driven();
    const { master, workers } = await one.client.state();
    await one.proxy.close(1_000);
    for (const pid of [master, ...workers.map(({ pid }) => pid)]) expect(existsSync(`/proc/${pid}`)).toBe(false);
    expect(existsSync(one.folder.path)).toBe(false);
  });

  it("leaves no worker behind where it is told to end just when the master has died", async () => {
    const one = await driven();
    const { master, workers } = await one.client.state();
    process.kill(master, "SIGKILL");
    await one.proxy.close(1_000);
    for (const { pid } of workers) await until("the workers go", () => !existsSync(`/proc/${pid}`));
  });

  it("passes lines of NGINX's log on", async () => {
    const one = await driven();
    await until("a line of the log comes", () => one.lines.some(({ message }) => message === "nginx"));
    const line = one.lines.find(({ message }) => message === "nginx");
    expect(line).toMatchObject({ severity: "notice", pid: expect.any(Number), text: expect.any(String) });
  });
});
