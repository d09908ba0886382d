import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { HashRing, type RingLayout } from "../../core-wasm/binding/hash-ring.js";
import { collidingPeers, TIED_PAIR } from "./colliding-peers.js";
import { freshCore, type TestCore } from "./core-instance.js";
import { peerId, type ReferencePeer, referenceOwner, referencePoints, referenceWalk } from "./ring-reference.js";

let core: TestCore;
beforeAll(async () => {
  core = await freshCore();
});

const address = fc.oneof(
  fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)).map((bytes) => bytes.join(".")),
  // Already in canonical form, so that the reference need not know the form.
  fc.integer({ min: 1, max: 0xffff }).map((group) => `2001:db8::${group.toString(16)}`),
  fc.integer({ min: 1, max: 0xffff }).map((group) => `::${group.toString(16)}`),
);
const peer = fc.record({ address, port: fc.integer({ min: 1, max: 65535 }), weight: fc.integer({ min: 1, max: 4 }) });
const peers = fc.uniqueArray(peer, { selector: peerId, minLength: 1, maxLength: 12 });
const layout = fc.constantFrom<RingLayout>("resty", "nginx");
const hashes = fc.array(fc.integer({ min: 0, max: 0xffffffff }), { minLength: 1, maxLength: 20 });
const SLOW = { timeout: 60_000 };
const RUNS = { seed: 20_261_202, numRuns: 100 };

function withRing<T>(list: readonly ReferencePeer[], ringLayout: RingLayout, use: (ring: HashRing) => T): T {
  const ring = HashRing.build({ exports: core }, list, { layout: ringLayout });
  try {
    return use(ring);
  } finally {
    ring.free();
  }
}

function ownerId(ring: HashRing, hash: number): string {
  const index = ring.lookupHash(hash);
  return index === undefined ? "none" : ring.peer(index).id;
}

describe("a ring, against the definition", () => {
  it("has the points of the definition, in its order", SLOW, () => {
    fc.assert(
      fc.property(peers, layout, (list, ringLayout) =>
        withRing(list, ringLayout, (ring) => {
          expect(ringOf(ring)).toEqual(
            referencePoints(list, ringLayout).map((point) => [point.hash, peerId(point.peer)]),
          );
        }),
      ),
      RUNS,
    );
  });

  it("gives every hash to the first point at or after it", SLOW, () => {
    fc.assert(
      fc.property(peers, layout, hashes, (list, ringLayout, some) =>
        withRing(list, ringLayout, (ring) => {
          const points = referencePoints(list, ringLayout);
          // Hashes of points and their neighbours are where an owner ends.
          const edges = points
            .slice(0, 30)
            .flatMap(({ hash }) => [hash - 1, hash, hash + 1].map((value) => value >>> 0));
          for (const hash of [...some, ...edges, 0, 0xffffffff, points[points.length - 1].hash]) {
            expect(ownerId(ring, hash)).toBe(peerId(points[referenceOwner(points, hash)].peer));
          }
        }),
      ),
      RUNS,
    );
  });

  it("is the same, byte for byte, whatever the order of its peers", SLOW, () => {
    const shuffled = peers.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length, maxLength: list.length })),
    );
    fc.assert(
      fc.property(shuffled, layout, ([list, other], ringLayout) => {
        const image = withRing(list, ringLayout, (ring) => ring.image());
        expect(withRing(other, ringLayout, (ring) => Buffer.compare(ring.image(), image))).toBe(0);
      }),
      RUNS,
    );
  });

  it("walks from any key to every peer once, in the order of the definition", SLOW, () => {
    fc.assert(
      fc.property(peers, layout, fc.string({ unit: "binary" }), (list, ringLayout, key) =>
        withRing(list, ringLayout, (ring) => {
          const met = [...ring.walk(key)].map((index) => ring.peer(index).id);
          expect(met).toEqual(referenceWalk(referencePoints(list, ringLayout), ring.hash(key)));
          expect(met.length).toBe(list.length);
        }),
      ),
      RUNS,
    );
  });
});

