import { beforeAll, describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { Random } from "../support/random.js";
import { answer, equals, header, hostRules, peers, prefix, regex, request, route } from "../support/rules.js";

const SHARD_CHANGES = 100_000;
const PEER_CHANGES = 20_000;
const E_POINTER = -10;
/** A block may be 16 bytes larger than what was asked for; so many blocks live at the end of a test at most. */
const ROUNDING = 16 * 100;

let core: Core;
/** An instance of their own: nobody else's memory is counted. */
beforeAll(async () => {
  core = await loadCore();
});

const exactHost = (host: string, rules: HostRules): HostRules => ({ ...rules, pattern: { kind: "exact", host } });

/** Rules of one to some forty routes, with all that takes memory: regexes, upstreams, headers, names. */
function randomRules(random: Random, host: string): HostRules {
  const routes = Array.from({ length: 1 + random.below(random.onceIn(10) ? 40 : 6) }, (_, i) => {
    const path = `/${i}/${"x".repeat(random.below(60))}`;
    const outcome = random.onceIn(2) ? answer(path) : ({ kind: "proxy", upstream: `u${random.below(50)}` } as const);
    const conditions = [equals(header(`x-${random.below(20)}`), path)];
    return route(prefix(path), outcome, random.onceIn(3) ? { matches: [{ conditions, outcome: answer("m") }] } : {});
  });
  if (random.onceIn(10)) routes.push(route(regex(`a${random.below(9)}+b`), answer("regex")));
  return exactHost(host, hostRules(routes));
}

describe("memory stays flat", () => {
  it(`over ${SHARD_CHANGES} replacements of shards of random sizes`, { timeout: 240_000 }, () => {
    const random = new Random(8);
    const before = core.memoryUsed;
    const table = new RouteTable(core);
    const hosts = Array.from({ length: 20 }, (_, i) => `host${i}.example.com`);
    const plain = (host: string) => exactHost(host, hostRules([route(prefix("/"), answer("plain"))]));
    const images = Array.from({ length: 1000 }, (_, i) =>
      table.compileHost(randomRules(random, hosts[i % hosts.length])),
    );
    const toPlain = () => {
      for (const host of hosts) table.setHost(plain(host));
      table.decide(request("/", { host: hosts[0] }), 0);
      for (const host of hosts) table.setHost(plain(host));
      return core.memoryUsed;
    };
    const change = (i: number) => {
      if (i % 10 === 0) table.setHost(randomRules(random, random.pick(hosts)));
      else table.loadHost(random.pick(images));
      // The shard of the last decision can't be freed with its replacement, only after it.
      if (i % 3 === 0) table.decide(request("/0/x", { host: random.pick(hosts) }), random.word());
    };
    for (let i = 0; i < SHARD_CHANGES / 20; i++) change(i);
    const used = toPlain();
    const size = core.exports.memory.buffer.byteLength;
    for (let i = 0; i < SHARD_CHANGES; i++) change(i);
    expect(Math.abs(toPlain() - used)).toBeLessThanOrEqual(ROUNDING);
    expect(core.exports.memory.buffer.byteLength).toBe(size);
    table.free();
    expect(core.memoryUsed).toBe(before);
  });

  it(`over ${PEER_CHANGES} replacements of peer sets of random sizes`, { timeout: 240_000 }, () => {
    const random = new Random(9);
    const before = core.memoryUsed;
    const table = new RouteTable(core);
    const keys = Array.from({ length: 10 }, (_, i) => `u${i}`);
    const routes = keys.map((key) => route(prefix(`/${key}`), { kind: "proxy", upstream: key }));
    table.setHost(hostRules(routes));
    const one = () => {
      for (const key of keys) table.setPeers(peers(key, [80]));
      table.decide(request("/nowhere"), 0);
      for (const key of keys) table.setPeers(peers(key, [80]));
      return core.memoryUsed;
    };
    const change = (i: number) => {
      const key = random.pick(keys);
      const ports = Array.from({ length: random.below(random.onceIn(20) ? 30 : 5) }, (_, p) => 1000 + p);
      const method = { kind: random.pick(["ring", "nginx-ring"] as const), key: [header("x-user")] };
      if (random.onceIn(8)) table.removePeers(key);
      else table.setPeers(peers(key, ports, random.onceIn(3) ? { kind: "round-robin" } : method));
      if (i % 3 === 0) table.decide(request(`/${random.pick(keys)}`, { headers: { "x-user": `${i}` } }), 0);
    };
    for (let i = 0; i < PEER_CHANGES / 10; i++) change(i);
    const used = one();
    const size = core.exports.memory.buffer.byteLength;
    for (let i = 0; i < PEER_CHANGES; i++) change(i);
    expect(Math.abs(one() - used)).toBeLessThanOrEqual(ROUNDING);
    expect(core.exports.memory.buffer.byteLength).toBe(size);
    table.free();
    expect(core.memoryUsed).toBe(before);
  });

  it("when upstreams come and go that the last decision has used", () => {
    const table = new RouteTable(core);
    const cycle = (i: number) => {
      table.setPeers(peers(`u${i}`, [80, 81, 82]));
      table.setHost(hostRules([route(prefix("/"), { kind: "proxy", upstream: `u${i}` })]));
      table.decide(request("/"), 0);
      table.removeHost({ kind: "exact", host: "example.com" });
      table.removePeers(`u${i}`);
    };
    for (let i = 0; i < 50; i++) cycle(i);
    const used = core.memoryUsed;
    for (let i = 50; i < 1000; i++) cycle(i);
    // Keys differ in length, and so do the records of upstreams.
    for (let i = 0; i < 50; i++) cycle(i);
    expect(Math.abs(core.memoryUsed - used)).toBeLessThanOrEqual(ROUNDING);
    table.free();
  });

  it("when upstreams are changed that the last decision has used, and then are not changed again", () => {
    const table = new RouteTable(core);
    const large = Array.from({ length: 50 }, (_, i) => 1000 + i);
    const keys = Array.from({ length: 50 }, (_, i) => `u${i + 10}`);
    const fill = (decides: boolean) => {
      for (const key of keys) {
        table.setHost(hostRules([route(prefix("/"), { kind: "proxy", upstream: key })]));
        table.setPeers(peers(key, large, { kind: "ring", key: [] }));
        if (decides) expect(table.decide(request("/"), 0)).toMatchObject({ upstreamKey: key });
        table.setPeers(peers(key, [80]));
      }
      table.decide(request("/", { host: "nobody" }), 0);
      table.setPeers(peers(keys[0], [80]));
      const used = core.memoryUsed;
      for (const key of keys) table.removePeers(key);
      return used;
    };
    const used = fill(false);
    expect(Math.abs(fill(true) - used)).toBeLessThanOrEqual(ROUNDING);
    table.free();
  });

  it("when tables are made, used and ended", () => {
    const random = new Random(10);
    const cycle = () => {
      const table = new RouteTable(core);
      for (let i = 0; i < 5; i++) table.setHost(randomRules(random, `host${i}`));
      for (let i = 0; i < 5; i++) table.setPeers(peers(`u${i}`, [1, 2, 3]));
      for (let i = 0; i < 5; i++) table.decide(request("/0/x", { host: `host${i}` }), 0);
      table.explain(request("/", { headers: { "x-1": "v".repeat(50_000) } }), 0);
      table.free();
    };
    cycle();
    const used = core.memoryUsed;
    for (let i = 0; i < 200; i++) cycle();
    expect(core.memoryUsed).toBe(used);
  });

  it("when contexts are made and freed, in any order", () => {
    const random = new Random(11);
    const { exports } = core;
    const table = exports.table_new();
    const used = core.memoryUsed;
    const contexts: number[] = [];
    for (let i = 0; i < 5000; i++) {
      if (contexts.length < 20 && !random.onceIn(3)) {
        const context = exports.context_new(table, random.below(5000), random.below(5000));
        expect(context).toBeGreaterThan(0);
        expect(exports.context_trace(context, random.below(2))).toBe(0);
        contexts.push(context);
      } else if (contexts.length > 0) {
        expect(exports.context_free(contexts.splice(random.below(contexts.length), 1)[0])).toBe(0);
      }
    }
    for (const context of contexts) exports.context_free(context);
    expect(core.memoryUsed).toBe(used);
    exports.table_free(table);
  });

  it("when sources are refused", () => {
    const table = new RouteTable(core);
    const bad = hostRules([
      ...Array.from({ length: 30 }, (_, i) => route(prefix(`/${i}`), answer("a"))),
      route(regex("("), answer("b")),
    ]);
    const tryIt = () => expect(() => table.setHost(bad)).toThrow("regex");
    tryIt();
    const used = core.memoryUsed;
    for (let i = 0; i < 1000; i++) tryIt();
    expect(core.memoryUsed).toBe(used);
    table.free();
  });
});

describe("the allocator", () => {
  it("never hands out memory twice, keeps what is written, and joins what is freed", () => {
    const random = new Random(12);
    const { exports } = core;
    const used = core.memoryUsed;
    const blocks: { at: number; size: number; mark: number }[] = [];
    const sizes = [0, 1, 15, 16, 17, 255, 256, 257, 4096, 70_000];
    for (let i = 0; i < 60_000; i++) {
      if (blocks.length < 200 && !random.onceIn(2)) {
        const size = random.onceIn(2) ? random.pick(sizes) : random.below(2000);
        const block = { at: exports.alloc(size), size, mark: random.below(256) };
        expect(block.at % 16).toBe(0);
        core.bytes().fill(block.mark, block.at, block.at + size);
        blocks.push(block);
      } else if (blocks.length > 0) {
        const { at, size, mark } = blocks.splice(random.below(blocks.length), 1)[0];
        const intact = core
          .bytes()
          .subarray(at, at + size)
          .every((byte) => byte === mark);
        if (!intact) expect.fail(`${size} bytes at ${at} were changed`);
        expect(exports.free(at)).toBe(0);
        expect(exports.free(at)).toBe(E_POINTER);
      }
      if (i % 1000 === 0) {
        const inOrder = [...blocks].sort((a, b) => a.at - b.at);
        expect(inOrder.every((block, k) => k === 0 || inOrder[k - 1].at + inOrder[k - 1].size <= block.at)).toBe(true);
      }
    }
    for (const { at } of blocks) exports.free(at);
    expect(core.memoryUsed).toBe(used);
  });

  it("gives one large block again after many small ones are freed in any order", () => {
    const random = new Random(13);
    const { exports } = core;
    const large = exports.alloc(1 << 20);
    exports.free(large);
    const size = exports.memory.buffer.byteLength;
    const small = Array.from({ length: 10_000 }, () => exports.alloc(64));
    for (const at of random.shuffled(small)) exports.free(at);
    expect(exports.alloc(1 << 20)).toBe(large);
    exports.free(large);
    expect(exports.memory.buffer.byteLength).toBe(size);
  });

  it("answers 0 for what can't be had, and goes on", () => {
    const { exports } = core;
    const used = core.memoryUsed;
    for (const size of [(1 << 30) + 1, 0x7fffffff, 0xffffffff]) expect(exports.alloc(size)).toBe(0);
    const at = exports.alloc(100);
    expect(at).toBeGreaterThan(0);
    exports.free(at);
    expect(core.memoryUsed).toBe(used);
  });

  it("frees only what it has given", () => {
    const { exports } = core;
    const at = exports.alloc(256);
    core.bytes().fill(0, at, at + 256);
    const end = exports.memory.buffer.byteLength;
    for (const pointer of [0, 1, 16, at + 1, at + 16, at - 16, at + 8, end, end - 16, 0xfffffff0, 0xffffffff]) {
      expect(exports.free(pointer), `${pointer}`).toBe(E_POINTER);
    }
    expect(exports.free(at)).toBe(0);
  });
});
