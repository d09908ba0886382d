import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Core } from "../../core-wasm/binding/core.js";
import { encodePeerSet } from "../../core-wasm/binding/peer-set.js";
import { Random } from "../support/random.js";
import { compileImages, RawTable } from "../support/raw-core.js";
import { hostRules, peers, prefix, route } from "../support/rules.js";
import { FEATURE_PEERS, FEATURE_RULES, FEATURE_TARGETS } from "./feature-tables.js";
import type { Supplies } from "./straying-belongings.js";
import { StrayingHost } from "./straying-host.js";
import { E_POINTER, OK } from "./straying-verdicts.js";

const CALLS = 60_000;
const HOSTS = 6;

const bytes = readFileSync(new URL("../../dist/core.wasm", import.meta.url));

function supplies(): Supplies {
  const core = Core.loadSync(bytes);
  const { shards, sets } = compileImages(core, FEATURE_RULES, FEATURE_PEERS);
  return {
    shards,
    peerSets: sets,
    sources: FEATURE_PEERS.map((set) => encodePeerSet(set, new Uint8Array(0))),
    patterns: ["a+b", "^(x|y)*z$", "[", "(a{1,20}){1,20}", "é\\d+", "x".repeat(5000)],
    hosts: ["example.com", "a.wild.example.com", "other.test", "", "x".repeat(300)],
    targets: [...FEATURE_TARGETS, "", "/../", `/${"a".repeat(2000)}`],
    keys: FEATURE_PEERS.map(({ key }) => key).concat("absent", ""),
  };
}

it.each(Array.from({ length: HOSTS }, (_, i) => i + 1))(
  "calls of a host that has lost its way are answered, never trap, and lose no memory (host %i)",
  { timeout: 240_000 },
  (seed) => {
    const core = Core.loadSync(bytes);
    const { exports } = core;
    const before = exports.memory_used();
    const host = new StrayingHost(exports, new Random(seed), supplies());
    for (let i = 0; i < CALLS; i++) {
      const problem = host.step();
      if (problem) expect.fail(`call ${i}: ${problem}`);
    }
    const functions = Object.keys(exports).filter((name) => name !== "memory" && name !== "abi_version");
    for (const name of functions) expect(host.calls.get(name) ?? 0, name).toBeGreaterThan(CALLS / 200);
    host.end();
    expect(exports.memory_used()).toBe(before);
  },
);

describe("free", () => {
  it("refuses tables and contexts, which go on", () => {
    const raw = new RawTable(Core.loadSync(bytes));
    raw.load([hostRules([route(prefix("/"), { kind: "proxy", upstream: "u" })])], [peers("u", [8080])]);
    expect(raw.exports.free(raw.table)).toBe(E_POINTER);
    expect(raw.exports.free(raw.context)).toBe(E_POINTER);
    expect(raw.decide("example.com", "/x").status).toBe(OK);
    raw.free();
  });

  it("refuses what the core has for itself: the record of an upstream, a loaded shard, a loaded peer set", () => {
    const raw = new RawTable(Core.loadSync(bytes));
    raw.load([hostRules([route(prefix("/"), { kind: "proxy", upstream: "u" })])], [peers("u", [8080])]);
    raw.decide("example.com", "/x");
    for (const word of [44, 48, 52]) {
      const at = raw.word(word);
      expect(at).toBeGreaterThan(0);
      for (let before = 0; before <= 128; before += 16)
        expect(raw.exports.free(at - before), `word ${word}`).toBe(E_POINTER);
    }
    raw.free();
  });

  it("leaves no tracker behind that another block is taken for", () => {
    const { exports } = Core.loadSync(bytes);
    const tracker = exports.health_new(4, 0);
    exports.free(tracker);
    const block = exports.alloc(16 + 4 * 16);
    expect(block).toBe(tracker);
    expect(exports.health_set(block, 0, 0x10001, 0, 0, 0)).toBe(E_POINTER);
  });
});

it("an upstream is given up once, where its peers go with the last shard that names it", () => {
  const core = Core.loadSync(bytes);
  const rules = hostRules([route(prefix("/"), { kind: "proxy", upstream: "u" })]);
  const { shards, sets } = compileImages(core, [rules], [peers("u", [8080]), peers("v", [8080, 8081, 8082])]);
  const before = core.memoryUsed;
  const raw = new RawTable(core);
  for (let i = 0; i < 20; i++) {
    core.withBytes(shards[0], (at, length) => raw.exports.shard_load(raw.table, at, length, 0));
    core.withBytes(sets[0], (at, length) => raw.exports.peers_load(raw.table, at, length));
    // The decision keeps the shard, which is out of use, until the next change after it is let go: that of the peers.
    expect(raw.decide("example.com", "/x").status).toBe(OK);
    core.withBytes(Buffer.from("example.com"), (at, length) => raw.exports.shard_remove(raw.table, 0, at, length));
    raw.exports.release_decision(raw.context);
    core.withBytes(Buffer.from("u"), (at, length) => raw.exports.peers_remove(raw.table, at, length));
  }
  // A slot that was given back twice would be two peers' at once.
  core.withBytes(sets[1], (at, length) => raw.exports.peers_load(raw.table, at, length));
  const set = core.withBytes(Buffer.from("v"), (at, length) => raw.exports.peers_find(raw.table, at, length));
  const tokens = [0, 1, 2].map((i) => raw.word(((raw.word(16, set) + 3) & ~3) + 4 * i, set) & 0xfffff);
  expect(new Set(tokens).size).toBe(3);
  raw.free();
  expect(core.memoryUsed).toBe(before);
});
