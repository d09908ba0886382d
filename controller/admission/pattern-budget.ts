import type { PatternChecker } from "../../core-wasm/binding/api.js";

/** As many groups as a text can refer to. */
const ALL_GROUPS = 9;

/**
 * Checks patterns until they have taken their time, and takes the rest for good. A few hundred patterns of the worst kind
 * keep a processor busy for seconds: no matter for who may store objects, but the webhook can be asked by anybody who
 * reaches its port, in the process that the proxy runs in.
 */
export class PatternBudget implements PatternChecker {
  /** How many patterns were not checked. */
  skipped = 0;
  #left: number;

  /** `clock` in milliseconds of any origin. */
  constructor(
    private readonly checker: PatternChecker,
    milliseconds: number,
    private readonly clock: () => number,
  ) {
    this.#left = milliseconds;
  }

  checkRegex(pattern: string, ignoreCase: boolean): ReturnType<PatternChecker["checkRegex"]> {
    if (this.#left <= 0) {
      this.skipped += 1;
      return { groups: ALL_GROUPS };
    }
    const begun = this.clock();
    const result = this.checker.checkRegex(pattern, ignoreCase);
    this.#left -= this.clock() - begun;
    return result;
  }
}
