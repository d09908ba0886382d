import { readFileSync } from "node:fs";
import type { PeerSetExports } from "../../core-wasm/binding/peer-set.js";

interface WasmModule {
  readonly instance: { readonly exports: unknown };
}

declare const WebAssembly: { instantiate(bytes: Uint8Array): Promise<WasmModule> };

/** The exports that these tests use, besides those of peer sets. */
export type TestCore = PeerSetExports & { heap_used(): number };

/** A fresh instance of the built core, with a memory of its own. */
export async function freshCore(): Promise<TestCore> {
  const bytes = readFileSync(new URL("../../dist/core.wasm", import.meta.url));
  return (await WebAssembly.instantiate(bytes)).instance.exports as TestCore;
}

/** Copies bytes into the core's memory; the caller frees. */
export function put(core: PeerSetExports, bytes: Uint8Array): number {
  const pointer = core.alloc(bytes.length);
  new Uint8Array(core.memory.buffer).set(bytes, pointer);
  return pointer;
}

/** Compiles a source, with an older image if given, and returns the image's bytes or the status. */
export function compile(core: PeerSetExports, source: Uint8Array, older?: Uint8Array): Uint8Array | number {
  const at = put(core, source);
  const old = older ? put(core, older) : 0;
  let out = 0;
  let work = 0;
  try {
    const capacity = core.peer_set_image_bound(at, source.length, old);
    if (capacity < 0) return capacity;
    const workCapacity = core.peer_set_work_size(at, source.length, old);
    out = core.alloc(capacity);
    work = core.alloc(workCapacity);
    const size = core.peer_set_compile(at, source.length, old, out, capacity, work, workCapacity);
    return size < 0 ? size : new Uint8Array(core.memory.buffer).slice(out, out + size);
  } finally {
    for (const pointer of [at, old, out, work]) if (pointer) core.free(pointer);
  }
}

/** Pseudo-random numbers from [0, 2^32) by a fixed seed (xorshift32), so that a failure can be seen again. */
export function randomNumbers(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
