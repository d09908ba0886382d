import { beforeAll, expect, test } from "vitest";
import type { RegexEngine } from "../../core-wasm/binding/regex.js";
import { CORE_TIMEOUT, compiled, createEngine, instantiateCore } from "./core.js";
import { PatternWriter, writeText } from "./patterns.js";
import { Random } from "./random.js";

const IMAGES = 50_000;
const FUZZ_TIMEOUT = 180_000;
const PAGE = 65_536;

let engine: RegexEngine;
let core: Awaited<ReturnType<typeof instantiateCore>>;
/** Images that lie where the memory ends, so that a read outside traps. */
let seeds: Uint8Array[];
let scratch: number;

beforeAll(async () => {
  engine = await createEngine();
  core = await instantiateCore();
  scratch = core.memory.buffer.byteLength;
  core.memory.grow(16);
  const random = new Random(7);
  seeds = ["^/v([0-9]+)/items/([^/]+)$", "\\.(png|jpe?g)$", "^/api/", "a*", "[^\\x00-\\xff]", "(a|b)*a[ab]{10}"].map(
    (pattern) => compiled(engine, pattern).bytes(),
  );
  while (seeds.length < 200) {
    const writer = new PatternWriter(random, { context: seeds.length % 3 === 0, highBytes: false });
    seeds.push(compiled(engine, writer.write(2).re2).bytes());
  }
}, CORE_TIMEOUT);

/** Runs whatever is valid; a trap or a read outside throws. Returns whether it was. */
function runIfValid(image: Uint8Array, text: string): boolean {
  const end = core.memory.buffer.byteLength;
  const pointer = end - image.length;
  const bytes = new Uint8Array(core.memory.buffer);
  bytes.set(image, pointer);
  if (core.regex_validate(pointer, image.length) !== 1) return false;
  const subject = scratch;
  for (let i = 0; i < text.length; i++) bytes[subject + i] = text.charCodeAt(i);
  const slots = scratch + PAGE;
  const run = slots + 128;
  const size = core.regex_scratch_size(pointer, image.length);
  expect(size).toBeLessThanOrEqual(6.5 * PAGE);
  // A guard behind the scratch: nothing may be written beyond what was asked for.
  const guard = run + size;
  bytes.fill(0x5a, guard, guard + 64);
  expect([0, 1]).toContain(core.regex_match(pointer, image.length, subject, text.length, run, 0));
  expect([0, 1]).toContain(core.regex_match(pointer, image.length, subject, text.length, run, slots));
  const first = new DataView(bytes.buffer).getUint16(pointer + 18, true);
  const state = core.regex_run(pointer, image.length, first, subject, text.length, 0);
  for (const from of [state, text.length, 65_534, -2])
    core.regex_run(pointer, image.length, from, subject, text.length, 1);
  for (let i = 0; i < 64; i++) if (bytes[guard + i] !== 0x5a) throw new Error("wrote behind the scratch");
  return true;
}

test(
  "every image that the compiler makes is valid",
  () => {
    for (const image of seeds) expect(runIfValid(image, "/v12/items/ab.png")).toBe(true);
  },
  FUZZ_TIMEOUT,
);

test(
  "a truncated or extended image is not valid",
  () => {
    for (const image of seeds.slice(0, 40)) {
      for (let length = 0; length < image.length; length++) expect(runIfValid(image.slice(0, length), "")).toBe(false);
      expect(runIfValid(new Uint8Array([...image, 0, 0, 0, 0]), "")).toBe(false);
    }
  },
  FUZZ_TIMEOUT,
);

test(
  `${IMAGES} damaged or random images never trap, valid or not`,
  () => {
    const random = new Random(8);
    let valid = 0;
    for (let i = 0; i < IMAGES; i++) {
      const seed = random.pick(seeds);
      let image = seed.slice();
      const kind = random.below(10);
      if (kind < 6) {
        for (let flips = 1 + random.below(3); flips > 0; flips--) {
          const at = random.below(image.length);
          image[at] = (image[at] as number) ^ (1 << random.below(8));
        }
      } else if (kind < 8) {
        // Headers and the program behind the tables, where most fields are.
        const at = random.chance(50) ? random.below(20) : image.length - 1 - random.below(Math.min(image.length, 64));
        image[at] = random.below(256);
      } else if (kind === 8) {
        image = image.slice(0, random.below(image.length));
        if (image.length >= 4) new DataView(image.buffer).setUint32(0, image.length, true);
      } else {
        for (let at = 4; at < image.length; at++) image[at] = random.below(random.chance(50) ? 4 : 256);
      }
      if (runIfValid(image, writeText(random, true))) valid++;
    }
    // Both sides must have been seen often.
    expect(valid).toBeGreaterThan(IMAGES / 50);
    expect(valid).toBeLessThan(IMAGES * 0.9);
  },
  FUZZ_TIMEOUT,
);
