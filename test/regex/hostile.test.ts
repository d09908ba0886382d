/**
 * Patterns that make backtracking engines take exponential time, on texts so long that only linear work comes to an end: on
 * 2 MiB, work that grows with the square of the length is some 10^12 steps. Nothing is timed; a test that does not end
 * fails by its time limit.
 */
import { beforeAll, expect, test } from "vitest";
import type { RegexEngine, RegexProgram } from "../../core-wasm/binding/regex.js";
import { CORE_TIMEOUT, compiled, createEngine, hasDfa } from "./core.js";

const LONGEST = 2_097_152;
/** Header and class map, transitions, sets, instructions: each at its limit. */
const LARGEST_IMAGE = 276 + 65_536 + 32 * 1056 + 8 * 4096;
const HOSTILE_TIMEOUT = 120_000;

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
}, CORE_TIMEOUT);

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
  "%s comes to an end on 2 MiB",
  (pattern, text, dfa) => {
    const program = compiled(engine, pattern);
    expect(hasDfa(program)).toBe(dfa);
    expect(program.test(text(LONGEST))).toBe(false);
  },
  HOSTILE_TIMEOUT,
);

test(
  "captures come to an end on 2 MiB too, matched or not",
  () => {
    const program = compiled(engine, "^((a+)+)+(!?)$");
    expect(program.captures(a(LONGEST))?.[3]).toBe("!");
    expect(compiled(engine, "(a+)+b").captures(a(LONGEST))).toBeUndefined();
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
