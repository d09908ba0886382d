import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Probe } from "../../controller/health/attempt.js";
import { FrameReader, frameOf, MOST_FRAME } from "../../controller/health/frames.js";
import { type Command, decodeReport, encodeCommand, type Report } from "../../controller/health/messages.js";
import { ProbeServer, type ProbeServerOptions } from "../../controller/health/probe-server.js";
import { HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import { sharedCore } from "../support/core.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { checkedUpstream, until } from "./health-support.js";

cleanUpAfterEach();

const TOKEN = "a".repeat(64);

/** A server of this process, whose probes end as `passes` says. */
async function startServer(passes: (address: string) => boolean, options: Partial<ProbeServerOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-server-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  const probe: Probe = ({ address }, done) => {
    const soon = setImmediate(() => done({ passed: passes(address), reason: "seen" }));
    return () => clearImmediate(soon);
  };
  const ended: string[] = [];
  const server = new ProbeServer({
    tracker: new HealthTracker(sharedCore),
    probe,
    limit: 10_000,
    token: TOKEN,
    graceMs: 60_000,
    now: () => performance.now(),
    random: () => 0,
    onEnd: () => ended.push("ended"),
    ...options,
  });
  cleanup(() => server.close());
  const path = join(folder, "s.sock");
  await server.listen(path);
  return { path, ended };
}

/** A controller that has said hello. */
function controller(path: string) {
  const reports: Report[] = [];
  const socket: Socket = connect(path);
  const reader = new FrameReader(MOST_FRAME);
  socket.on("data", (part) => {
    for (const message of reader.push(part)) reports.push(decodeReport(message));
  });
  socket.on("error", () => undefined);
  cleanup(() => socket.destroy());
  const send = (command: Command) => socket.write(frameOf(encodeCommand(command)));
  send({ type: "hello", version: 1, token: TOKEN });
  const states = () =>
    new Map(
      reports.flatMap((report) =>
        report.type === "states" ? report.peers.map((peer) => [`${peer.upstream} ${peer.address}`, peer.state]) : [],
      ),
    );
  return { socket, reports, send, states };
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => `10.0.${i >> 8}.${i & 255}:80`);

describe("the probe server", () => {
  it("keeps no more than the last state of each peer for a controller that does not read", async () => {
    let probes = 0;
    let frozen = false;
    // Up and down in turn, each at every probe.
    const turns = new Map<string, boolean>();
    const { path } = await startServer((address) => {
      probes++;
      const next = frozen ? true : !(turns.get(address) ?? false);
      turns.set(address, next);
      return next;
    });
    const { socket, send, states } = controller(path);
    const upstream = checkedUpstream("u", ids(1000), { interval: 50 });
    send({ type: "set", upstream });
    await until("all are known", () => states().size === 1000);
    socket.pause();
    const read = socket.bytesRead;
    await until("there were many transitions", () => probes > 60_000);
    frozen = true;
    const before = probes;
    await until("all are up for good", () => probes > before + 3000);
    socket.resume();
    await until("it is told", () => [...states().values()].every((state) => state === "up"));
    // A transition takes some 40 bytes: what was not coalesced is in the buffers of the system.
    expect(socket.bytesRead - read).toBeLessThan(1_000_000);
  });

  it("tells with each state how many commands it had taken in", async () => {
    const { path } = await startServer(() => true);
    const { reports, send } = controller(path);
    send({ type: "set", upstream: checkedUpstream("u", ["10.0.0.1:80"], { interval: 20 }) });
    send({ type: "remove", key: "v" });
    const report = await until("there is one", () => reports.find(({ type }) => type === "states"));
    expect(report).toMatchObject({ at: 2, known: false });
  });

  it("tells a controller that comes how all peers are, and drops what it does not name", async () => {
    const { path } = await startServer((address) => address !== "10.0.0.2");
    const first = controller(path);
    for (const key of ["one", "two"]) {
      first.send({ type: "set", upstream: checkedUpstream(key, ids(3), { interval: 20 }) });
    }
    await until("all are known", () => first.states().size === 6);
    const second = controller(path);
    await until("they are told", () => second.states().size === 6);
    expect(second.reports[1]).toMatchObject({ type: "states", known: true, at: 0 });
    expect(first.reports.at(-1)).toEqual({ type: "refused", reason: "replaced" });
    second.send({ type: "set", upstream: checkedUpstream("one", ids(3), { interval: 20 }) });
    second.send({ type: "synced" });
    // The one that was replaced has nothing to say.
    first.send({ type: "remove", key: "one" });
    await until("it is gone", () => first.socket.destroyed || first.socket.readableEnded);
    const third = controller(path);
    await until("they are told", () => third.states().size >= 3);
    expect([...third.states().keys()].sort()).toEqual(["one 10.0.0.0", "one 10.0.0.1", "one 10.0.0.2"]);
  });

  it("ends without a controller after the grace period, and not before while there is one", async () => {
    const { path, ended } = await startServer(() => true, { graceMs: 20 });
    const { socket, reports } = controller(path);
    await until("it is let in", () => reports.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(ended).toEqual([]);
    socket.destroy();
    await until("it ends", () => ended.length > 0);
  });
});
