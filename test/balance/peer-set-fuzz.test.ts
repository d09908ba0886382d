import { beforeAll, describe, expect, it } from "vitest";
import { encodePeerSet, peerSetSizes, readPeer } from "../../core-wasm/binding/peer-set.js";
import type { BalanceMethod, Peer } from "../../core-wasm/binding/source.js";
import { repairChecksum } from "../support/checksum.js";
import { compile, freshCore, randomNumbers, type TestCore } from "./core-instance.js";

const IMAGES = 50_000;
const HEADER = 96;

let core: TestCore;
beforeAll(async () => {
  core = await freshCore();
});

function sampleImages(): Uint8Array[] {
  const peers: Peer[] = [
    { address: "10.0.0.1", port: 80, weight: 1 },
    { address: "10.0.0.2", port: 8080, weight: 1 },
    { address: "2001:db8::1", port: 443, weight: 1 },
  ];
  const methods: BalanceMethod[] = [
    { kind: "round-robin" },
    { kind: "ring", key: [] },
    { kind: "nginx-ring", key: [] },
    { kind: "ip-hash" },
  ];
  return methods.flatMap((method) =>
    [0, 1, 3].map((count) => {
      const set = { key: "Ingress/a/b/c", display: "a/c:80", method, peers: peers.slice(0, count) };
      const image = compile(core, encodePeerSet(set, Uint8Array.from([1, 2, 3])));
      if (typeof image === "number") throw new Error(`status ${image}`);
      return image;
    }),
  );
}

/** Uses an image in every way there is; answers have to stay inside what the image says of itself. */
function useAll(pointer: number, hash: number, tried: number): void {
  const view = new DataView(core.memory.buffer);
  const { peers, bytes } = peerSetSizes(view, pointer);
  const position = core.peer_set_position(pointer, hash);
  const peer = core.peer_set_lookup(pointer, hash);
  expect(peer).toBe(position < 0 ? -11 : core.peer_set_owner(pointer, position));
  expect(peer).toBeLessThan(peers);
  let met = 0;
  new Uint8Array(core.memory.buffer).fill(0, tried, tried + 4096);
  for (let at = position; at >= 0 && met <= peers; met++) {
    at = core.peer_set_walk(pointer, at, tried, 4096);
    if (at < 0) break;
    const owner = core.peer_set_owner(pointer, at);
    new Uint8Array(core.memory.buffer)[tried + (owner >> 3)] |= 1 << (owner & 7);
  }
  expect(met).toBeLessThanOrEqual(peers);
  for (let i = 0; i < peers; i++) {
    const id = view.getUint32(pointer + HEADER + 32 * i, true);
    const peer = readPeer(view, pointer, i);
    expect(id >= HEADER && peer.id.length >= 3 && id + peer.id.length <= bytes).toBe(true);
    expect(peer.port > 0 && peer.weight > 0).toBe(true);
  }
}

describe("validation", () => {
  it("computes the checksum that the core computes", () => {
    for (const image of sampleImages()) {
      const copy = image.slice();
      repairChecksum(copy);
      expect(Buffer.compare(copy, image)).toBe(0);
    }
  });

  it("finds every single bit that is flipped", () => {
    const tried = core.alloc(8192);
    for (const image of sampleImages()) {
      const random = randomNumbers(11);
      for (let i = 0; i < 2000; i++) {
        const copy = image.slice();
        const bit = image.length * 8 <= 2000 ? i % (image.length * 8) : random() % (image.length * 8);
        copy[bit >> 3] ^= 1 << (bit & 7);
        new Uint8Array(core.memory.buffer).set(copy, tried);
        expect(core.peer_set_validate(tried, copy.length)).toBeLessThan(0);
      }
    }
    core.free(tried);
  });

  it("neither traps nor lets through what cannot be used, on damaged and hostile images", { timeout: 60_000 }, () => {
    const random = randomNumbers(20_261_202);
    const samples = sampleImages();
    const pointer = core.alloc(1 << 14);
    const tried = core.alloc(4096);
    const statuses = new Map<number, number>();
    for (let i = 0; i < IMAGES; i++) {
      const kind = i % 4;
      let bytes = samples[random() % samples.length].slice();
      if (kind === 0) bytes = bytes.slice(0, random() % bytes.length);
      else if (kind === 1) bytes = Uint8Array.from({ length: random() % 256 }, () => random());
      else {
        // Half of the damage goes to the header, where counts and offsets are.
        for (let changes = 1 + (random() % 4); changes; changes--) {
          const at = random() % (random() % 2 ? Math.min(HEADER, bytes.length) : bytes.length);
          if (random() % 2) bytes[at] ^= 1 << (random() & 7);
          else bytes[at] = random();
        }
      }
      if (kind === 3) repairChecksum(bytes);
      new Uint8Array(core.memory.buffer).set(bytes, pointer);
      const status = core.peer_set_validate(pointer, bytes.length);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const hash = random();
      if (status === 0) useAll(pointer, hash, tried);
      else {
        // Even an image that was never validated is only read within the memory.
        core.peer_set_lookup(pointer, hash);
        core.peer_set_walk(pointer, hash, tried, 4096);
        core.peer_set_owner(pointer, hash);
      }
    }
    // Every kind of answer occurred: truncated, magic, version, checksum, corrupt, and valid after all (key, display
    // text, template and stray weights can be anything).
    expect([...statuses.keys()].sort((a, b) => a - b)).toEqual([-6, -5, -4, -3, -2, 0]);
    core.free(pointer);
    core.free(tried);
  });

  it("does not trap when an image that was never validated is merged", { timeout: 60_000 }, () => {
    const random = randomNumbers(5);
    const samples = sampleImages();
    const peers: Peer[] = [{ address: "10.0.0.9", port: 80, weight: 2 }];
    const source = encodePeerSet(
      { key: "k", display: "d", method: { kind: "ring", key: [] }, peers },
      new Uint8Array(0),
      true,
    );
    const results = new Set<string>();
    for (let i = 0; i < 1000; i++) {
      const bytes = samples[random() % samples.length].slice();
      for (let changes = 1 + (random() % 6); changes; changes--)
        bytes[HEADER + (random() % (bytes.length - HEADER))] = random();
      const result = compile(core, source, bytes);
      results.add(typeof result === "number" ? String(result) : "image");
    }
    expect(results.has("image")).toBe(true);
    expect([...results].every((result) => ["image", "-6", "-8"].includes(result))).toBe(true);
  });
});
