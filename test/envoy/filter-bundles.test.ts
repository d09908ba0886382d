import { describe, expect, it } from "vitest";
import { type BundleRecord, readBundle, writeBundle } from "../../core-wasm/binding/bundle.js";
import { packBundle } from "../../core-wasm/hosts/envoy/packing.js";
import { FEATURE_PEERS, FEATURE_RULES } from "../core/feature-tables.js";
import { answer, header, hostRules, prefix, route } from "../support/rules.js";
import { bundleFrom, resealed, upstream } from "./bundles.js";
import { filterWith, PLAIN, TO_PLAIN, withHeaders } from "./filter-plugin.js";
import { ProxyWasmHost } from "./proxy-wasm-host.js";

describe("a bundle", () => {
  const SOUND = bundleFrom(
    FEATURE_RULES,
    FEATURE_PEERS.map((set) => upstream(set)),
  );

  it("that is damaged anywhere is refused, and the plugin goes on with the one that it has", () => {
    const { host, plugin, get } = filterWith(answer("old"));
    const step = Math.max(1, Math.floor(SOUND.length / 400));
    for (let at = 0; at < SOUND.length; at += step) {
      const damaged = Uint8Array.from(SOUND);
      damaged[at] ^= 1 << (at & 7);
      // A minor version and bits that the header leaves alone are all that may differ.
      if (at === 6 || at === 7) continue;
      expect(host.reconfigure(plugin, damaged), `byte ${at}`).toBe(false);
    }
    for (let length = 0; length < SOUND.length; length += step) {
      expect(host.reconfigure(plugin, SOUND.subarray(0, length)), `${length} bytes`).toBe(false);
    }
    expect(get().answer?.body).toBe("old");
    expect(host.reconfigure(plugin, SOUND)).toBe(true);
  });

  const exactly = (host: string) => ({ pattern: { kind: "exact" as const, host } });
  /** A bundle of more than one block, with records that cross their borders and one that is larger than a block. */
  const LARGE = bundleFrom([
    ...Array.from({ length: 1_500 }, (_, i) =>
      hostRules([route(prefix("/"), answer(`host ${i}`))], exactly(`h${i}.example.com`)),
    ),
    hostRules(
      Array.from({ length: 9_000 }, (_, i) => route(prefix(`/path/${i}`), answer(`path ${i}`))),
      exactly("paths.example.com"),
    ),
  ]);

  it("that is packed decides as it does unpacked, and is much smaller", () => {
    const packed = packBundle(LARGE);
    expect(LARGE.length).toBeGreaterThan(3 * 262_144);
    expect(packed.length).toBeLessThan(LARGE.length / 2);
    for (const configuration of [LARGE, packed]) {
      const host = new ProxyWasmHost();
      const plugin = host.configure(configuration) ?? 0;
      expect(host.logged.at(-1)).toContain(`1501 shards, 0 peer sets, ${LARGE.length} bytes`);
      const body = (authority: string, path: string) =>
        host.request(plugin, [
          [":authority", authority],
          [":path", path],
        ]).answer?.body;
      for (const i of [0, 1, 700, 1_499]) expect(body(`h${i}.example.com`, "/")).toBe(`host ${i}`);
      for (const i of [0, 4_321, 8_999]) expect(body("paths.example.com", `/path/${i}`)).toBe(`path ${i}`);
    }
  });

  it("whose bytes do not pack well is taken as well", () => {
    let state = 1;
    const noise = Uint8Array.from({ length: 600_000 }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 24;
    });
    const records = readBundle(bundleFrom([hostRules([route(prefix("/"), answer("known"))])]));
    const bundle = writeBundle([...records, { kind: 200, key: "noise", content: noise }]);
    expect(packBundle(bundle).length).toBeLessThan(bundle.length + 50);
    expect(new ProxyWasmHost().configure(packBundle(bundle))).toBeDefined();
  });

  it("that is packed and damaged anywhere is refused without a trap, and the plugin goes on", () => {
    const { host, plugin, get } = filterWith(answer("old"));
    const packed = packBundle(SOUND);
    for (let at = 0; at < packed.length; at += 3) {
      for (const bits of [1 << (at & 7), 0xff]) {
        const damaged = Uint8Array.from(packed);
        damaged[at] ^= bits;
        const taken = host.reconfigure(plugin, damaged);
        // The minor version of the bundle, and another way to pack the same bytes, are all that may pass.
        if (taken) expect(host.logged.at(-1)).toContain(`${SOUND.length} bytes`);
        else expect(get().answer?.body).toBe("old");
        if (taken) host.reconfigure(plugin, bundleFrom([hostRules([route(prefix("/"), answer("old"))])]));
      }
    }
    for (let length = 0; length < packed.length; length += 7) {
      expect(host.reconfigure(plugin, packed.subarray(0, length)), `${length} bytes`).toBe(false);
    }
    expect(host.reconfigure(plugin, Uint8Array.from([...packed, 0]))).toBe(false);
    expect(host.logged.at(-1)).toContain("it is packed in a wrong way");
    expect(get().answer?.body).toBe("old");
  });

  it("that is packed and says to be huge takes no memory for what it says", () => {
    const host = new ProxyWasmHost();
    const before = host.memorySize;
    const packed = packBundle(SOUND);
    new DataView(packed.buffer).setUint32(4, 0x7fff_fff0, true);
    expect(host.configure(packed)).toBeUndefined();
    expect(host.memorySize - before).toBeLessThan(4 << 20);
  });

  it("that is damaged and has a checksum that fits never makes the filter trap", () => {
    const { host, plugin, get } = filterWith(answer("old"));
    let refused = 0;
    const step = Math.max(1, Math.floor(SOUND.length / 700));
    for (let at = 0; at < SOUND.length - 24; at += step) {
      const damaged = resealed(SOUND, (body) => {
        body[at] ^= 1 << (at & 7);
      });
      if (!host.reconfigure(plugin, damaged)) refused++;
      get("/a/b?q=1", [["cookie", "session=abc"]]);
    }
    expect(refused).toBeGreaterThan(300);
  });

  it("whose key is not that of its image is refused, with the reason in the log", () => {
    const records = readBundle(bundleFrom([hostRules([route(prefix("/"), TO_PLAIN)])], [PLAIN]));
    const host = new ProxyWasmHost();
    const refusal = (change: (record: BundleRecord) => BundleRecord) => {
      expect(host.configure(writeBundle(records.map(change)))).toBeUndefined();
      return host.logged.at(-1);
    };
    const renamed = (kind: number) => (record: BundleRecord) =>
      record.kind === kind ? { ...record, key: `${record.key}x` } : record;
    expect(refusal(renamed(1))).toContain("the image of a record is that of another key (record 0)");
    expect(refusal(renamed(2))).toContain("the image of a record is that of another key (record 1)");
    expect(refusal(renamed(3))).toContain("an upstream has no sound description (record 2)");
    const image = (record: BundleRecord) =>
      record.kind === 1 ? { ...record, content: record.content.subarray(0, 50) } : record;
    expect(refusal(image)).toContain("the core refuses an image (record 0, status -2)");
  });

  it("may hold records of kinds that are not known", () => {
    const records = readBundle(bundleFrom([hostRules([route(prefix("/"), answer("known"))])]));
    const more = writeBundle([...records, { kind: 200, key: "later", content: new Uint8Array(5) }]);
    expect(new ProxyWasmHost().configure(more)).toBeDefined();
  });

  it("serves beside the one that it replaces, whose requests end with it", () => {
    const { host, plugin } = filterWith(answer("old"));
    const next = host.configure(bundleFrom([hostRules([route(prefix("/"), answer("new"))])])) ?? 0;
    const head: [string, string][] = [
      [":authority", "example.com"],
      [":path", "/"],
    ];
    expect(host.request(plugin, head).answer?.body).toBe("old");
    expect(host.request(next, head).answer?.body).toBe("new");
    host.end(plugin);
    expect(host.request(next, head).answer?.body).toBe("new");
  });

  it("can be replaced any number of times without more memory", () => {
    const host = new ProxyWasmHost();
    let plugin = host.configure(SOUND) ?? 0;
    let settled = 0;
    for (let i = 0; i < 300; i++) {
      const next = host.configure(SOUND) ?? 0;
      host.end(plugin);
      plugin = next;
      if (i === 20) settled = host.memorySize;
    }
    expect(host.memorySize).toBe(settled);
  });

  it("of any number of requests takes no more memory either", () => {
    const { host, get } = filterWith(
      withHeaders({ op: "add-response", name: "X-Echo", value: [header("x-a")], always: false }),
    );
    const serve = (count: number) => {
      for (let i = 0; i < count; i++) {
        const stream = get(`/${i}`, [["x-a", "v".repeat(i % 5_000)]]);
        if (i % 3) host.respond(stream, [[":status", "200"]]);
        host.end(stream.id);
      }
    };
    serve(5_000);
    const settled = host.memorySize;
    serve(20_000);
    expect(host.memorySize).toBe(settled);
  });
});
