/**
 * A host program that has lost its way: it calls any export with arguments of which some are wrong (handles of other kinds, of
 * what it has given back, addresses beyond the memory, huge lengths, blocks that overlap), in any order. It keeps
 * books of what it has, so that each answer can be judged.
 */
import type { CoreExports } from "../../core-wasm/binding/core-exports.js";
import type { Random } from "../support/random.js";
import { Belongings, type Supplies } from "./straying-belongings.js";
import { engineCalls } from "./straying-engine-calls.js";
import { tableCalls } from "./straying-table-calls.js";
import type { Calls } from "./straying-verdicts.js";

export class StrayingHost {
  /** How often each export was called. */
  readonly calls = new Map<string, number>();
  readonly #belongings: Belongings;
  readonly #acts: Calls;
  readonly #names: string[];

  constructor(
    exports: CoreExports,
    readonly random: Random,
    supplies: Supplies,
  ) {
    this.#belongings = new Belongings(exports, random, supplies);
    this.#acts = { ...tableCalls(this.#belongings), ...engineCalls(this.#belongings) };
    this.#names = Object.keys(this.#acts);
  }

  /** One call of any export. Answers with what is wrong, if anything; throws where the core traps. */
  step(): string | undefined {
    const name = this.random.pick(this.#names);
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    const problem = this.#acts[name]();
    return problem && `${name}: ${problem}`;
  }

  /** Gives back what the host has, in any order. */
  end(): void {
    this.#belongings.end();
  }
}
