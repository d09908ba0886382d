import { describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import { repairChecksum } from "../support/checksum.js";
import { sharedCore } from "../support/core.js";
import { compileImages } from "../support/raw-core.js";
import { answer, exact, header, hostRules, prefix, regex, route } from "../support/rules.js";

const E_CORRUPT = -6;
const S_MATCH = 28;
const S_ROUTE_COUNT = 32;
const S_ROUTES = 36;

const wordOf = (image: Uint8Array, offset: number) => new DataView(image.buffer).getUint32(offset, true);
const setWord = (image: Uint8Array, offset: number, value: number) =>
  new DataView(image.buffer).setUint32(offset, value, true);

function imageOf(...routes: Parameters<typeof hostRules>[0]): Uint8Array {
  return compileImages(sharedCore, [hostRules(routes)]).shards[0];
}

function validate(image: Uint8Array, shift = 0): number {
  const at = sharedCore.exports.alloc(image.length + 16);
  sharedCore.bytes().set(image, at + shift);
  const status = sharedCore.exports.shard_validate(at + shift, image.length);
  sharedCore.exports.free(at);
  return status;
}

/** The status of an image in which one word is another, with the checksum repaired. */
function validateWith(image: Uint8Array, offset: number, value: number): number {
  const damaged = image.slice();
  setWord(damaged, offset, value);
  repairChecksum(damaged);
  return validate(damaged);
}

/** Where a word stands that the image has once. */
function placeOf(image: Uint8Array, word: number): number {
  const places = Array.from({ length: image.length >> 2 }, (_, i) => i * 4).filter((at) => wordOf(image, at) === word);
  expect(places).toHaveLength(1);
  return places[0];
}

describe("an image", () => {
  it("is valid at any address", () => {
    const image = imageOf(route(prefix("/a"), answer("a")), route(prefix("/b"), answer("b")));
    expect([0, 1, 2, 3].map((shift) => validate(image, shift))).toEqual([0, 0, 0, 0]);
  });

  it("that claims more routes than it has is refused without a look behind its end", async () => {
    const image = imageOf(route(exact("/"), answer("a")));
    setWord(image, S_ROUTE_COUNT, 65_000);
    setWord(image, wordOf(image, S_MATCH) + 12, 64_999);
    repairChecksum(image);
    const core = await loadCore();
    // Nothing can be read behind the image without a trap: it stands at the very end of the memory.
    const memory = core.exports.memory as WebAssembly.Memory;
    memory.grow(1);
    const at = memory.buffer.byteLength - image.length;
    core.bytes().set(image, at);
    expect(core.exports.shard_validate(at, image.length)).toBe(E_CORRUPT);
  });

  it("whose trie has a child between two words is refused, at any address", () => {
    const image = imageOf(route(prefix("/"), answer("a")), route(prefix("/b"), answer("b")));
    // The root has one terminal and one child: header, label, terminal, eight bytes of keys, then the offset of the child.
    const child = wordOf(image, S_MATCH) + 24;
    const statuses = [1, 2, 3].flatMap((by) => {
      const damaged = image.slice();
      setWord(damaged, child, wordOf(image, child) + by);
      repairChecksum(damaged);
      return [0, 1, 2, 3].map((shift) => validate(damaged, shift));
    });
    expect(new Set(statuses)).toEqual(new Set([E_CORRUPT]));
  });

  it("whose trie has a child inside of a node is refused", () => {
    const image = imageOf(route(prefix("/"), answer("a")), route(prefix("/b"), answer("b")));
    const child = wordOf(image, S_MATCH) + 24;
    expect(validateWith(image, child, wordOf(image, child) + 4)).toBe(E_CORRUPT);
  });

  it("whose split ends below its total is refused", () => {
    const entries = [30, 70].map((weight) => ({ weight, action: answer("a") }));
    const image = imageOf(route(prefix("/"), { kind: "split", entries }));
    // u8 kind 4, u16 entry count 2; then the total.
    const split = placeOf(image, 4 | (2 << 16));
    expect(wordOf(image, split + 4)).toBe(100);
    expect(validateWith(image, split + 4, 101)).toBe(E_CORRUPT);
    expect(validateWith(image, split + 4, 99)).toBe(E_CORRUPT);
  });

  it("whose template reads a header that the image does not name is refused", () => {
    const image = imageOf(route(prefix("/"), answer(header("x-a"), header("x-b"))));
    // u8 op 1, u16 value slot 5: the second header, after four facts.
    const part = placeOf(image, 1 | (5 << 16));
    for (const slot of [3, 6, 127, 65_535])
      expect(validateWith(image, part, 1 | (slot << 16)), `${slot}`).toBe(E_CORRUPT);
  });

  it("with the largest regex that compiles is valid", () => {
    const image = imageOf(route(regex(`${"(a?)".repeat(12)}(?:[^a]{1,40}b){1,40}$`), answer("a")));
    expect(wordOf(image, S_ROUTES)).toBeGreaterThan(0);
    expect(validate(image)).toBe(0);
  });
});
