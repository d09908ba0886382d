import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const MOST_BYTES = 48 * 1024;
const MOST_GZIPPED = 20 * 1024;

/** The exports, by what they are for; core-wasm/ABI.md documents each. */
const EXPORTS = [
  ...["memory", "abi_version", "alloc", "free", "memory_used"],
  ...["table_new", "table_free"],
  ...["context_new", "context_free", "context_trace"],
  ...["shard_validate", "shard_load", "shard_remove"],
  ...["peers_load", "peers_remove", "peers_find"],
  ...["route", "resume", "release_decision", "render_setting"],
  ...["peer_pick", "peer_done", "peer_state", "peer_status"],
  ...["ring_crc32", "peer_set_compile", "peer_set_validate", "peer_set_lookup", "peer_set_lookup_key"],
  ...["peer_set_lookup_many", "peer_set_position", "peer_set_owner", "peer_set_walk"],
  ...["health_new", "health_set", "health_state", "health_report"],
  ...["regex_compile", "regex_match", "regex_run", "regex_validate", "regex_scratch_size"],
];

const IMPORT_SECTION = 2;
const START_SECTION = 8;

const bytes = readFileSync(new URL("../../dist/core.wasm", import.meta.url));
const module = new WebAssembly.Module(bytes);

/** The ids of the sections of a module (WebAssembly core specification, 5.5.2: id, size as LEB128, contents). */
function sectionIds(wasm: Uint8Array): number[] {
  const ids: number[] = [];
  for (let at = 8; at < wasm.length; ) {
    ids.push(wasm[at++]);
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = wasm[at++];
      size += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    at += size;
  }
  return ids;
}

describe("core.wasm", () => {
  it("exports what is documented, and nothing else", () => {
    expect(
      WebAssembly.Module.exports(module)
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...EXPORTS].sort());
  });

  it("exports functions and one memory, no tables and no globals", () => {
    const kinds = WebAssembly.Module.exports(module).map(({ name, kind }) => (name === "memory" ? kind : `${kind}s`));
    expect(new Set(kinds)).toEqual(new Set(["memory", "functions"]));
  });

  it("imports nothing", () => {
    expect(WebAssembly.Module.imports(module)).toEqual([]);
    expect(sectionIds(bytes)).not.toContain(IMPORT_SECTION);
  });

  it("runs nothing when it is instantiated", () => {
    expect(sectionIds(bytes)).not.toContain(START_SECTION);
  });

  it("speaks version 1 of the interface", () => {
    const { abi_version: version } = new WebAssembly.Instance(module).exports as { abi_version: () => number };
    expect(version() >> 8).toBe(1);
  });

  it(`is at most ${MOST_BYTES} bytes`, () => {
    expect(
      bytes.length,
      `core.wasm has ${bytes.length} bytes, ${bytes.length - MOST_BYTES} above the limit`,
    ).toBeLessThanOrEqual(MOST_BYTES);
  });

  it(`is at most ${MOST_GZIPPED} bytes when gzipped`, () => {
    const size = gzipSync(bytes, { level: 9 }).length;
    expect(size, `gzipped core.wasm has ${size} bytes, ${size - MOST_GZIPPED} above the limit`).toBeLessThanOrEqual(
      MOST_GZIPPED,
    );
  });
});
