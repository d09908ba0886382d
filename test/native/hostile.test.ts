import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { FEATURE_PEERS, FEATURE_RULES, FEATURE_TARGETS } from "../core/feature-tables.js";
import { coveredHost, hostileImage } from "../core/hostile-image.js";
import type { Nginx } from "../support/nginx.js";
import { Random } from "../support/random.js";
import { compileImages } from "../support/raw-core.js";
import { Replay } from "./replay.js";
import { compare, nativeParts, pidOf, startWorker } from "./worker.js";

const SHARDS = 40_000;
const PEER_SETS = 10_000;
const BATCH = 2_000;

const parts = await nativeParts();

function request(host: string, target: string) {
  const address = { clientAddress: "10.0.0.1", clientPort: 9 };
  const header = (name: string) => (name.length % 2 === 0 ? "a=1; b=2" : undefined);
  return { method: "GET", scheme: "http", host, target, protocol: "HTTP/1.1", ...address, header } as const;
}

describe.skipIf(parts.reason !== undefined)("a worker of NGINX, sent images that mean harm", () => {
  let core: Core;
  let worker: Nginx;
  let pid: string;
  let images: ReturnType<typeof compileImages>;

  beforeAll(async () => {
    if (parts.reason !== undefined) return;
    core = await loadCore();
    images = compileImages(core, FEATURE_RULES, FEATURE_PEERS);
    worker = await startWorker(parts);
    pid = await pidOf(worker);
  });

  afterAll(async () => {
    await worker?.close();
  });

  it(`refuses ${SHARDS} shards as core.wasm does, or decides by them as core.wasm does`, {
    timeout: 600_000,
  }, async () => {
    const random = new Random(5);
    const replay = new Replay(core);
    for (const image of images.sets) replay.loadPeers(image);
    let accepted = 0;
    for (let i = 0; i < SHARDS; i++) {
      const image = hostileImage(random, images.shards, i);
      if (replay.loadShard(image)) {
        accepted++;
        const host = coveredHost(image);
        for (let k = 0; k < 5; k++) {
          const target = FEATURE_TARGETS[(i + k) % FEATURE_TARGETS.length];
          replay.decide(request(host, target), random.word(), 0, true);
        }
      }
      if (i % BATCH === 0) await compare(worker, replay);
    }
    await compare(worker, replay);
    replay.free();
    expect(accepted).toBeGreaterThan(SHARDS / 50);
    expect(accepted).toBeLessThan(SHARDS / 2);
  });

  it(`refuses ${PEER_SETS} peer sets as core.wasm does, or picks from them as core.wasm does`, {
    timeout: 600_000,
  }, async () => {
    const random = new Random(8);
    const replay = new Replay(core);
    for (const image of images.shards) replay.loadShard(image);
    const samples = images.sets.filter((image) => image.length < 20_000);
    let accepted = 0;
    for (let i = 0; i < PEER_SETS; i++) {
      if (replay.loadPeers(hostileImage(random, samples, i))) {
        accepted++;
        for (const target of ["/a/b/x", "/a/b/x?q=1"])
          replay.decide(request("example.com", target), random.word(), 0, true);
      }
      if (i % BATCH === 0) await compare(worker, replay);
    }
    await compare(worker, replay);
    replay.free();
    expect(accepted).toBeGreaterThan(PEER_SETS / 200);
  });

  it("compiles the deepest patterns, and refuses those beyond, as core.wasm does", async () => {
    const replay = new Replay(core);
    for (const depth of [1, 100, 249, 250, 251, 1000]) {
      replay.regex(`${"(".repeat(depth)}a${")".repeat(depth)}`);
      replay.regex(`${"(?:b|".repeat(depth)}a${")*".repeat(depth)}`);
    }
    for (const pattern of ["a{1000}", "(a{30}){30}", "x*".repeat(2000), "[a-z]+$", "(", "(?=a)"]) replay.regex(pattern);
    const lines = await compare(worker, replay);
    replay.free();
    expect(lines.filter((line) => line === "0|0").length).toBeGreaterThan(8);
    expect(lines.filter((line) => line.startsWith("-1|")).length).toBeGreaterThan(3);
  });

  it("lives on, decides, and has met no trap", async () => {
    const replay = new Replay(core);
    for (const image of images.sets) replay.loadPeers(image);
    for (const image of images.shards) replay.loadShard(image);
    for (const target of FEATURE_TARGETS) replay.decide(request("example.com", target), 7, 0);
    replay.only("T", [], "0");
    const lines = await compare(worker, replay);
    expect(lines.filter((line) => line.startsWith("proxy|")).length).toBeGreaterThan(0);
    replay.free();
    expect(await pidOf(worker)).toBe(pid);
    expect(worker.errorLog()).not.toMatch(/\[(error|crit|alert|emerg)\]|exited on signal/);
  });
});
