import { readFileSync } from "node:fs";
import { compilePeerSet, type PeerSetExports, peerSetSizes } from "../../core-wasm/binding/peer-set.js";

interface WasmModule {
  readonly instance: { readonly exports: unknown };
}

declare const WebAssembly: { instantiate(bytes: Uint8Array): Promise<WasmModule> };

/** The exports that these tests use, besides those of peer sets. */
export type TestCore = PeerSetExports & { memory_used(): number };

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
  const image = compilePeerSet(core, at, source.length, old);
  try {
    if (image < 0) return image;
    const { bytes } = peerSetSizes(new DataView(core.memory.buffer), image);
    return new Uint8Array(core.memory.buffer).slice(image, image + bytes);
  } finally {
    for (const pointer of [at, old, image]) if (pointer > 0) core.free(pointer);
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
