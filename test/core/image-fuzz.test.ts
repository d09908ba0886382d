import { beforeAll, describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import { repairChecksum } from "../support/checksum.js";
import { Random } from "../support/random.js";
import { compileImages, RawTable } from "../support/raw-core.js";
import { answer, exact, hostRules, route } from "../support/rules.js";
import { FEATURE_PEERS, FEATURE_RULES, FEATURE_TARGETS } from "./feature-tables.js";
import { coveredHost, hostileImage, setWord } from "./hostile-image.js";
import { checkedDecision } from "./raw-decision.js";

const IMAGES = 200_000;
const PEER_IMAGES = 20_000;
const REQUESTS = 20;
const STATUSES = new Set([0, -2, -3, -4, -5, -6, -12]);
const S_SCRATCH = 76;
const LARGEST_SCRATCH = 1 << 20;
const GUARD_BYTES = 1024;
const GUARD = 0xa5;

let raw: RawTable;
let shards: Uint8Array[];
let peerSets: Uint8Array[];
/** End of the memory: where an image stands whose end must not be read past. */
let end: number;

beforeAll(async () => {
  const core = await loadCore();
  raw = new RawTable(core, 512, 8192);
  const rules = [...FEATURE_RULES, hostRules([route(exact("/a"), answer("a"))])];
  ({ shards, sets: peerSets } = compileImages(core, rules, FEATURE_PEERS));
  // Contexts keep the largest scratch that an image has asked for: it is had before memory is measured.
  const greedy = shards[shards.length - 1].slice();
  setWord(greedy, S_SCRATCH, LARGEST_SCRATCH);
  repairChecksum(greedy);
  expect(core.withBytes(greedy, (at, length) => raw.exports.shard_load(raw.table, at, length))).toBe(0);
  raw.load(FEATURE_RULES, FEATURE_PEERS);
  expect(checkedDecision(raw, new Random(1), "example.com", "/a/b")).toBeUndefined();
  raw.exports.release_decision(raw.context);
  raw.load(FEATURE_RULES);
  // Validating takes working memory; it is had before, so that the pages below stay the last ones.
  core.exports.free(core.exports.alloc(1 << 21));
  (core.exports.memory as WebAssembly.Memory).grow(2);
  end = core.exports.memory.buffer.byteLength;
});

/** Puts an image flush with the end of the memory, guard bytes in front of it. Returns its address. */
function place(image: Uint8Array): number {
  const at = end - image.length;
  const memory = raw.core.bytes();
  memory.fill(GUARD, at - GUARD_BYTES, at);
  memory.set(image, at);
  return at;
}

function untouched(at: number, image: Uint8Array): boolean {
  const memory = Buffer.from(raw.exports.memory.buffer);
  return (
    memory.compare(image, 0, image.length, at, at + image.length) === 0 &&
    memory.subarray(at - GUARD_BYTES, at).every((byte) => byte === GUARD)
  );
}

describe("a shard image", () => {
  it(`of ${IMAGES} hostile ones is refused, or safe to load and to match against`, { timeout: 240_000 }, () => {
    const random = new Random(20_261_202);
    const { exports, table } = raw;
    const used = exports.memory_used();
    const statuses = new Map<number, number>();
    for (let i = 0; i < IMAGES; i++) {
      const image = hostileImage(random, shards, i);
      const at = place(image);
      const status = exports.shard_validate(at, image.length);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (!STATUSES.has(status)) expect.fail(`image ${i}: status ${status}`);
      if (!untouched(at, image)) expect.fail(`image ${i}: the image or bytes before it were written`);
      if (status !== 0) continue;
      if (exports.shard_load(table, at, image.length) !== 0) expect.fail(`image ${i} is valid and not loaded`);
      const host = coveredHost(image);
      for (let k = 0; k < REQUESTS; k++) {
        const problem = checkedDecision(raw, random, host, FEATURE_TARGETS[(i + k) % FEATURE_TARGETS.length]);
        if (problem) expect.fail(`image ${i}, request ${k}: ${problem}`);
      }
      const view = new DataView(image.buffer);
      exports.release_decision(raw.context);
      exports.shard_remove(table, view.getUint32(24, true), at + 96, view.getUint32(20, true));
    }
    // All of them were met, so that each check of the loader has been at work.
    for (const status of [0, -2, -3, -4, -5, -6])
      expect(statuses.get(status) ?? 0, `status ${status}`).toBeGreaterThan(100);
    expect(statuses.get(0)).toBeGreaterThan(IMAGES / 50);
    expect(exports.memory.buffer.byteLength).toBe(end);
    // The rules that the table had at first went with the images of their patterns.
    raw.load(FEATURE_RULES);
    expect(exports.memory_used()).toBe(used);
  });

  it("is found damaged by every single bit that is flipped", () => {
    const found = new Set<number>();
    const image = shards[shards.length - 1].slice();
    for (let bit = 0; bit < image.length * 8; bit++) {
      image[bit >> 3] ^= 1 << (bit & 7);
      found.add(raw.exports.shard_validate(place(image), image.length));
      image[bit >> 3] ^= 1 << (bit & 7);
    }
    expect(found.has(0)).toBe(false);
    expect(raw.exports.shard_validate(place(image), image.length)).toBe(0);
  });

  it("is refused at every length but its own", () => {
    for (const image of shards) {
      for (let length = 0; length < image.length; length++) {
        expect(raw.exports.shard_validate(place(image), length)).toBeLessThan(0);
      }
      const longer = new Uint8Array(image.length + 8);
      longer.set(image);
      expect(raw.exports.shard_validate(place(longer), longer.length)).toBeLessThan(0);
    }
  });

  it("has the checksum that the test repairs", () => {
    for (const image of [...shards, ...peerSets]) {
      const copy = image.slice();
      repairChecksum(copy);
      expect(Buffer.compare(copy, image)).toBe(0);
    }
  });
});

describe("a peer set image with a hash key", () => {
  it(`of ${PEER_IMAGES} hostile ones is refused, or safe to load and to pick from`, { timeout: 120_000 }, () => {
    const random = new Random(77);
    const { exports, table } = raw;
    raw.load(FEATURE_RULES, FEATURE_PEERS);
    let accepted = 0;
    // Most of a ring is points; the damage is wanted in what stands before them.
    const samples = peerSets.filter((image) => image.length < 20_000);
    expect(samples.length).toBeGreaterThan(1);
    for (let i = 0; i < PEER_IMAGES; i++) {
      const image = hostileImage(random, samples, i);
      const at = place(image);
      const status = exports.peers_load(table, at, image.length);
      if (!STATUSES.has(status)) expect.fail(`image ${i}: status ${status}`);
      if (!untouched(at, image)) expect.fail(`image ${i}: the image or bytes before it were written`);
      if (status !== 0) continue;
      accepted++;
      for (const target of ["/a/b/x", "/a/b/x?q=1"]) {
        const problem = checkedDecision(raw, random, "example.com", target);
        if (problem) expect.fail(`image ${i}: ${problem}`);
      }
      exports.release_decision(raw.context);
      const key = new DataView(image.buffer);
      exports.peers_remove(table, at + key.getUint32(64, true), key.getUint32(68, true));
    }
    expect(accepted).toBeGreaterThan(PEER_IMAGES / 200);
    expect(exports.memory.buffer.byteLength).toBe(end);
  });
});
