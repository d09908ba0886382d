import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { frameOf } from "../../controller/health/frames.js";
import { HealthClient, type HealthClientOptions } from "../../controller/health/health-client.js";
import type { ObjectEvent } from "../../controller/observability/events.js";
import { createLogger } from "../../controller/observability/logger.js";
import type { PeerState } from "../../core-wasm/binding/source.js";
import { ownTemporaryFolder } from "../cli/cli-support.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { httpPeer, tcpPeer } from "../support/peers.js";
import { check, until, upstream } from "./health-support.js";

cleanUpAfterEach();

const KEY = "VirtualServer/default/shop/api";
/** Short enough for tests; nothing waits for it but conditions. */
const often = (changes: Parameters<typeof check>[0] = {}) => check({ interval: 20, ...changes });

/** A client with all that it tells. */
function startClient(options: Partial<HealthClientOptions> = {}) {
  const log: Record<string, unknown>[] = [];
  const events: ObjectEvent[] = [];
  /** States as a proxy has them: `upstream address port`. */
  const states = new Map<string, PeerState>();
  const transitions: string[] = [];
  let counts: Record<string, number> = {};
  const client = closing(
    new HealthClient({
      logger: createLogger({ sink: { write: (line) => log.push(JSON.parse(line)) }, now: Date.now }),
      events: { record: (event) => events.push(event) },
      setPeerStates: (changed) => {
        for (const one of changed) states.set(`${one.upstream} ${one.address} ${one.port}`, one.state);
      },
      metrics: {
        peerTransition: (key, from, to) => transitions.push(`${key} ${from} ${to}`),
        checkedPeers: (now) => {
          counts = { ...now };
        },
      },
      ...options,
    }),
  );
  const set = (key: string, ids: string[], healthCheck = often()) =>
    client.update(new Map([[key, upstream(key, ids, healthCheck)]]));
  return { client, log, events, states, transitions, set, counts: () => counts };
}

/** An HTTP peer that is well or not. */
async function moodyPeer() {
  const peer = closing(await httpPeer((_request, response) => response.writeHead(mood.status).end(`${mood.asked++}`)));
  const mood = { status: 200, asked: 0, id: `127.0.0.1:${peer.port}`, name: `127.0.0.1 ${peer.port}`, peer };
  return mood;
}

function makeRunDir(): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-run-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie would still have its number.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Ends a process after the test, if it is still there. */
function endAfterwards(pid: number): void {
  cleanup(() => isAlive(pid) && process.kill(pid, "SIGKILL"));
}

async function pidOf(client: HealthClient): Promise<number> {
  const pid = await until("there is a probe process", () => client.pid);
  endAfterwards(pid);
  return pid;
}

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

describe("the socket of the probe process", () => {
  /** Sends bytes and resolves when the other side has closed; gives what it said. */
  function speak(path: string, ...parts: Buffer[]): Promise<string> {
    return new Promise((resolve, reject) => {
      let heard = "";
      const socket: Socket = connect(path, () => {
        for (const part of parts) socket.write(part);
      });
      socket.on("data", (part) => {
        heard += part.toString("latin1");
      });
      socket.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE" && error.code !== "ECONNRESET") reject(error);
      });
      socket.on("close", () => resolve(heard));
    });
  }

  it("tells nothing to who has no token, whatever it sends, and goes on", async () => {
    const mood = await moodyPeer();
    const runDir = makeRunDir();
    const { client, set, states } = startClient({ runDir });
    set(KEY, [mood.id]);
    client.ready();
    await until("it is up", () => states.size === 1);
    const pid = await pidOf(client);
    const folder = join(runDir, "health");
    const path = join(folder, readdirSync(folder).find((name) => name.endsWith(".sock"))!);
    const hello = (token: unknown) => frameOf({ type: "hello", version: 1, token });
    for (const bytes of [
      Buffer.from("GET / HTTP/1.1\r\n\r\n"),
      Buffer.alloc(1_000_000, 255),
      Buffer.from("\0\0\x04\x01"),
      frameOf({ type: "synced" }),
      frameOf({ type: "remove", key: KEY }),
      frameOf(null),
      hello("0".repeat(64)),
      hello(""),
      hello({ length: 64 }),
    ]) {
      expect(await speak(path, bytes)).toBe("");
    }
    // Its own controller is cut off for what is no message, and says everything anew.
    const { token } = JSON.parse(readFileSync(join(folder, "process.json"), "utf8"));
    const heard = await speak(path, hello(token), Buffer.from("\xff\xff\xff\xff", "latin1"));
    expect(heard).toContain('"welcome"');
    expect(isAlive(pid)).toBe(true);
  });

  it("ends the process for a controller of another version", async () => {
    const mood = await moodyPeer();
    const runDir = makeRunDir();
    const { client, set } = startClient({ runDir });
    set(KEY, [mood.id]);
    client.ready();
    const pid = await pidOf(client);
    await client.close();
    const folder = join(runDir, "health");
    const { socket, token } = JSON.parse(readFileSync(join(folder, "process.json"), "utf8"));
    await speak(join(folder, socket), frameOf({ type: "hello", version: 2, token }));
    await until("it is gone", () => !isAlive(pid));
    expect(existsSync(join(folder, socket))).toBe(false);
  });
});
