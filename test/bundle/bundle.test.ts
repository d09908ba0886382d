import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { decisionJson } from "../../controller/cli/decision-json.js";
import { parseRequestSpec } from "../../controller/cli/request-line.js";
import { bundleOf } from "../../controller/model/bundle.js";
import {
  BUNDLE_KIND,
  type BundleRecord,
  CoreError,
  loadBundle,
  readBundle,
  readUpstream,
  writeBundle,
} from "../../core-wasm/binding/index.js";
import { modelOf, strictVectors } from "../model/model-support.js";
import { sharedCore } from "../support/core.js";
import { Random } from "../support/random.js";

const vectors = strictVectors();
const cafe = vectors.find(({ name }) => name === "vs-cafe-example")!;

function bundle(objects = cafe.objects): Uint8Array {
  return bundleOf(modelOf(objects).snapshot(), sharedCore).bytes;
}

/** The code with which `act` is refused. */
function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof CoreError) return error.code;
    throw error;
  }
  return "taken";
}

/** A copy whose checksum is right again after `change`. */
function resealed(bytes: Uint8Array, change: (copy: Uint8Array) => void): Uint8Array {
  const copy = bytes.slice();
  change(copy);
  new DataView(copy.buffer).setUint32(16, crc32(copy.subarray(24)), true);
  return copy;
}

const text = (value: string) => new TextEncoder().encode(value);
const record = (kind: number, key: string, content = "x"): BundleRecord => ({ kind, key, content: text(content) });

describe("a bundle", () => {
  it("gives back the records that it was made of, ordered by kind and by the bytes of their keys", () => {
    const records = [
      record(2, "b", ""),
      record(1, "\u{1f600}"),
      record(1, "\uffee"),
      record(1, ""),
      record(2, "a", "12345"),
    ];
    const read = readBundle(writeBundle(records));
    expect(read.map(({ kind, key }) => `${kind}${key}`)).toEqual(["1", "1\uffee", "1\u{1f600}", "2a", "2b"]);
    expect(new TextDecoder().decode(read[3].content)).toBe("12345");
    expect(read[4].content).toHaveLength(0);
  });

  it("has the same bytes in whatever order its records are given", () => {
    const records = Array.from({ length: 20 }, (_, i) => record(1 + (i % 3), `key ${i}`, "y".repeat(i)));
    expect(writeBundle(records.toReversed())).toEqual(writeBundle(records));
  });

  it("has the header that the page describes", () => {
    const bytes = writeBundle([record(1, "host", "content")]);
    const view = new DataView(bytes.buffer);
    expect(Buffer.from(bytes.subarray(0, 4)).toString()).toBe("NJKB");
    expect([4, 6].map((at) => view.getUint16(at, true))).toEqual([1, 0]);
    const words = [1, bytes.length, crc32(bytes.subarray(24)), 0];
    expect([8, 12, 16, 20].map((at) => view.getUint32(at, true))).toEqual(words);
    expect(bytes.length).toBe(24 + 12 + 4 + 8);
  });

  it("is not made of two records of one kind and key", () => {
    expect(refusal(() => writeBundle([record(1, "a"), record(1, "a", "z")]))).toBe("CORE_SOURCE_INVALID");
  });
});

describe("a bundle of objects", () => {
  for (const vector of vectors) {
    it(`decides the vector ${vector.name} as its objects do`, () => {
      const { table } = loadBundle(sharedCore, bundle(vector.objects));
      for (const { request: spec, expect: expected } of vector.cases) {
        expect(decisionJson(table.decide(parseRequestSpec(spec), 0)), spec.url).toMatchObject(expected);
      }
      table.free();
    });
  }

  it("tells how to talk to each upstream", () => {
    const { table, upstreams } = loadBundle(sharedCore, bundle());
    const decision = table.decide(parseRequestSpec({ url: "http://cafe.example.com.vs/index.html" }), 0);
    if (decision.action !== "proxy") return expect.fail(decision.action);
    expect(upstreams.get(decision.upstreamKey)).toMatchObject({
      key: decision.upstreamKey,
      display: decision.upstream,
      transport: { tls: false, protocol: "http" },
    });
    table.free();
  });

  it("has the same bytes for the same objects, in whatever order they come", () => {
    expect(bundle(cafe.objects.toReversed())).toEqual(bundle());
  });
});

