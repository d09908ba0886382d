/** Patterns that nobody would write: what re2js takes, the engine takes with the same meaning; what it refuses, too. */
import { RE2JS } from "re2js";
import { beforeAll, expect, test } from "vitest";
import { type RegexEngine, RegexProgram } from "../../core-wasm/binding/regex.js";
import { CORE_TIMEOUT, createEngine } from "./core.js";
import { Random } from "./random.js";

const PATTERNS = 20_000;
const GARBAGE_TIMEOUT = 120_000;
const SNIPPETS = [
  ..."aabb01(((())))[[]]{}||**++??..^^$$\\\\--,,::",
  ..."<>P=!isUmnx7wdz&'#_ A",
  ...["(?:", "(?i)", "(?P<a>", "(?<b>", "[^", "[[:digit:]]", "[:^alpha:]", "{2}", "{1,3}", "{,2}", "\\b", "\\Q", "\\E"],
  ...["\\x41", "\\x{61}", "\\101", "\\z", "\\.", "a-b", "(?-s:", "(?U)", "*?", "??"],
];

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
}, CORE_TIMEOUT);

function compileWithRe2(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(pattern);
  } catch {
    return undefined;
  }
}

test(
  `${PATTERNS} random texts are taken or refused as by re2js, and mean the same`,
  () => {
    const random = new Random(11);
    let taken = 0;
    for (let i = 0; i < PATTERNS; i++) {
      const pattern = Array.from({ length: 1 + random.below(9) }, () => random.pick(SNIPPETS)).join("");
      const program = engine.compile(pattern);
      const oracle = compileWithRe2(pattern);
      if (!(program instanceof RegexProgram)) {
        expect(program.position).toBeLessThanOrEqual(pattern.length);
        // RE2 lets a quantifier behind flags or an empty quotation reach back to the item before them; Perl and PCRE
        // refuse it, and so does the engine: nobody means that.
        const reachesBack = /(\(\?[imsU-]*\)|\\E)$/.test(pattern.slice(0, program.position));
        if (oracle && !reachesBack) expect({ pattern, ...program }).toEqual({ pattern, refused: false });
        continue;
      }
      if (!oracle) expect({ pattern, taken: true }).toEqual({ pattern, taken: false });
      taken++;
      for (let k = 0; k < 5; k++) {
        const text = Array.from({ length: random.below(8) }, () => random.pick("aabbAB01(){}[]-:,\n")).join("");
        const matcher = oracle!.matcher(text);
        const expected = matcher.find() ? matcher.group() : undefined;
        expect({ pattern, text, match: program.captures(text)?.[0] }).toEqual({ pattern, text, match: expected });
        expect({ pattern, text, test: program.test(text) }).toEqual({ pattern, text, test: expected !== undefined });
      }
      program.release();
    }
    expect(taken).toBeGreaterThan(PATTERNS / 20);
  },
  GARBAGE_TIMEOUT,
);
