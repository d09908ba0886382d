import { afterAll, describe, expect, it } from "vitest";
import { ImageCache } from "../../core-wasm/binding/image-cache.js";
import { makeRoutingTable } from "../support/core.js";
import { hostRules, peers, prefix, request, route } from "../support/rules.js";

// What the binding keeps of an image is kept by its address, and addresses are used again.
describe("a decision after a replacement", () => {
  const table = makeRoutingTable();
  afterAll(() => table.free());
  const rounds = Array.from({ length: 3000 }, (_, i) => String(1000 + i));

  it("names the owner and the path of the rules that are in force, never of those before", () => {
    table.setPeers(peers("u", [8080]));
    for (const name of rounds) {
      const rules = route(
        prefix("/"),
        { kind: "proxy", upstream: "u" },
        { resource: `Test/${name}`, label: `/${name}` },
      );
      table.setHost(hostRules([rules]));
      const { origin } = table.decide(request("/"), 0);
      expect([origin?.resource, origin?.path]).toEqual([`Test/${name}`, `/${name}`]);
    }
  });

  it("names the peers that are in force, never those before", () => {
    for (const name of rounds) {
      table.setPeers(peers("u", [Number(name)]));
      const decision = table.decide(request("/"), 0);
      expect(decision.action === "proxy" && decision.peer.port).toBe(Number(name));
    }
  });
});

describe("what is kept of an image", () => {
  const image = 64;
  const memory = (checksum: number) =>
    Int32Array.from({ length: 32 }, (_, i) => (i === (image >> 2) + 2 ? checksum : 0));

  it("is read once, however often other images change", () => {
    const cache = new ImageCache<number>();
    let reads = 0;
    for (let i = 0; i < 1000; i++) {
      expect(cache.get(memory(7), image, () => ++reads)).toBe(1);
      cache.changed();
    }
  });

  it("is read again when another image stands at its address", () => {
    const cache = new ImageCache<string>();
    expect(cache.get(memory(7), image, () => "first")).toBe("first");
    expect(cache.get(memory(8), image, () => "second")).toBe("second");
  });
});
