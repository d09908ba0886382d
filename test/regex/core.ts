import { readFileSync } from "node:fs";
import { RegexEngine, type RegexExports, RegexProgram } from "../../core-wasm/binding/regex.js";

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** The exports that these tests use, besides those of the engine. */
export type TestCore = RegexExports & { memory: Memory; memory_used(): number };

/** What this file needs of the JavaScript API; the compiler's library for ES2023 leaves it out. */
declare const WebAssembly: {
  instantiate(bytes: Uint8Array, imports: object): Promise<{ instance: { exports: unknown } }>;
};

/** Milliseconds that getting an instance may take on a busy machine. */
export const CORE_TIMEOUT = 120_000;

/** The one place where the tests of the regex engine get an instance of the core from. */
export async function instantiateCore(): Promise<TestCore> {
  const { instance } = await WebAssembly.instantiate(readFileSync("dist/core.wasm"), {});
  return instance.exports as TestCore;
}

export async function createEngine(): Promise<RegexEngine> {
  return new RegexEngine(await instantiateCore());
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
