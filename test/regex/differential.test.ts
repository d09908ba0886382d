import { RE2JS } from "re2js";
import { beforeAll, expect, test } from "vitest";
import type { RegexEngine } from "../../core-wasm/binding/regex.js";
import { CORE_TIMEOUT, compiled, createEngine, hasDfa } from "./core.js";
import { type Dialects, PatternWriter, writeText } from "./patterns.js";
import { Random } from "./random.js";

type Groups = (string | undefined)[] | undefined;

const TEXTS = 50;
/** Longest text that JavaScript gets with a repetition inside a repetition. */
const NESTED_TEXT = 9;

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
}, CORE_TIMEOUT);

function fromRe2(pattern: RE2JS, text: string): Groups {
  const matcher = pattern.matcher(text);
  if (!matcher.find()) return undefined;
  const groups: Groups = [];
  for (let group = 0; group <= Math.min(matcher.groupCount(), 9); group++) {
    const begin = matcher.start(group);
    groups.push(begin < 0 ? undefined : text.slice(begin, matcher.end(group)));
  }
  return groups;
}

function fromJavaScript(pattern: RegExp, text: string): Groups {
  const match = pattern.exec(text);
  return match ? Array.from(match).slice(0, 10) : undefined;
}

function same(a: Groups, b: Groups): boolean {
  return a === b || (!!a && !!b && a.length === b.length && a.every((group, index) => group === b[index]));
}

/**
 * Compares the engine, searching and anchored, with both oracles. Returns how many texts matched. `expect` is called only
 * to show a difference: 200,000 calls would take longer than all the matching.
 */
function compare(dialects: Dialects, texts: string[]): number {
  const { re2, ignoreCase } = dialects;
  const program = compiled(engine, re2, { ignoreCase });
  const anchored = compiled(engine, re2, { ignoreCase, anchored: true });
  const javascript = new RegExp(dialects.javascript, ignoreCase ? "i" : "");
  const oracle = RE2JS.compile(re2, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  let matches = 0;
  for (const text of texts) {
    const groups = program.captures(text);
    const expected = fromRe2(oracle, text);
    const matched = expected !== undefined;
    if (!same(groups, expected)) expect({ re2, ignoreCase, text, groups }).toEqual({ groups: expected });
    if (program.test(text) !== matched) expect({ re2, ignoreCase, text, test: !matched }).toEqual({ test: matched });
    const begins = oracle.matcher(text).lookingAt();
    if (anchored.test(text) !== begins)
      expect({ re2, ignoreCase, text, anchored: !begins }).toEqual({ anchored: begins });
    if (matched) matches++;
    if (dialects.nested && text.length > NESTED_TEXT) continue;
    const found = fromJavaScript(javascript, text);
    const agrees = dialects.sameCaptures ? same(groups, found) : matched === (found !== undefined);
    if (!agrees) expect({ re2, ignoreCase, text, groups }).toEqual({ javascript: dialects.javascript, groups: found });
  }
  program.release();
  anchored.release();
  return matches;
}

function texts(random: Random, highBytes: boolean): string[] {
  return Array.from({ length: TEXTS }, () => writeText(random, highBytes));
}

test("3,000 patterns with a DFA agree with re2js and RegExp on 150,000 texts", () => {
  const random = new Random(1);
  let matches = 0;
  for (let i = 0; i < 3000; i++) {
    const highBytes = i % 3 === 0;
    const writer = new PatternWriter(random, { context: false, highBytes });
    matches += compare(writer.write(3), texts(random, highBytes));
  }
  // Otherwise the generator would prove nothing.
  expect(matches).toBeGreaterThan(30_000);
  expect(matches).toBeLessThan(120_000);
});

test("800 patterns that look at the bytes around, always simulated, agree on 40,000 texts", () => {
  const random = new Random(2);
  let matches = 0;
  for (let i = 0; i < 800; i++) {
    const writer = new PatternWriter(random, { context: true, highBytes: false });
    matches += compare(writer.write(3), texts(random, false));
  }
  expect(matches).toBeGreaterThan(8_000);
});

test("300 patterns of more than 512 states, always simulated, agree on 15,000 texts", () => {
  const random = new Random(3);
  let matches = 0;
  let simulated = 0;
  for (let i = 0; i < 300; i++) {
    const writer = new PatternWriter(random, { context: false, highBytes: false });
    const inner = writer.write(1);
    const count = 10 + random.below(3);
    const wide = (pattern: string) => `([ab])[a-d]{${count}}(?:${pattern})?[ab]`;
    const dialects = { ...inner, re2: wide(inner.re2), javascript: wide(inner.javascript), sameCaptures: false };
    const probe = compiled(engine, dialects.re2, dialects);
    if (!hasDfa(probe)) simulated++;
    probe.release();
    const subjects = Array.from({ length: TEXTS }, () => {
      const letters = Array.from({ length: 10 + random.below(25) }, () => random.pick("abcdabx"));
      return letters.join("");
    });
    matches += compare(dialects, subjects);
  }
  expect(simulated).toBeGreaterThan(250);
  expect(matches).toBeGreaterThan(1_000);
});