describe("a change of peers", () => {
  it("leaves the same bytes as building the new ring, however it came about", SLOW, () => {
    fc.assert(
      fc.property(peers, peers, layout, (before, after, ringLayout) => {
        const built = withRing(after, ringLayout, (ring) => ring.image());
        withRing(before, ringLayout, (ring) => {
          ring.replace(after);
          expect(Buffer.compare(ring.image(), built)).toBe(0);
          ring.replace(before);
          // By changes: what is to go, then what is to come or has another weight.
          const wanted = new Set(after.map(peerId));
          ring.remove(...before.filter((one) => !wanted.has(peerId(one))));
          ring.add(...after);
          expect(Buffer.compare(ring.image(), built)).toBe(0);
        });
      }),
      RUNS,
    );
  });

  it("moves only the keys of the peer that comes or goes", SLOW, () => {
    fc.assert(
      fc.property(peers, peer, layout, (list, extra, ringLayout) => {
        fc.pre(!list.some((one) => peerId(one) === peerId(extra)));
        withRing(list, ringLayout, (ring) => {
          const keys = Array.from({ length: 200 }, (_, i) => Math.imul(i + 1, 0x9e3779b1) >>> 0);
          const before = keys.map((key) => ownerId(ring, key));
          ring.add(extra);
          for (const [i, key] of keys.entries()) expect([before[i], peerId(extra)]).toContain(ownerId(ring, key));
          ring.remove(extra);
          expect(keys.map((key) => ownerId(ring, key))).toEqual(before);
        });
      }),
      RUNS,
    );
  });
});

describe("a large ring", () => {
  it("has the definition's points where hashes share their upper bits and collide", SLOW, () => {
    // 1,500 peers make 240,000 points: about 1,700 pairs that only the lowest byte tells apart, and some ties.
    const list = Array.from({ length: 1500 }, (_, i) => ({
      address: `10.1.${i >> 8}.${i & 255}`,
      port: 80,
      weight: 1,
    }));
    const points = referencePoints(list, "resty");
    const ties = points.filter((point, i) => i > 0 && point.hash === points[i - 1].hash).length;
    expect(ties).toBeGreaterThan(0);
    withRing(list, "resty", (ring) => {
      const found = ringOf(ring);
      const wrong = points.filter((point, i) => found[i][0] !== point.hash || found[i][1] !== peerId(point.peer));
      expect(wrong).toEqual([]);
    });
  });

  it.each<RingLayout>(["resty", "nginx"])(
    "has the definition's order where all points of many peers were made to collide (%s)",
    SLOW,
    (ringLayout) => {
      const list = collidingPeers(64, ringLayout);
      const points = referencePoints(list, ringLayout);
      expect(new Set(points.map((point) => point.hash)).size).toBe(160);
      withRing(list, ringLayout, (ring) => {
        expect(ring.points).toBe(160 * 128);
        expect(ringOf(ring)).toEqual(points.map((point) => [point.hash, peerId(point.peer)]));
      });
    },
  );

  it.each<RingLayout>(["resty", "nginx"])("keeps ties in order when peers come (%s)", (ringLayout) => {
    const list = collidingPeers(8, ringLayout);
    const built = withRing(list, ringLayout, (ring) => ring.image());
    for (const start of [0, 1, 2]) {
      const first = list.filter((_, i) => i % 3 === start);
      withRing(first, ringLayout, (ring) => {
        ring.replace(list);
        expect(Buffer.compare(ring.image(), built)).toBe(0);
      });
    }
  });

  it.each<RingLayout>(["resty", "nginx"])("orders ties by the bytes that the layout hashes (%s)", (ringLayout) => {
    const points = referencePoints(TIED_PAIR, ringLayout);
    expect(new Set(points.map((point) => point.hash)).size).toBe(160);
    expect(points[0].peer).toBe(TIED_PAIR[ringLayout === "nginx" ? 0 : 1]);
    withRing(TIED_PAIR, ringLayout, (ring) => {
      expect(ringOf(ring)).toEqual(points.map((point) => [point.hash, peerId(point.peer)]));
    });
  });
});

/** Hash and owner's id of every point of a ring, in order. */
function ringOf(ring: HashRing): [number, string][] {
  const view = new DataView(ring.image().buffer);
  const [hashes, owners] = [view.getUint32(36, true), view.getUint32(44, true)];
  return Array.from({ length: ring.points }, (_, i) => [
    view.getUint32(hashes + 4 * i, true),
    ring.peer(view.getUint16(owners + 2 * i, true)).id,
  ]);
}
