import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { tcpPeer } from "../support/peers.js";
import { KEY, moodyPeer, often, startClient } from "./client-support.js";
import { until, upstream } from "./health-support.js";

cleanUpAfterEach();

describe("health checks", () => {
  it("take a peer down after `fails` failures and bring it back after `passes` passes, and tell of it", async () => {
    const mood = await moodyPeer();
    const { client, states, set, log, events, transitions, counts } = startClient();
    set(KEY, [mood.id], often({ fails: 3, passes: 2 }));
    client.ready();
    const name = `${KEY} ${mood.name}`;
    await until("it is up", () => states.get(name) === "up");
    mood.status = 503;
    await until("it is down", () => states.get(name) === "down");
    expect(counts()).toMatchObject({ down: 1, up: 0 });
    mood.status = 200;
    await until("it is up again", () => states.get(name) === "up");
    expect(transitions).toEqual([`${KEY} unchecked up`, `${KEY} up down`, `${KEY} down up`]);
    expect(log.filter(({ message }) => message === "peer")).toMatchObject([
      { level: "info", upstream: KEY, peer: mood.id, from: "unchecked", to: "up", reason: "status 200" },
      { level: "warn", upstream: KEY, peer: mood.id, from: "up", to: "down", reason: "status 503" },
      { level: "info", upstream: KEY, peer: mood.id, from: "down", to: "up", reason: "status 200" },
    ]);
    const object = { kind: "VirtualServer", namespace: "default", name: "shop" };
    // Its first pass is no news.
    expect(events).toEqual([
      { type: "Warning", reason: "PeerDown", object, message: `peer ${mood.id} of api is down: status 503` },
      { type: "Normal", reason: "PeerUp", object, message: `peer ${mood.id} of api is up: status 200` },
    ]);
  });

  it("start no process while nothing is to be checked", async () => {
    const { client } = startClient();
    client.update(new Map([[KEY, upstream(KEY, ["127.0.0.1:1"])]]));
    client.ready();
    await client.close();
    expect(client.pid).toBeUndefined();
  });

  it("say that a peer which starts slowly is up", async () => {
    const mood = await moodyPeer();
    mood.status = 500;
    const { client, states, transitions } = startClient();
    const slow = upstream(KEY, [mood.id], often());
    slow.peers.limits = { slowStart: 50 };
    client.update(new Map([[KEY, slow]]));
    client.ready();
    await until("it is down", () => states.get(`${KEY} ${mood.name}`) === "down");
    mood.status = 200;
    await until("it is up", () => states.get(`${KEY} ${mood.name}`) === "up");
    await until("its slow start is over", () => transitions.at(-1) === `${KEY} slow-start up`);
  });

  it("forget a peer that is gone, and begin anew when it comes again", async () => {
    const [one, two] = [await moodyPeer(), await moodyPeer()];
    one.status = 500;
    const { client, states, set } = startClient();
    set(KEY, [one.id, two.id]);
    client.ready();
    await until(
      "one is down, one is up",
      () => states.get(`${KEY} ${one.name}`) === "down" && states.get(`${KEY} ${two.name}`) === "up",
    );
    set(KEY, [two.id]);
    expect(states.get(`${KEY} ${one.name}`)).toBe("unchecked");
    expect(states.get(`${KEY} ${two.name}`)).toBe("up");
    set(KEY, []);
    one.status = 200;
    set(KEY, [one.id]);
    await until("it is up", () => states.get(`${KEY} ${one.name}`) === "up");
    client.update(new Map([[KEY, upstream(KEY, [one.id])]]));
    expect(states.get(`${KEY} ${one.name}`)).toBe("unchecked");
  });

  it("check anew when the check changes", async () => {
    const mood = await moodyPeer();
    const { client, states, set, transitions } = startClient();
    set(KEY, [mood.id]);
    client.ready();
    await until("it is up", () => states.get(`${KEY} ${mood.name}`) === "up");
    set(KEY, [mood.id], often({ path: "/other", statusMatch: { negated: false, ranges: [{ from: 204, to: 204 }] } }));
    await until("it is down", () => states.get(`${KEY} ${mood.name}`) === "down");
    expect(transitions).toEqual([`${KEY} unchecked up`, `${KEY} up unchecked`, `${KEY} unchecked down`]);
  });

  it("go on while a peer hangs", async () => {
    const mood = await moodyPeer();
    const hung = closing(await tcpPeer(() => undefined));
    const { client, states, set } = startClient();
    set(KEY, [mood.id, `127.0.0.1:${hung.port}`], often({ readTimeout: 100 }));
    client.ready();
    await until("the one that hangs is down", () => states.get(`${KEY} 127.0.0.1 ${hung.port}`) === "down");
    expect(states.get(`${KEY} ${mood.name}`)).toBe("up");
  });
});