describe("a wrong bundle", () => {
  const good = bundle();

  it("is refused with the reason", () => {
    const damaged = (change: (copy: Uint8Array) => void) => {
      const copy = good.slice();
      change(copy);
      return copy;
    };
    const cases: [string, Uint8Array][] = [
      ["CORE_IMAGE_TRUNCATED", new Uint8Array(0)],
      ["CORE_IMAGE_TRUNCATED", good.subarray(0, 23)],
      ["CORE_IMAGE_TRUNCATED", good.subarray(0, good.length - 1)],
      ["CORE_IMAGE_MAGIC", damaged((copy) => copy.fill(0, 0, 4))],
      ["CORE_IMAGE_VERSION", damaged((copy) => copy.fill(2, 4, 5))],
      ["CORE_IMAGE_CHECKSUM", damaged((copy) => copy.fill(copy[200] ^ 1, 200, 201))],
      ["CORE_IMAGE_CORRUPT", Buffer.concat([good, Buffer.alloc(4)])],
      ["CORE_IMAGE_CORRUPT", damaged((copy) => copy.fill(1, 20, 21))],
      ["CORE_IMAGE_CORRUPT", damaged((copy) => copy.fill(copy[8] + 1, 8, 9))],
      ["CORE_IMAGE_CORRUPT", damaged((copy) => copy.fill(copy[8] - 1, 8, 9))],
      ["CORE_IMAGE_CORRUPT", resealed(good, (copy) => copy.fill(0xff, 28, 32))],
      ["CORE_IMAGE_CORRUPT", resealed(good, (copy) => copy.fill(1, 25, 26))],
      ["CORE_IMAGE_CORRUPT", resealed(good, (copy) => copy.fill(0xff, 36, 37))],
    ];
    for (const [code, bytes] of cases)
      expect(
        refusal(() => readBundle(bytes)),
        code,
      ).toBe(code);
  });

  it("is refused where two records stand in the wrong order or twice", () => {
    const bytes = writeBundle([record(1, "a"), record(1, "b")]);
    const swapped = resealed(bytes, (copy) => {
      const first = copy.slice(24, 44);
      copy.copyWithin(24, 44);
      copy.set(first, 44);
    });
    const twice = resealed(bytes, (copy) => copy.copyWithin(44, 24, 44));
    expect([swapped, twice].map((wrong) => refusal(() => readBundle(wrong)))).toEqual([
      "CORE_IMAGE_CORRUPT",
      "CORE_IMAGE_CORRUPT",
    ]);
  });

  it("is refused where an image stands under the key of another", () => {
    const records = readBundle(good);
    for (const kind of [BUNDLE_KIND.shard, BUNDLE_KIND.peerSet, BUNDLE_KIND.upstream]) {
      const renamed = records.map((one) => (one.kind === kind ? { ...one, key: `${one.key}x` } : one));
      expect(refusal(() => loadBundle(sharedCore, writeBundle(renamed)))).toBe("CORE_IMAGE_CORRUPT");
    }
  });

  it("leaves no memory of the core in use", () => {
    const records = readBundle(good);
    const broken = writeBundle(
      records.map((one) => (one.kind === BUNDLE_KIND.peerSet ? { ...one, content: one.content.subarray(4) } : one)),
    );
    // The engines of an instance are made once.
    loadBundle(sharedCore, good).table.free();
    const before = sharedCore.memoryUsed;
    expect(refusal(() => loadBundle(sharedCore, broken))).toMatch(/^CORE_IMAGE_/);
    expect(sharedCore.memoryUsed).toBe(before);
  });

  it("never does more than be refused, whatever bytes of it are changed", () => {
    const random = new Random(11);
    let taken = 0;
    for (let i = 0; i < 5_000; i++) {
      const wrong = resealed(good, (copy) => {
        for (let k = random.below(4); k >= 0; k--) {
          const at = random.onceIn(3) ? random.below(256) : random.below(copy.length);
          if (at < 16 || at > 19) copy[at] = random.onceIn(2) ? random.below(256) : copy[at] ^ (1 << random.below(8));
        }
      });
      if (refusal(() => loadBundle(sharedCore, wrong).table.free()) === "taken") taken++;
    }
    // Names in JSON may be changed and still be names.
    expect(taken).toBeLessThan(2_500);
  });

  it("reads records of kinds that are not known, and goes on without them", () => {
    const records = [...readBundle(good), record(200, "later")];
    const { table, upstreams } = loadBundle(sharedCore, writeBundle(records));
    expect(upstreams.size).toBeGreaterThan(0);
    table.free();
  });

  it("is refused for a description that is none", () => {
    for (const wrong of [
      "",
      "[]",
      "null",
      '{"key":"k","display":"d"}',
      '{"key":"x","display":"d","transport":{}}',
      "{",
    ]) {
      expect(
        refusal(() => readUpstream(record(3, "k", wrong))),
        wrong,
      ).toBe("CORE_IMAGE_CORRUPT");
    }
  });
});
