import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { put, startRun } from "../cli/cli-support.js";
import { ingress } from "../cli/objects.js";
import { HOST, shopFolder } from "../cli/shop.js";
import { cleanUpAfterEach, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Load } from "../support/load.js";
import { noOpenNjet } from "./real-installation.js";
import { OPENNJET } from "./real-shop.js";

cleanUpAfterEach();

const LOCATIONS = [...OPENNJET, "--carrier", "locations"];

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

  it("answers 400 to a target that can't be read, and serves on", async () => {
    const running = await startRun(await shopFolder(), ...LOCATIONS);
    expect((await ask(running.http, { host: HOST, path: "/%" })).status).toBe(400);
    expect((await ask(running.http, { host: HOST })).body).toBe("one");
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
