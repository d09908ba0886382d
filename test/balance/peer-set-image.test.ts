import { beforeAll, describe, expect, it } from "vitest";
import { compilePeerSet, encodePeerSet, peerSetSizes, readPeer } from "../../core-wasm/binding/peer-set.js";
import type { BalanceMethod, Peer, PeerSetSource } from "../../core-wasm/binding/source.js";
import { compile, freshCore, put, randomNumbers, type TestCore } from "./core-instance.js";

let core: TestCore;
beforeAll(async () => {
  core = await freshCore();
});

const NOTHING = new Uint8Array(0);
const METHODS: BalanceMethod["kind"][] = [
  ...(["round-robin", "ring", "nginx-ring", "maglev"] as const),
  ...(["least-conn", "random", "random-two", "ip-hash"] as const),
];
/** Points, places or neither, of so many peers of weight 1. */
function pointsOf(kind: BalanceMethod["kind"], peers: number): number {
  if (kind === "ring" || kind === "nginx-ring") return peers * 160;
  return kind === "maglev" && peers > 0 ? 65_537 : 0;
}

function peerSet(kind: BalanceMethod["kind"], peers: Peer[]): PeerSetSource {
  const method = { kind, key: [] } as BalanceMethod;
  return { key: "VirtualServer/shop/café/tea", display: "shop/tea:80", method, peers };
}

function image(source: Uint8Array, older?: Uint8Array): Uint8Array {
  const bytes = compile(core, source, older);
  if (typeof bytes === "number") throw new Error(`status ${bytes}`);
  return bytes;
}

const FOUR: Peer[] = [1, 2, 3, 4].map((i) => ({ address: `10.0.0.${i}`, port: 80, weight: 1 }));

describe("the image of a peer set", () => {
  it.each(METHODS)("is valid for %s, with any number of peers", (kind) => {
    for (const count of [0, 1, 2, 4]) {
      const bytes = image(encodePeerSet(peerSet(kind, FOUR.slice(0, count)), NOTHING));
      const pointer = put(core, bytes);
      expect(core.peer_set_validate(pointer, bytes.length)).toBe(0);
      expect(peerSetSizes(new DataView(bytes.buffer), 0)).toEqual({
        bytes: bytes.length,
        peers: count,
        points: pointsOf(kind, count),
      });
      core.free(pointer);
    }
  });

  it("carries key, display text and template as they were given", () => {
    const template = Uint8Array.from([9, 8, 7, 6, 5]);
    const bytes = image(encodePeerSet(peerSet("ring", FOUR), template));
    const view = new DataView(bytes.buffer);
    const section = (at: number) =>
      bytes.slice(view.getUint32(at, true), view.getUint32(at, true) + view.getUint32(at + 4, true));
    const text = (at: number) => new TextDecoder().decode(section(at));
    expect([section(48), text(64), text(72)]).toEqual([template, "VirtualServer/shop/café/tea", "shop/tea:80"]);
    expect(view.getUint32(48, true) % 4).toBe(0);
  });

  it("orders peers by the number of their address, IPv4 first, then by port", () => {
    const peers = [
      ["::2", 1],
      ["10.0.0.10", 80],
      ["9.255.255.255", 80],
      ["::1", 1],
      ["10.0.0.9", 443],
      ["10.0.0.9", 80],
    ].map(([address, port]) => ({ address: String(address), port: Number(port), weight: 1 }));
    const view = new DataView(image(encodePeerSet(peerSet("round-robin", peers), NOTHING)).buffer);
    const ids = peers.map((_, i) => readPeer(view, 0, i).id);
    expect(ids).toEqual(["9.255.255.255:80", "10.0.0.9:80", "10.0.0.9:443", "10.0.0.10:80", "[::1]:1", "[::2]:1"]);
  });

  it("is the same with an older image of any method as without one", () => {
    for (const from of METHODS) {
      const older = image(
        encodePeerSet(peerSet(from, [...FOUR.slice(1), { address: "::9", port: 9, weight: 2 }]), NOTHING),
      );
      for (const to of METHODS) {
        const full = image(encodePeerSet(peerSet(to, FOUR), NOTHING));
        const merged = image(encodePeerSet(peerSet(to, FOUR), NOTHING), older);
        const changes: Peer[] = [
          FOUR[0],
          { address: "0::9", port: 9, weight: 0 },
          { address: "1.1.1.1", port: 1, weight: 0 },
        ];
        const changed = image(encodePeerSet(peerSet(to, changes), NOTHING, true), older);
        expect([Buffer.compare(merged, full), Buffer.compare(changed, full)], `${from} to ${to}`).toEqual([0, 0]);
      }
    }
  });

  it("finds the one peer that is not tried yet, from every position", () => {
    for (const kind of METHODS) {
      const pointer = put(core, image(encodePeerSet(peerSet(kind, FOUR), NOTHING)));
      const tried = core.alloc(1);
      const positions = peerSetSizes(new DataView(core.memory.buffer), pointer).points || 4;
      for (let position = 0; position < positions; position++) {
        for (let left = 0; left < 4; left++) {
          new Uint8Array(core.memory.buffer)[tried] = 0xf & ~(1 << left);
          const next = core.peer_set_walk(pointer, position, tried, 1);
          expect(core.peer_set_owner(pointer, next)).toBe(left);
        }
      }
      new Uint8Array(core.memory.buffer)[tried] = 0xf;
      expect(core.peer_set_walk(pointer, 0, tried, 1)).toBe(-11);
      core.free(tried);
      core.free(pointer);
    }
  });
});

