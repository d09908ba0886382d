import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { endAfterwards, isAlive, KEY, makeRunDir, moodyPeer, pidOf, startClient } from "./client-support.js";
import { until } from "./health-support.js";

cleanUpAfterEach();

describe("with a run folder", () => {
  it("probing goes on while the controller is away, and the next one has the states at once", async () => {
    const [good, bad] = [await moodyPeer(), await moodyPeer()];
    bad.status = 500;
    const runDir = makeRunDir();
    const first = startClient({ runDir });
    first.set(KEY, [good.id, bad.id]);
    first.set("Ingress/default/old/x", [good.id]);
    first.client.ready();
    await until("all are known", () => first.states.size === 3);
    const pid = await pidOf(first.client);
    await first.client.close();
    const asked = good.asked;
    await until("it probes on", () => good.asked > asked + 3);
    bad.status = 200;
    good.status = 500;
    await until("both were asked again", () => bad.asked > asked + 10);

    const second = startClient({ runDir });
    expect(await pidOf(second.client)).toBe(pid);
    // As of an upstream that is told of before and one that is told of after the states have come.
    second.set(KEY, [good.id, bad.id]);
    await until("states are in force", () => second.states.size === 2);
    expect(Object.fromEntries(second.states)).toEqual({
      [`${KEY} ${good.name}`]: "down",
      [`${KEY} ${bad.name}`]: "up",
    });
    expect(second.transitions).toEqual([]);
    second.client.ready();
    await until("it says so", () => second.log.some(({ message }) => String(message).includes("found at work")));
    good.status = 200;
    await until("it is up", () => second.states.get(`${KEY} ${good.name}`) === "up");
    await second.client.close();
  });

  it("the process ends when nobody comes within the grace period", async () => {
    const mood = await moodyPeer();
    const runDir = makeRunDir();
    const { client, states, set } = startClient({ runDir, graceMs: 50 });
    set(KEY, [mood.id]);
    client.ready();
    await until("it is up", () => states.size === 1);
    const pid = await pidOf(client);
    await client.close();
    await until("it is gone", () => !isAlive(pid));
    expect(readdirSync(join(runDir, "health")).filter((name) => name.endsWith(".sock"))).toEqual([]);
    // The next one finds only the record, and starts a process of its own.
    const next = startClient({ runDir, graceMs: 50 });
    next.set(KEY, [mood.id]);
    next.client.ready();
    await until("it is up again", () => next.states.size === 1);
    endAfterwards(next.client.pid!);
  });

  it("a second controller takes the process over, and the first one keeps still", async () => {
    const mood = await moodyPeer();
    const runDir = makeRunDir();
    const first = startClient({ runDir });
    first.set(KEY, [mood.id]);
    first.client.ready();
    await until("it is up", () => first.states.size === 1);
    const pid = await pidOf(first.client);
    const second = startClient({ runDir });
    second.set(KEY, [mood.id]);
    second.client.ready();
    await until("it is up for the second", () => second.states.size === 1);
    expect(second.client.pid).toBe(pid);
    await until("the first one says so", () =>
      first.log.some(({ message }) => String(message).includes("taken it over")),
    );
    expect(first.client.pid).toBeUndefined();
    expect([...first.states.values()]).toEqual(["up"]);
  });

  it("folder and record are private, and the token stands in no argument and no environment", async () => {
    const mood = await moodyPeer();
    const runDir = makeRunDir();
    const { client, set, log } = startClient({ runDir });
    set(KEY, [mood.id]);
    client.ready();
    const pid = await pidOf(client);
    const folder = join(runDir, "health");
    const { token } = JSON.parse(readFileSync(join(folder, "process.json"), "utf8"));
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, "process.json")).mode & 0o777).toBe(0o600);
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    for (const file of ["cmdline", "environ"])
      expect(readFileSync(`/proc/${pid}/${file}`, "utf8")).not.toContain(token);
    expect(JSON.stringify(log)).not.toContain(token);
  });

  it("refuses a folder whose path is too long for a socket, and one that cannot be made", () => {
    expect(() => startClient({ runDir: join(makeRunDir(), "x".repeat(90)) })).toThrow("too long");
    expect(() => startClient({ runDir: "/dev/null/x" })).toThrow();
  });
});
