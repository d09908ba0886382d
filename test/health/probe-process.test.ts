import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ownTemporaryFolder } from "../cli/cli-support.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { endAfterwards, isAlive, KEY, makeRunDir, moodyPeer, often, pidOf, startClient } from "./client-support.js";
import { until } from "./health-support.js";

cleanUpAfterEach();

describe("the probe process", () => {
  it("is replaced when it dies; the last states stay, and are where the new one begins", async () => {
    const [good, bad] = [await moodyPeer(), await moodyPeer()];
    bad.status = 500;
    const { client, states, set, transitions, log } = startClient();
    set(KEY, [good.id, bad.id], often({ fails: 2, passes: 2 }));
    client.ready();
    await until("both are known", () => states.size === 2);
    const pid = await pidOf(client);
    for (let i = 0; i < 2; i++) {
      const before = client.pid;
      process.kill(before!, "SIGKILL");
      await until("there is another one", () => client.pid !== undefined && client.pid !== before);
    }
    const asked = good.asked;
    await until("it probes", () => good.asked > asked + 4);
    expect(Object.fromEntries(states)).toEqual({ [`${KEY} ${good.name}`]: "up", [`${KEY} ${bad.name}`]: "down" });
    expect(transitions).toHaveLength(2);
    expect(log.filter(({ message }) => String(message).startsWith("health process: lost"))).toHaveLength(2);
    expect(isAlive(pid)).toBe(false);
    bad.status = 200;
    await until("it counts on", () => states.get(`${KEY} ${bad.name}`) === "up");
  });

  it("is replaced when it hangs", async () => {
    const mood = await moodyPeer();
    const { client, states, set } = startClient({ hungAfterMs: 3000 });
    set(KEY, [mood.id]);
    client.ready();
    await until("it is up", () => states.size === 1);
    const pid = await pidOf(client);
    process.kill(pid, "SIGSTOP");
    await until("there is another one", () => client.pid !== undefined && client.pid !== pid);
    await until("the old one is gone", () => !isAlive(pid));
  });

  it("ends with its controller, and leaves neither process nor file", async () => {
    const mood = await moodyPeer();
    const temporary = ownTemporaryFolder();
    const { client, states, set } = startClient();
    set(KEY, [mood.id]);
    client.ready();
    await until("it is up", () => states.size === 1);
    const pid = await pidOf(client);
    expect(readdirSync(temporary).length).toBe(1);
    await client.close();
    expect(isAlive(pid)).toBe(false);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("ends cleanly on SIGTERM", async () => {
    const mood = await moodyPeer();
    const { client, set, log } = startClient({ runDir: makeRunDir() });
    set(KEY, [mood.id]);
    client.ready();
    const pid = await pidOf(client);
    process.kill(pid, "SIGTERM");
    await until("it is gone", () => !isAlive(pid));
    await until("there is another one", () => client.pid !== undefined && client.pid !== pid);
    endAfterwards(client.pid!);
    expect(log.filter(({ line }) => line !== undefined)).toEqual([]);
  });

  it("holds no more descriptors and peers after 500 changes than before", async () => {
    const moods = await Promise.all([moodyPeer(), moodyPeer(), moodyPeer()]);
    const { client, states, set } = startClient();
    const ids = moods.map(({ id }) => id);
    set(KEY, ids);
    client.ready();
    await until("all are up", () => [...states.values()].filter((state) => state === "up").length === 3);
    const pid = await pidOf(client);
    const descriptors = () => readdirSync(`/proc/${pid}/fd`).length;
    for (let i = 0; i < 500; i++) {
      set(`Ingress/default/a/${i % 7}`, ids.slice(i % 4), often({ path: `/${i}`, keepaliveTime: 10 + (i % 5) }));
      if (i % 3 === 0) client.update(new Map([[`Ingress/default/a/${i % 5}`, undefined]]));
      if (i % 50 === 0) await until("it reads on", () => client.pid === pid);
    }
    for (let i = 0; i < 7; i++) client.update(new Map([[`Ingress/default/a/${i}`, undefined]]));
    const settled = () => moods.every(({ peer }) => peer.open() <= 1);
    await until("connections are closed", settled);
    // The usual ones, the socket with its connection, and probes of three peers.
    await until("descriptors are given back", () => descriptors() < 40);
    expect([...states].filter(([name, state]) => state !== "unchecked" && !name.startsWith(KEY))).toEqual([]);
    expect(client.pid).toBe(pid);
  });
});
