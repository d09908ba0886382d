import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRequestSpec } from "../../controller/cli/request-line.js";
import { loadCore } from "../../controller/core-file.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { compilePeerSetImage, compileShardImage } from "../../core-wasm/binding/images.js";
import { modelOf, strictVectors } from "../model/model-support.js";
import type { Nginx } from "../support/nginx.js";
import { Random } from "../support/random.js";
import { RandomTraffic } from "./random-traffic.js";
import { Replay } from "./replay.js";
import { compare, nativeParts, pidOf, startWorker } from "./worker.js";

const REQUESTS = 100_000;
const BATCH = 5_000;

const parts = await nativeParts();

describe.skipIf(parts.reason !== undefined)("the native core in an NGINX worker answers as core.wasm in Node", () => {
  let core: Core;
  let worker: Nginx;
  let pid: string;

  beforeAll(async () => {
    if (parts.reason !== undefined) return;
    core = await loadCore();
    worker = await startWorker(parts);
    pid = await pidOf(worker);
  });

  afterAll(async () => {
    await worker?.close();
  });

  for (const vector of strictVectors()) {
    it(`to every request of the vector ${vector.name}`, async () => {
      const replay = new Replay(core);
      const { hosts, upstreams } = modelOf(vector.objects).snapshot();
      for (const { peers } of upstreams.values()) replay.loadPeers(compilePeerSetImage(core, peers));
      for (const rules of hosts.values()) replay.loadShard(compileShardImage(core, rules));
      for (const { request } of vector.cases) replay.decide(parseRequestSpec(request), 0, 0);
      const lines = await compare(worker, replay);
      replay.free();
      expect(lines.length).toBeGreaterThan(vector.cases.length);
    });
  }

  it(`to ${REQUESTS} random requests, under changes of everything`, { timeout: 600_000 }, async () => {
    const replay = new Replay(core);
    const random = new Random(6);
    const traffic = new RandomTraffic(core, random);
    const kinds = new Map<string, number>();
    for (let i = 0; i < 800; i++) traffic.change(replay);
    for (let done = 0; done < REQUESTS; done += BATCH) {
      for (let i = 0; i < BATCH; i++) {
        if (random.onceIn(25)) traffic.change(replay);
        traffic.exchange(replay);
      }
      for (const line of await compare(worker, replay)) {
        const kind = line.split("|", 2).join(" ");
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      }
    }
    replay.free();
    // All kinds of decisions were met, in numbers.
    expect(kinds.get("proxy ")).toBeGreaterThan(REQUESTS / 10);
    for (const kind of [
      "proxy ",
      "return 400",
      "return 404",
      "return 414",
      "return 502",
      "return 503",
      "busy",
      "none",
    ]) {
      expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan(20);
    }
    expect([...kinds].filter(([kind]) => kind.startsWith("redirect 30")).length).toBeGreaterThan(5);
  });

  it("in the worker that was there at the beginning, with no global variable of Lua written", async () => {
    expect(await pidOf(worker)).toBe(pid);
    expect(worker.errorLog()).not.toMatch(/global Lua variable|\[(error|crit|alert|emerg)\]/);
  });
});
