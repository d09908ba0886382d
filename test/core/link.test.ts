import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readModule } from "../../core-wasm/link/wasm-functions.mjs";

const named = readFileSync(new URL("../../dist/core.named.wasm", import.meta.url));
const linked = readFileSync(new URL("../../dist/core.wasm", import.meta.url));
const module = readModule(named);
const written = module.functions.map((_, index) => index);

/** What a core answers to calls that go through the allocator, CRC-32 and the regex engine. */
function answers(bytes: Uint8Array<ArrayBuffer>): number[] {
  const exports = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as unknown as Record<
    string,
    (...values: number[]) => number
  > & { memory: WebAssembly.Memory };
  const text = new TextEncoder().encode("a(b|c)*[d-f]+$abccbaddef");
  const at = exports.alloc(text.length);
  const result = exports.alloc(16);
  new Uint8Array(exports.memory.buffer).set(text, at);
  const status = exports.regex_compile(at, 14, 0, result);
  const [image, length] = new Uint32Array(exports.memory.buffer, result, 2);
  const scratch = exports.alloc(exports.regex_scratch_size(image, length));
  const slots = exports.alloc(80);
  const matches = exports.regex_match(image, length, at + 14, 10, scratch, slots);
  const groups = new Int32Array(exports.memory.buffer, slots, 4);
  return [
    exports.abi_version(),
    exports.ring_crc32(0, at, text.length),
    status,
    matches,
    ...groups,
    exports.memory_used(),
  ];
}

describe("the order of the core's functions", () => {
  it("leaves the module as the compiler wrote it where nothing is moved, names aside", () => {
    const plain = Buffer.from(module.write(written));
    expect(readModule(plain).functions).toHaveLength(module.functions.length);
    expect(Buffer.from(readModule(plain).write(written)).equals(plain)).toBe(true);
    expect(answers(Uint8Array.from(plain))).toEqual(answers(Uint8Array.from(linked)));
  });

  it("gives a module that answers the same in any order, and with locals numbered in any way", () => {
    const expected = answers(Uint8Array.from(linked));
    for (let key = 1; key <= 20; key++) {
      const order = written.toSorted((a, b) => ((a * 7919 + key) % 331) - ((b * 7919 + key) % 331) || b - a);
      expect(
        answers(
          module.write(
            order,
            written.map((index) => (index + key) % 64),
          ),
        ),
      ).toEqual(expected);
    }
  });

  it("is refused for a module with imports, whose functions have other indices", () => {
    const importing = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 2, 7, 1, 1, 97, 1, 98, 0, 0);
    expect(() => readModule(importing)).toThrow("section 2");
  });
});
