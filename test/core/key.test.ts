import { describe, expect, it } from "vitest";
import { compileKey } from "../../core-wasm/binding/compile/key.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { PeerSetSource, Template } from "../../core-wasm/binding/source.js";
import { repairChecksum } from "../support/checksum.js";
import { sharedCore } from "../support/core.js";
import { compileImages, RawTable } from "../support/raw-core.js";
import { argument, cookie, header, hostRules, peers, prefix, request, route } from "../support/rules.js";

const E_CORRUPT = -6;
/** Places in the header of a key, as ABI.md has them. */
const [SIZE, HEADERS, COOKIE, NEED, TEMPLATE, STICKY, HEADER_SIZE] = [0, 4, 8, 12, 16, 24, 32];
/** Place of the key in the image of a peer set: offset, then length. */
const I_KEY = 48;

const wordsOf = (key: Uint8Array) => {
  const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
  return (offset: number) => view.getUint32(offset, true);
};
const key = (template: Template, sessionCookie?: string) => compileKey("a test", template, sessionCookie).slice();
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

/** The image of a set with a key, and where the key stands in it. */
function withKey(template: Template, sessionCookie?: string): { image: Uint8Array; at: number } {
  const set: PeerSetSource = { ...peers("u", [80]), method: { kind: "ring", key: template }, sessionCookie };
  const [image] = compileImages(sharedCore, [], [set]).sets;
  return { image, at: wordsOf(image)(I_KEY) };
}

/** What a table answers when the image of a set is loaded in which one word of the key is another. */
function loadWith(source: { image: Uint8Array; at: number }, offset: number, value: number): number {
  const image = source.image.slice();
  new DataView(image.buffer).setUint32(source.at + offset, value, true);
  repairChecksum(image);
  const raw = new RawTable(sharedCore);
  const status = sharedCore.withBytes(image, (at, length) => raw.exports.peers_load(raw.table, at, length));
  raw.free();
  return status;
}

describe("the key of a peer set", () => {
  it("has no bytes where nothing is hashed and there is no session cookie", () => {
    expect(key([]).length).toBe(0);
  });

  it("names its headers in lower case, each once, in the order of their first use", () => {
    const bytes = key([header("X-B"), header("x-a"), header("x-b")]);
    const word = wordsOf(bytes);
    expect([word(SIZE), word(HEADERS), word(COOKIE)]).toEqual([bytes.length, 2, 0]);
    expect(text(bytes.subarray(HEADER_SIZE, HEADER_SIZE + 16))).toBe("\x03\0\0\0x-b\0\x03\0\0\0x-a\0");
  });

  it("has one need list for both templates, in ascending order", () => {
    const word = wordsOf(key([header("x-b"), { kind: "variable", name: "remote_addr" }], "session"));
    const need = word(NEED);
    // The address is fact 0; headers come after the four facts: x-b, then cookie.
    expect([0, 4, 8, 12].map((at) => word(need + at))).toEqual([3, 0, 4, 5]);
    expect(word(COOKIE)).toBe(5);
  });

  it("has the sticky template after the one that is hashed, as the one part of the cookie", () => {
    const bytes = key([argument("q")], "session");
    const word = wordsOf(bytes);
    expect(word(STICKY)).toBe(word(TEMPLATE) + word(TEMPLATE + 4));
    expect(word(STICKY) + word(STICKY + 4)).toBe(bytes.length);
    // u8 op 2, u8 zero, u16 length, text.
    expect(text(bytes.subarray(word(STICKY)))).toBe("\x02\0\x07\0session\0");
  });

  it("may have a session cookie alone: the template that is hashed is empty then", () => {
    const word = wordsOf(key([], "s"));
    expect(word(TEMPLATE + 4)).toBe(0);
    expect(word(STICKY + 4)).toBe(8);
  });

  it("has no sticky template without a session cookie", () => {
    const word = wordsOf(key([cookie("user")]));
    expect([word(STICKY), word(STICKY + 4)]).toEqual([0, 0]);
  });

  it("is refused for parts without a name, and for more headers than a key may look at", () => {
    for (const part of [header(""), cookie(""), argument("")]) {
      expect(() => key([part])).toThrow(expect.objectContaining({ code: "CORE_SOURCE_INVALID" }));
    }
    const headers = (count: number) => Array.from({ length: count }, (_, i) => header(`x-${i}`));
    expect(wordsOf(key(headers(28)))(HEADERS)).toBe(28);
    expect(() => key(headers(29))).toThrow(expect.objectContaining({ code: "CORE_LIMIT" }));
    expect(() => key([], "n".repeat(65_536))).toThrow(expect.objectContaining({ code: "CORE_LIMIT" }));
  });

  it("lets a set be loaded whatever it is made of", () => {
    const table = new RouteTable(sharedCore);
    table.setHost(hostRules([route(prefix("/"), { kind: "proxy", upstream: "u" })]));
    const keys: [Template, string | undefined][] = [
      [[], undefined],
      [[], "s"],
      [["text", cookie("a"), header("x")], "é"],
      [[{ kind: "group", index: 9 }], undefined],
    ];
    for (const [template, sessionCookie] of keys) {
      table.setPeers({ ...peers("u", [80]), method: { kind: "ring", key: template }, sessionCookie });
      expect(table.decide(request("/"), 0)).toMatchObject({ action: "proxy", upstreamKey: "u" });
    }
    table.free();
  });
});

describe("a key that is not what the format allows", () => {
  const both = () => withKey([header("x")], "session");

  it("is refused where a template stands elsewhere or is longer", () => {
    const word = wordsOf(both().image.subarray(both().at));
    for (const field of [TEMPLATE, TEMPLATE + 4, STICKY, STICKY + 4, NEED, COOKIE, HEADERS, SIZE]) {
      for (const by of [-4, 1, 4]) {
        expect(loadWith(both(), field, word(field) + by), `${field} by ${by}`).toBe(E_CORRUPT);
      }
    }
  });

  it("is refused where the sticky template has an offset and no length, or the other way round", () => {
    expect(loadWith(both(), STICKY + 4, 0)).toBe(E_CORRUPT);
    expect(loadWith(both(), STICKY, 0)).toBe(E_CORRUPT);
    expect(loadWith(withKey([header("x")]), STICKY, 60)).toBe(E_CORRUPT);
  });

  it("is refused where cookies are read and no header carries them", () => {
    expect(loadWith(both(), COOKIE, 0)).toBe(E_CORRUPT);
  });
});
