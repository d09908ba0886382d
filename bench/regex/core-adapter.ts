/** The regex engine of the core as the regex table drives it. */
import { readFileSync } from "node:fs";
import { Core } from "../../core-wasm/binding/core.js";
import { RegexProgram } from "../../core-wasm/binding/regex.js";

/** A compiled pattern: whether it is found anywhere in a text. The copying of the text is part of the call. */
export interface Tester {
  test(text: string): boolean;
}

export interface CoreRegex {
  /** Compiles a pattern. Throws if the core does not take it. */
  compile(pattern: string, ignoreCase: boolean): Tester;
  close(): void;
}

export async function openCoreRegex(): Promise<CoreRegex> {
  const core = await Core.load(readFileSync(new URL("../../core.wasm", import.meta.url)));
  const programs: RegexProgram[] = [];
  return {
    compile(pattern, ignoreCase) {
      const program = core.regex.compile(pattern, { ignoreCase });
      if (!(program instanceof RegexProgram)) throw new Error(`${pattern}: ${program.message}`);
      programs.push(program);
      return program;
    },
    close() {
      for (const program of programs) program.release();
    },
  };
}
