/**
 * Patterns that make backtracking engines take exponential time. A run is compared with one on an eighth of the text, not
 * with a limit in seconds: linear work takes 8 times as long, quadratic 64 times, exponential for ever.
 */
import { beforeAll, expect, test } from "vitest";
import type { RegexEngine, RegexProgram } from "../../core-wasm/binding/regex.js";
import { CORE_TIMEOUT, compiled, createEngine, hasDfa } from "./core.js";

const LONGEST = 65_536;
/** Header and class map, transitions, sets, instructions: each at its limit. */
const LARGEST_IMAGE = 276 + 65_536 + 32 * 1056 + 8 * 4096;
const HOSTILE_TIMEOUT = 120_000;

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
}, CORE_TIMEOUT);

/** Shortest of some runs, in milliseconds: what else the machine does only makes runs longer. */
function fastest(run: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 7; i++) {
    const begin = performance.now();
    run();
    best = Math.min(best, performance.now() - begin);
  }
  return best;
}

function expectLinear(run: (text: string) => void, text: (length: number) => string): void {
  const short = text(LONGEST / 8);
  const long = text(LONGEST);
  run(short);
  const once = fastest(() => run(short));
  expect(fastest(() => run(long)) / Math.max(once, 0.01)).toBeLessThan(24);
}

const a = (length: number) => `${"a".repeat(length - 1)}!`;
const x = (length: number) => "x".repeat(length);

test.each([
  ["(a+)+$", a, true],
  ["^(a+)+$", a, true],
  ["(x|xx)*y", x, true],
  ["(x+x+)+y", x, true],
  ["^(([a-z])+.)+[A-Z]([a-z])+$", a, true],
  ["(a*)*b\\b", a, false],
  ["(?:a?){30}a{30}b\\b", a, false],
  ["(a|a)*a[ab]{12}c", a, false],
  ["(?:x{1,9}){1,9}y\\b", x, false],
] as [string, (length: number) => string, boolean][])(
  "%s takes linear time on 64 KiB",
  (pattern, text, dfa) => {
    const program = compiled(engine, pattern);
    expect(hasDfa(program)).toBe(dfa);
    expect(program.test(text(LONGEST))).toBe(false);
    expectLinear((subject) => program.test(subject), text);
  },
  HOSTILE_TIMEOUT,
);

test(
  "captures take linear time on 64 KiB too, matched or not",
  () => {
    const program = compiled(engine, "^((a+)+)+(!?)$");
    expect(program.captures(a(LONGEST))?.[3]).toBe("!");
    expectLinear((subject) => program.captures(subject), a);
    expectLinear((subject) => compiled(engine, "(a+)+b").captures(subject), a);
  },
  HOSTILE_TIMEOUT,
);

test(
  "hostile patterns compile to bounded images, or are refused",
  () => {
    const patterns = [
      "(a|b|c|d|e|f|g|h)*a[a-h]{9}".repeat(3),
      "(?:[a-z][0-9]){900}",
      `(?:${"a?".repeat(1000)})${"a".repeat(1000)}`,
      `${"(?:a|b|".repeat(200)}${")*".repeat(200)}`,
      Array.from({ length: 1300 }, (_, i) => `[${String.fromCharCode(97 + (i % 26))}${i % 10}]`).join(""),
      `(?i)${"(?<n>".replace("n", "name")}${"abc".repeat(1300)})`,
      "[[:".repeat(1300),
      Array.from({ length: 500 }, (_, i) => `(?<g${i}>)`).join(""),
    ];
    for (const pattern of patterns) {
      const result = engine.compile(pattern);
      if ("position" in result) expect(result.position).toBeLessThanOrEqual(pattern.length);
      else expect((result as RegexProgram).bytes().length).toBeLessThanOrEqual(LARGEST_IMAGE);
    }
  },
  HOSTILE_TIMEOUT,
);