describe("a source", () => {
  const sound = encodePeerSet(peerSet("ring", FOUR), Uint8Array.from([1, 2, 3]));

  it("is refused at every length but its own", () => {
    for (let length = 0; length < sound.length; length++) expect(compile(core, sound.slice(0, length))).toBe(-7);
    expect(compile(core, Uint8Array.from([...sound, 0]))).toBe(-7);
  });

  it("is refused or gives a valid image, whatever byte of it is changed", { timeout: 60_000 }, () => {
    const random = randomNumbers(3);
    let compiled = 0;
    for (let i = 0; i < 2_000; i++) {
      const bytes = sound.slice();
      for (let changes = 1 + (random() % 3); changes; changes--) bytes[random() % bytes.length] = random();
      const result = compile(core, bytes);
      if (typeof result === "number") {
        expect([-7, -8]).toContain(result);
        continue;
      }
      compiled++;
      const pointer = put(core, result);
      expect(core.peer_set_validate(pointer, result.length)).toBe(0);
      core.free(pointer);
    }
    expect(compiled).toBeGreaterThan(200);
  });

  it("is refused where it asks for more than the limits", () => {
    const many = Array.from({ length: 32_769 }, (_, i) => ({
      address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
      port: 80,
      weight: 1,
    }));
    expect(compile(core, encodePeerSet(peerSet("round-robin", many), NOTHING))).toBe(-8);
    expect(compile(core, encodePeerSet(peerSet("ring", many.slice(0, 26_215)), NOTHING))).toBe(-8);
    const bytes = compile(core, encodePeerSet(peerSet("round-robin", many.slice(0, 32_768)), NOTHING));
    expect(typeof bytes).toBe("object");
  });

  it("is refused by the binding where a field cannot be encoded", () => {
    for (const wrong of [
      { port: 65_536 },
      { port: 1.5 },
      { weight: 0 },
      { weight: 65_536 },
      { address: "1".repeat(46) },
    ]) {
      expect(() => encodePeerSet(peerSet("ring", [{ ...FOUR[0], ...wrong }]), NOTHING)).toThrowError(
        expect.objectContaining({ code: "CORE_SOURCE_INVALID" }),
      );
    }
  });
});

describe("the exports", () => {
  it("refuse pointers and lengths outside the memory", () => {
    const source = encodePeerSet(peerSet("ring", FOUR), NOTHING);
    const at = put(core, source);
    const result = core.alloc(8);
    const end = core.memory.buffer.byteLength;
    const wild = [-1, -16, end - 1, end, 0x7fffffff];
    for (const pointer of wild) {
      expect(core.peer_set_validate(pointer, 100)).toBe(-10);
      expect(core.peer_set_validate(0, pointer < 0 ? pointer : end + 1)).toBe(-10);
      expect(core.peer_set_lookup(pointer, 1)).toBe(-10);
      expect(core.peer_set_compile(pointer, source.length, 0, result)).toBe(-10);
      expect(core.peer_set_compile(at, source.length, pointer, result)).toBe(-10);
      expect(core.peer_set_compile(at, source.length, 0, pointer)).toBe(-10);
      expect(core.ring_crc32(5, pointer, 100)).toBe(5);
    }
    core.free(result);
    core.free(at);
  });

  it("compile nothing from memory that nobody owns, or beyond what is owned", () => {
    const source = encodePeerSet(peerSet("ring", FOUR), NOTHING);
    const at = put(core, source);
    const old = compilePeerSet(core, at, source.length, 0);
    expect(compilePeerSet(core, at + 16, source.length, 0)).toBe(-10);
    expect(compilePeerSet(core, at, 1 << 16, 0)).toBe(-10);
    core.free(old);
    // What is given back is no image any more.
    expect(compilePeerSet(core, at, source.length, old)).toBe(-3);
    core.free(at);
    expect(compilePeerSet(core, at, source.length, 0)).toBe(-10);
  });
});

describe("memory", () => {
  it("stays flat over 10,000 builds, changes and frees", { timeout: 60_000 }, async () => {
    const own = await freshCore();
    const { HashRing } = await import("../../core-wasm/binding/hash-ring.js");
    const round = (i: number) => {
      const ring = HashRing.build({ exports: own }, FOUR.slice(0, 1 + (i % 4)), { layout: i % 2 ? "nginx" : "resty" });
      ring.add({ address: `10.9.${i % 200}.1`, port: 80, weight: 1 + (i % 3) });
      [...ring.walk(`key ${i}`)].length;
      ring.remove(FOUR[0]);
      ring.free();
    };
    const before = own.memory_used();
    for (let i = 0; i < 600; i++) round(i);
    const size = own.memory.buffer.byteLength;
    for (let i = 0; i < 10_000; i++) round(i);
    expect([own.memory_used(), own.memory.buffer.byteLength]).toEqual([before, size]);
  });
});
