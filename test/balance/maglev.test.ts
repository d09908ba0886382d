import { beforeAll, describe, expect, it } from "vitest";
import { encodePeerSet, peerSetSizes, readPeer } from "../../core-wasm/binding/peer-set.js";
import type { Peer } from "../../core-wasm/binding/source.js";
import { compile, freshCore, randomNumbers, type TestCore } from "./core-instance.js";

/** A prime (Maglev, section 3.4: places must be, so that each step meets all of them). */
const PLACES = 65_537;
const OWNERS = 44;

let core: TestCore;
beforeAll(async () => {
  core = await freshCore();
});

function peers(count: number, weight: (i: number) => number = () => 1): Peer[] {
  return Array.from({ length: count }, (_, i) => ({
    address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    port: 8080,
    weight: weight(i),
  }));
}

function image(list: Peer[]): Uint8Array {
  const set = { key: "k", display: "d", method: { kind: "maglev" as const, key: [] }, peers: list };
  const bytes = compile(core, encodePeerSet(set, new Uint8Array(0)));
  if (typeof bytes === "number") throw new Error(`status ${bytes}`);
  return bytes;
}

/** The id of the peer of each place. */
function owners(list: Peer[]): string[] {
  const bytes = image(list);
  const view = new DataView(bytes.buffer);
  const { peers: count, points } = peerSetSizes(view, 0);
  const ids = Array.from({ length: count }, (_, i) => readPeer(view, 0, i).id);
  const start = view.getUint32(OWNERS, true);
  return Array.from({ length: points }, (_, i) => ids[view.getUint16(start + 2 * i, true)]);
}

function places(list: Peer[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of owners(list)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

describe("Maglev", () => {
  it("has 65,537 places, whose peers look-ups give by the hash", () => {
    const list = peers(5);
    const table = owners(list);
    expect(table).toHaveLength(PLACES);
    const bytes = image(list);
    const at = core.alloc(bytes.length);
    new Uint8Array(core.memory.buffer).set(bytes, at);
    for (const hash of [0, 1, PLACES - 1, PLACES, 0xffffffff]) {
      const index = core.peer_set_lookup(at, hash);
      expect(readPeer(new DataView(core.memory.buffer), at, index).id).toBe(table[hash % PLACES]);
    }
    core.free(at);
  });

  it.each([1, 2, 3, 7, 100, 1000, 5000])(
    "with %i equal peers gives each as many places as the others, or one more",
    (count) => {
      const counts = [...places(peers(count)).values()];
      expect(counts).toHaveLength(count);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      if (count <= 1000) expect(Math.max(...counts) / (PLACES / count)).toBeLessThanOrEqual(1.01);
    },
  );

  it("gives places by weight, to less than one place", () => {
    const list = peers(300, (i) => 1 + (i % 9));
    const total = list.reduce((sum, { weight }) => sum + weight, 0);
    const counts = places(list);
    for (const { address, weight } of list) {
      expect(Math.abs((counts.get(`${address}:8080`) ?? 0) - (PLACES * weight) / total)).toBeLessThanOrEqual(1);
    }
  });

  it("gives every peer at least one place, however light it is and however many there are", { timeout: 60_000 }, () => {
    expect(places(peers(2, (i) => (i ? 65_535 : 1))).get("10.0.0.0:8080")).toBeLessThanOrEqual(2);
    expect(places(peers(32_768)).size).toBe(32_768);
    expect(places(peers(32_768, (i) => (i === 9 ? 65_535 : 1))).size).toBe(32_768);
  });

  it("is the same for any order of the list", () => {
    const random = randomNumbers(13);
    const list = peers(200, (i) => 1 + (i % 4));
    const shuffled = [...list].map((peer) => ({ peer, at: random() })).sort((a, b) => a.at - b.at);
    const other = image(shuffled.map(({ peer }) => peer));
    expect(Buffer.compare(other, image(list))).toBe(0);
  });

  it("moves at most 2 % of the other keys when one of 1,000 peers goes, and as few when it comes back", () => {
    const list = peers(1000);
    const before = owners(list);
    for (const gone of [0, 1, 499, 537, 998, 999]) {
      const id = `${list[gone].address}:8080`;
      const after = owners(list.filter((_, i) => i !== gone));
      const moved = before.filter((owner, place) => owner !== id && owner !== after[place]).length;
      expect(moved / PLACES, `without peer ${gone}`).toBeLessThanOrEqual(0.02);
    }
  });

  it("moves no key of another peer but those that a lighter or heavier weight makes it move", () => {
    const before = owners(peers(100));
    const after = owners(peers(100, (i) => (i === 50 ? 2 : 1)));
    const moved = before.filter((owner, place) => owner !== after[place]).length;
    // One of 101 shares changes hands; the rest is what Maglev moves besides.
    expect(moved / PLACES).toBeLessThan(0.04);
  });
});
