import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { ingress, service } from "../cli/objects.js";
import { type InstalledPackage, installPackage } from "../package/installed-package.js";
import { ask, bundle, freePort, Program, readmeProgram, replaceFile, type Server, serve } from "./node-support.js";

const SWAPS = 8;

let installed: InstalledPackage;
let site: string;
let peers: Server[];
let port: number;
let program: Program;

/** The bundle that sends everything to one of the peers. */
const siteOf = (peer: number) =>
  bundle(`${service("app", "127.0.0.1", peers[peer].port)}---\n${ingress("app", "app.example.com", "app")}`);

/** Processes of the workers. */
function workers(): number[] {
  const { pid } = program.process;
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}

beforeAll(async () => {
  installed = installPackage(false);
  site = join(installed.project, "site.njkb");
  writeFileSync(join(installed.project, "program.js"), readmeProgram("js cluster"));
  peers = await Promise.all(["first", "second"].map((name) => serve((_, response) => response.end(name))));
}, 180_000);

afterAll(() => {
  for (const peer of peers) peer.close();
  installed.remove();
});

beforeEach(async () => {
  port = await freePort();
  replaceFile(site, siteOf(0));
  program = new Program(installed.project, process.execPath, ["program.js", "site.njkb", String(port)]);
  await program.said(/^in force: 1$/);
  // In force comes before the port is open.
  while (!(await ask(port, "/").catch(() => undefined))) await new Promise((resolve) => setTimeout(resolve, 20));
});

afterEach(() => program.end());

it("workers of a cluster have a core each, and the same decisions", async () => {
  expect(workers().length).toBe(2);
  for (let i = 0; i < 20; i++) expect(await ask(port, "/")).toMatchObject({ status: 200, body: "first" });
});

it("a new bundle comes into force in every worker without a lost request", async () => {
  let asking = true;
  const answers = new Map<string, number>();
  const client = async () => {
    while (asking) {
      const { status, body } = await ask(port, "/");
      const what = `${status} ${body}`;
      answers.set(what, (answers.get(what) ?? 0) + 1);
    }
  };
  const clients = [client(), client(), client()];
  for (let i = 1; i <= SWAPS; i++) {
    replaceFile(site, siteOf(i % 2));
    await program.said(new RegExp(`^in force: ${i + 1}$`));
    // From that moment on no worker decides by the one before.
    const body = i % 2 ? "second" : "first";
    for (let asked = 0; asked < 10; asked++) expect(await ask(port, "/")).toMatchObject({ status: 200, body });
  }
  asking = false;
  await Promise.all(clients);
  expect([...answers.keys()].sort()).toEqual(["200 first", "200 second"]);
});

it("a bundle that is not sound reaches no worker", async () => {
  replaceFile(site, siteOf(1).subarray(0, 100));
  await program.said(/^refused: CORE_IMAGE_TRUNCATED$/);
  expect(await ask(port, "/")).toMatchObject({ status: 200, body: "first" });
  replaceFile(site, siteOf(1));
  await program.said(/^in force: 2$/);
  expect(await ask(port, "/")).toMatchObject({ status: 200, body: "second" });
});

it("a worker that dies is replaced, by one with the bundle that is in force", async () => {
  replaceFile(site, siteOf(1));
  await program.said(/^in force: 2$/);
  const [lost, other] = workers();
  process.kill(lost, "SIGKILL");
  await program.said(new RegExp(`^lost: ${lost}$`));
  // The other one too, once its fellow is there: what answers then has never seen another bundle.
  while (program.lines.filter((line) => line === "in force: 2").length < 2) await pause();
  process.kill(other, "SIGKILL");
  await program.said(new RegExp(`^lost: ${other}$`));
  while (program.lines.filter((line) => line === "in force: 2").length < 3) await pause();
  const now = workers();
  expect([now.length, now.includes(lost), now.includes(other)]).toEqual([2, false, false]);
  while (!(await ask(port, "/").catch(() => undefined))) await pause();
  for (let i = 0; i < 10; i++) expect(await ask(port, "/")).toMatchObject({ status: 200, body: "second" });
});

/** A primary that on SIGUSR2 loses a worker and, before it can have heard of that, loads the bundle anew. */
const LOSING = `
import cluster from "node:cluster";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Core } from "njet-kic/core";
import { coreModule } from "njet-kic/core/module";
import { ClusterPrimary, createHandler, followPrimary } from "njet-kic/core/node";

const [bundle, port] = process.argv.slice(2);
if (cluster.isPrimary) {
  const primary = new ClusterPrimary(await Core.load(coreModule()), {
    inForce: (generation) => console.log("in force: " + generation),
    workerLost: (pid) => console.log("lost: " + pid),
  });
  primary.load(readFileSync(bundle));
  primary.fork(2);
  const lose = () => {
    const { pid } = Object.values(cluster.workers)[0].process;
    process.kill(pid, "SIGKILL");
    // A zombie without threads has closed its end of the channel.
    const alive = () => !/\\) Z /.test(readFileSync("/proc/" + pid + "/stat", "utf8"));
    while (alive() || readdirSync("/proc/" + pid + "/task").length > 1);
  };
  process.on("SIGUSR2", () => {
    lose();
    console.log("loaded: " + primary.load(readFileSync(bundle)));
  });
  process.once("SIGTERM", () => primary.end());
  process.once("SIGINT", () => {
    lose();
    primary.end().then(() => console.log("ended"));
  });
} else {
  const router = await followPrimary(await coreModule());
  createServer(createHandler(router)).listen(Number(port), "127.0.0.1");
}
`;

it("a worker that has died just before a bundle is sent to it does not take the primary along", async () => {
  await program.end();
  writeFileSync(join(installed.project, "losing.js"), LOSING);
  program = new Program(installed.project, process.execPath, ["losing.js", "site.njkb", String(port)]);
  await program.said(/^in force: 1$/);
  const before = workers();
  replaceFile(site, siteOf(1));
  program.process.kill("SIGUSR2");
  await program.said(/^loaded: 2$/);
  const lost = Number((await program.said(/^lost: /)).slice("lost: ".length));
  expect(before).toContain(lost);
  // Told once all workers there are have it: the one that stayed, and the one in the place of the lost.
  while (workers().length < 2 || workers().includes(lost)) await pause();
  await program.said(/^in force: 2$/);
  while (!(await ask(port, "/").catch(() => undefined))) await pause();
  for (let i = 0; i < 10; i++) expect(await ask(port, "/")).toMatchObject({ status: 200, body: "second" });
});

it("a worker that has died just before the primary ends does not take the primary along", async () => {
  await program.end();
  program = new Program(installed.project, process.execPath, ["losing.js", "site.njkb", String(port)]);
  await program.said(/^in force: 1$/);
  program.process.kill("SIGINT");
  await program.said(/^ended$/);
});

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
