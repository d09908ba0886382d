import { beforeAll, expect, test } from "vitest";
import { RegexEngine, RegexProgram } from "../../core-wasm/binding/regex.js";
import { CORE_TIMEOUT, compiled, createEngine, instantiateCore } from "./core.js";

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
}, CORE_TIMEOUT);

test.each<[string, number, RegExp]>([
  // Parentheses and classes that do not fit together.
  ["/(([a-zA-Z]{2}/)?news/?$", 1, /not closed/],
  ["a(b(c)", 1, /not closed/],
  ["(?i", 0, /not closed/],
  ["a)b", 1, /closes nothing/],
  ["(a))", 3, /closes nothing/],
  ["x[a-", 1, /class is not closed/],
  ["x[]", 1, /class is not closed/],
  ["[c-a]", 1, /range/],
  ["a[[:alfa:]]", 2, /of this name/],
  ["[a\u00e9]", 2, /outside ASCII/],
  // Escapes.
  ["a\\q", 1, /no such escape/],
  ["[\\b]", 1, /no such escape/],
  ["\\E", 0, /no such escape/],
  ["\\\u00e9", 0, /no such escape/],
  ["ab\\", 2, /ends with a backslash/],
  ["\\x4", 0, /hexadecimal/],
  ["\\x{}", 0, /hexadecimal/],
  ["\\x{41", 0, /hexadecimal/],
  ["a\\x{100}", 1, /above 0xFF/],
  ["\\x{ffffffffffffffff}", 0, /above 0xFF/],
  ["\\400", 0, /above 0xFF/],
  ["(a)\\1", 3, /backreferences/],
  ["\\8", 0, /backreferences/],
  ["(?P<n>a)(?P=n)", 8, /backreferences/],
  ["\\k<n>", 0, /backreferences/],
  ["a\\pL", 1, /Unicode classes/],
  ["[\\P{Greek}]", 1, /Unicode classes/],
  ["\\Xa", 0, /not supported/],
  ["a\\Z", 1, /not supported/],
  ["\\Ga", 0, /not supported/],
  ["a\\Kb", 1, /not supported/],
  // Repetition.
  ["*a", 0, /nothing to repeat/],
  ["a|+", 2, /nothing to repeat/],
  ["(?:{2})", 3, /nothing to repeat/],
  ["(*ACCEPT)", 1, /nothing to repeat/],
  ["a**", 2, /without a group/],
  ["a{2}{3}", 4, /without a group/],
  ["a+?*", 3, /without a group/],
  ["a++", 2, /possessive/],
  ["a{2}+", 4, /possessive/],
  ["ab{3,2}", 2, /below its lower/],
  ["a{1001}", 1, /exceed 1000/],
  ["a{0,99999999999999}", 1, /exceed 1000/],
  // Perl syntax that RE2 has not.
  ["a(?=b)", 1, /lookahead/],
  ["a(?!b)", 1, /lookahead/],
  ["(?<=a)b", 0, /lookbehind/],
  ["(?<!a)b", 0, /lookbehind/],
  ["x(?>a)", 1, /atomic/],
  ["(a)?(?(1)b)", 4, /conditional/],
  ["a(?R)", 1, /recursion/],
  ["a(?1)", 1, /recursion/],
  ["a(?-1)", 1, /recursion/],
  ["(?P>n)", 0, /recursion/],
  ["(?&n)", 0, /recursion/],
  ["(?x)a", 2, /flag syntax/],
  ["(?i-)a", 4, /flag syntax/],
  ["(?#c)a", 2, /flag syntax/],
  ["(?<>a)", 3, /group name/],
  ["(?P<a-b>c)", 5, /group name/],
  ["(?<n", 4, /group name/],
  ["(?<n>a)(?P<n>b)", 11, /already in use/],
])("%s is refused at byte %i", (pattern, position, message) => {
  expect(engine.compile(pattern)).toEqual({ position, message: expect.stringMatching(message) });
});

test.each<[string, string, number, RegExp]>([
  ["a pattern of 4,097 bytes", "a".repeat(4097), 4096, /longer than 4096/],
  ["a group in 250 others", "(".repeat(251), 250, /nested deeper/],
  ["a repetition of a repetition that expands to 10,000", "(?:a{100}){100}", 10, /4096 instructions/],
  ["three repetitions that expand to 262,144", "((a{64}){64}){64}", 8, /4096 instructions/],
  ["alternatives that expand to 4,097", `${"a".repeat(4000)}${"|".repeat(96)}`, 4095, /4096 instructions/],
  ["4,096 literals, which need one more instruction", "a".repeat(4096), 4095, /4096 instructions/],
])("%s is refused", (_what, pattern, position, message) => {
  expect(engine.compile(pattern)).toEqual({ position, message: expect.stringMatching(message) });
});

test("bytes that are not UTF-8 are refused where they begin", () => {
  const { core } = engine;
  for (const [bytes, position] of [
    [[0x61, 0xff], 1],
    [[0xc3], 1],
    [[0xe2, 0x82, 0x61], 2],
    [[0x80], 0],
  ] as const) {
    const source = core.alloc(32);
    new Uint8Array(core.memory.buffer).set(bytes, source);
    expect(core.regex_compile(source, bytes.length, 0, source + 16)).toBe(-1);
    expect([...new Uint32Array(core.memory.buffer, source + 16, 4)]).toEqual([0, 0, position, 2]);
    core.free(source);
  }
});

test("what is within every bound is taken", () => {
  for (const pattern of ["a".repeat(4095), `${"(".repeat(250)}a${")".repeat(250)}`, "(?:a{63}){65}"]) {
    expect(engine.compile(pattern)).toBeInstanceOf(RegexProgram);
  }
});

test("a pattern leaves no memory behind, taken or refused", async () => {
  const core = await instantiateCore();
  const own = new RegexEngine(core);
  const before = core.memory_used();
  for (const pattern of ["^/api/", "(", "[a-f]+(x|y)*", "\\bword\\b"]) {
    const result = own.compile(pattern);
    if (result instanceof RegexProgram) {
      result.test("word");
      result.release();
    }
  }
  // The buffers of the engine stay: they are grown for its largest program only.
  const grown = core.memory_used();
  for (let i = 0; i < 100; i++) {
    for (const pattern of ["^/api/", "("]) {
      const result = own.compile(pattern);
      if (result instanceof RegexProgram) result.release();
    }
  }
  expect(core.memory_used()).toBe(grown);
  expect(grown - before).toBeLessThan(1 << 16);
});

test("pointers that leave the memory are refused", () => {
  const { core } = engine;
  const program = compiled(engine, "a+");
  const limit = core.memory.buffer.byteLength;
  expect(core.regex_compile(limit - 4, 8, 0, 0)).toBe(-10);
  expect(core.regex_compile(0, 8, 0, limit - 4)).toBe(-10);
  expect(core.regex_match(-8, 64, 0, 0, 0, 0)).toBe(-10);
  expect(core.regex_run(limit - 8, 64, 0, 0, 0, 1)).toBe(-10);
  expect(core.regex_scratch_size(limit - 8, 64)).toBe(-10);
  expect(core.regex_validate(limit - 8, 64)).toBe(0);
  program.release();
});
