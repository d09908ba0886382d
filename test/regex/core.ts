import { existsSync, readFileSync } from "node:fs";
import asc from "assemblyscript/asc";
import { RegexEngine, type RegexExports, type RegexMemory, RegexProgram } from "../../core-wasm/binding/regex.js";

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** What this file needs of the JavaScript API; the compiler's library for ES2023 leaves it out. */
declare const WebAssembly: {
  instantiate(bytes: Uint8Array, imports: object): Promise<{ instance: { exports: unknown } }>;
};

/** The core's bytes: the built one, or the regex engine alone compiled here where there is none yet. */
async function coreBytes(): Promise<Uint8Array<ArrayBuffer>> {
  if (existsSync("dist/core.wasm")) return new Uint8Array(readFileSync("dist/core.wasm"));
  let binary: Uint8Array | undefined;
  const entry = "core-wasm/assembly/regex/exports.ts";
  const options = ["--config", "none", "-O3", "--noAssert", "--converge", "--runtime", "stub", "--use", "abort="];
  const { error, stderr } = await asc.main([entry, ...options, "--initialMemory", "2", "--outFile", "core.wasm"], {
    writeFile: (_name: string, contents: Uint8Array | string) => {
      if (typeof contents !== "string") binary = contents;
    },
  });
  if (error || !binary) throw new Error(stderr.toString());
  return new Uint8Array(binary);
}

/** Milliseconds that getting an instance may take on a busy machine. */
export const CORE_TIMEOUT = 120_000;

/** The one place where the tests of the regex engine get an instance of the core from. */
export async function instantiateCore(): Promise<RegexExports & { memory: Memory }> {
  const { instance } = await WebAssembly.instantiate(await coreBytes(), {});
  return instance.exports as RegexExports & { memory: Memory };
}

/** Memory behind what the instance had at first. A region goes back to the list of its size. */
export function regionsOf(memory: Memory): RegexMemory {
  let top = memory.buffer.byteLength;
  const sizes = new Map<number, number>();
  const free = new Map<number, number[]>();
  return {
    allocate(size) {
      const rounded = (size + 63) & ~63;
      const reused = free.get(rounded)?.pop();
      const pointer = reused ?? top;
      if (reused === undefined) {
        top += rounded;
        const missing = top - memory.buffer.byteLength;
        if (missing > 0) memory.grow(Math.ceil(missing / 65536));
      }
      sizes.set(pointer, rounded);
      return pointer;
    },
    release(pointer) {
      const size = sizes.get(pointer) as number;
      const list = free.get(size);
      if (list) list.push(pointer);
      else free.set(size, [pointer]);
    },
  };
}

export async function createEngine(): Promise<RegexEngine> {
  const core = await instantiateCore();
  return new RegexEngine(core, regionsOf(core.memory));
}

/** Compiles a pattern that must be taken. */
export function compiled(engine: RegexEngine, pattern: string, options = {}): RegexProgram {
  const program = engine.compile(pattern, options);
  if (program instanceof RegexProgram) return program;
  throw new Error(`${pattern}: ${program.message} at ${program.position}`);
}

/** Whether a program has a DFA, or is always simulated. */
export function hasDfa(program: RegexProgram): boolean {
  return ((program.bytes()[10] as number) & 2) !== 0;
}
