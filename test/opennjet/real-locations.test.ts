import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { MARKER_HOST } from "../../controller/proxies/opennjet/locations/marker.js";
import { questionFolder } from "../../controller/proxies/opennjet/locations/questions.js";
import { usableCores } from "../../controller/proxies/usable-cores.js";
import { put, startRun } from "../cli/cli-support.js";
import { ingress, service } from "../cli/objects.js";
import { HOST, namedPeer, shopFolder } from "../cli/shop.js";
import { until } from "../nginx/driven-nginx.js";
import { cleanUpAfterEach, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { noOpenNjet } from "./real-installation.js";
import { OPENNJET, runFolder } from "./real-shop.js";

cleanUpAfterEach();

const LOCATIONS = [...OPENNJET, "--carrier", "locations"];

const OTHER = "other.example.com";
const TWO = "{ service: { name: two, port: { number: 80 } } }\n";

/** Changes of a shop's folder, and what the host of it has to answer then, or the other host. */
const ROWS: { change: string; make(folder: string): void | Promise<void>; host: string; answer: string }[] = [
  {
    change: "an Ingress that is created",
    make: (folder) => put(folder, "more.yaml", ingress("more", OTHER, "two")),
    host: OTHER,
    answer: "two",
  },
  {
    change: "an Ingress that is deleted",
    make: (folder) => rmSync(join(folder, "shop.yaml")),
    host: HOST,
    answer: "404",
  },
  {
    change: "another host of an Ingress",
    make: (folder) => put(folder, "shop.yaml", ingress("shop", OTHER, "one")),
    host: OTHER,
    answer: "one",
  },
  {
    change: "another path of an Ingress",
    make: (folder) => put(folder, "shop.yaml", ingress("shop", HOST, "one").replace("path: /,", "path: /tea,")),
    host: HOST,
    answer: "404",
  },
  {
    change: "another service of an Ingress",
    make: (folder) => put(folder, "shop.yaml", ingress("shop", HOST, "two")),
    host: HOST,
    answer: "two",
  },
  {
    change: "other pods of a service",
    make: async (folder) => put(folder, "one.yaml", service("one", "127.0.0.1", (await namedPeer("three")).port)),
    host: HOST,
    answer: "three",
  },
];

describe.skipIf(noOpenNjet)("run --proxy opennjet --carrier locations", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it.each(["::", "::1"])("finds its server by the API where it listens at %s", async (address) => {
    const running = await startRun(await shopFolder(), ...LOCATIONS, "--address", address);
    const asked = await fetch(`http://[::1]:${running.http}/`, { headers: { connection: "close" } });
    expect(asked.status).toBe(404);
    if (address === "::") expect((await ask(running.http, { host: HOST })).body).toBe("one");
  });

  it("serves a folder, and moves a host to another service under load without one failed request", async () => {
    const folder = await shopFolder();
    const running = await startRun(folder, ...LOCATIONS);
    expect((await ask(running.http, { host: HOST })).body).toBe("one");
    expect((await ask(running.http, { host: "nobody.example.com" })).status).toBe(404);
    const load = new Load(running.http, HOST);
    for (const to of ["two", "one", "two", "one", "two"]) {
      await load.more(50);
      put(folder, "shop.yaml", ingress("shop", HOST, to));
      await eventually(() => load.latest === to, 20_000);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  it.each(ROWS)("takes $change with the workers that it has", async ({ make, host, answer }) => {
    const folder = await shopFolder();
    const run = runFolder();
    const running = await startRun(folder, ...LOCATIONS, "--run-dir", run.path);
    const processes = async () => {
      const { master, workers } = await run.client().state();
      return [master, ...workers.map(({ pid }) => pid)];
    };
    const before = await processes();
    await make(folder);
    await until("the change acts", async () => {
      const { status, body } = await ask(running.http, { host });
      return (status === 200 ? body : String(status)) === answer;
    });
    expect(await processes()).toEqual(before);
  });

  it("serves on where a worker is killed, and its successor has all locations", async () => {
    const folder = await shopFolder();
    const run = runFolder();
    const running = await startRun(folder, ...LOCATIONS, "--run-dir", run.path);
    const pids = async () => (await run.client().state()).workers.map(({ pid }) => pid);
    const [stays, killed] = await pids();
    process.kill(killed, "SIGKILL");
    await until("it is gone", () => !existsSync(`/proc/${killed}`));
    // Changes go on meanwhile.
    put(folder, "more.yaml", ingress("more", OTHER, "two"));
    await until("there are two again", async () => (await pids().catch(() => [])).length === 2);
    expect(await pids()).toContain(stays);
    const answers = async (host: string) => {
      const all = await Promise.all(Array.from({ length: 60 }, () => ask(running.http, { host })));
      return [...new Set(all.map(({ body }) => body))];
    };
    await until("both have the change", async () => (await answers(OTHER)).join() === "two");
    expect(await answers(HOST)).toEqual(["one"]);
  });

  it("has a worker for each core that it may use, and knows how many", async () => {
    const run = runFolder();
    const options = LOCATIONS.filter((option) => option !== "--workers" && option !== "2");
    await startRun(await shopFolder(), ...options, "--run-dir", run.path);
    expect((await run.client().state()).workers).toHaveLength(usableCores());
  });

  it("answers 400 to a target that can't be read, and serves on", async () => {
    const running = await startRun(await shopFolder(), ...LOCATIONS);
    expect((await ask(running.http, { host: HOST, path: "/%" })).status).toBe(400);
    expect((await ask(running.http, { host: HOST })).body).toBe("one");
  });

  it("tells no peer where questions are asked, also where one serves every host", async () => {
    const run = runFolder();
    const folder = await shopFolder();
    put(folder, "any.yaml", ingress("any", HOST, "two").replace(/rules:.*/s, `defaultBackend: ${TWO}`));
    const running = await startRun(folder, ...LOCATIONS, "--run-dir", run.path);
    const host = MARKER_HOST.host;
    await until("it is served for any host", async () => (await ask(running.http, { host })).body === "two");
    const questions = questionFolder(readFileSync(run.inside("token"), "utf8").trim());
    expect((await ask(running.http, { host, path: `/${questions}/${"0".repeat(32)}` })).status).toBe(404);
  });

  it("is not taken for late where one worker alone gets all connections", async () => {
    const running = await startRun(await shopFolder(), ...LOCATIONS, "--workers", "2");
    const until = performance.now() + 12_000;
    while (performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 500));
    expect(
      running
        .log()
        .filter(({ level }) => level === "error")
        .map(({ text }) => text),
    ).toEqual([]);
    expect(running.stderr).not.toContain("not all workers");
  });
});
