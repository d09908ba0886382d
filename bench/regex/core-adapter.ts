/** The regex engine of the core as the regex table drives it: the one file of the table that knows the binding. */
import { readFileSync } from "node:fs";
import { Core } from "../../core-wasm/binding/core.js";
import { RegexProgram } from "../../core-wasm/binding/regex.js";

/** A compiled pattern: whether it is found anywhere in a text. The copying of the text is part of the call. */
export interface Tester {
  test(text: string): boolean;
}

export class CoreRegex {
  readonly #core = Core.loadSync(readFileSync(new URL("../../core.wasm", import.meta.url)));

  /** Compiles a pattern. Throws if the core does not take it. */
  compile(pattern: string, ignoreCase: boolean): Tester {
    const program = this.#core.regex.compile(pattern, { ignoreCase });
    if (program instanceof RegexProgram) return program;
    throw new Error(`${pattern}: ${program.message} at byte ${program.position}`);
  }
}
