import { beforeAll, describe, expect, test } from "vitest";
import type { RegexEngine, RegexOptions } from "../../core-wasm/binding/regex.js";
import { CORE_TIMEOUT, compiled, createEngine } from "./core.js";

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
}, CORE_TIMEOUT);

/** The whole match, undefined if there is none. */
function match(pattern: string, text: string, options: RegexOptions = {}): string | undefined {
  const program = compiled(engine, pattern, options);
  const groups = program.captures(text);
  expect(program.test(text)).toBe(groups !== undefined);
  return groups?.[0];
}

function groups(pattern: string, text: string): (string | undefined)[] | undefined {
  return compiled(engine, pattern).captures(text);
}

/** All bytes that a pattern for one byte takes. */
function bytes(pattern: string, options: RegexOptions = {}): string {
  const program = compiled(engine, pattern, options);
  let taken = "";
  for (let byte = 0; byte < 256; byte++) {
    const text = String.fromCharCode(byte);
    if (program.test(text)) taken += text;
  }
  return taken;
}

const ALL = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).join("");
const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER = UPPER.toLowerCase();
const DIGITS = "0123456789";

function without(text: string): string {
  return Array.from(ALL)
    .filter((byte) => !text.includes(byte))
    .join("");
}

function sorted(text: string): string {
  return Array.from(text).sort().join("");
}

describe("literals and escapes", () => {
  test.each([
    ["\\a\\t\\n\\v\\f\\r", "\x07\t\n\v\f\r"],
    ["\\x41\\x{42}\\x{0}\\xff\\x{FF}", "AB\0\xff\xff"],
    ["\\101\\0\\07\\0012\\377", "A\0\x07\x012\xff"],
    ["\\.\\*\\/\\-\\_\\ ", ".*/-_ "],
    ["a{,2}", "a{,2}"],
    ["a{x}{", "a{x}{"],
    ["a{01}", "a{01}"],
    ["]}", "]}"],
    ["\\Qa.b*(\\E", "a.b*("],
    ["\\Qa\\\\E", "a\\"],
    ["\\Q[", "["],
    ["\\Qab\\E+", "abbb"],
    ["\\Q\\Ex", "x"],
    ["\u00e9+", "\xc3\xa9\xc3\xa9"],
    ["\\Q\u20ac\\E{2}", "\xe2\x82\xac\xe2\x82\xac"],
    ["\u{1f600}?x", "\xf0\x9f\x98\x80x"],
  ])("%j matches all of %j", (pattern, text) => {
    expect(match(`(?:${pattern})`.replace("(?:\\Q[)", "\\Q["), text)).toBe(text);
  });

  test("a repetition holds for all bytes of a character", () => {
    expect(match("^\u00e9{2}$", "\xc3\xa9\xa9")).toBeUndefined();
  });
});

describe("classes", () => {
  test.each([
    [".", without("\n")],
    ["(?s).", ALL],
    ["\\C", ALL],
    ["\\d", DIGITS],
    ["\\D", without(DIGITS)],
    ["\\w", sorted(`${DIGITS}${UPPER}${LOWER}_`)],
    ["\\W", without(`${DIGITS}${UPPER}${LOWER}_`)],
    ["\\s", "\t\n\f\r "],
    ["\\S", without("\t\n\f\r ")],
    ["[a-c]", "abc"],
    ["[^a-c]", without("abc")],
    ["[]a]", "]a"],
    ["[^]a]", without("]a")],
    ["[a-]", "-a"],
    ["[-a]", "-a"],
    ["[a-c-e]", "-abce"],
    ["[\\d\\-x]", "-0123456789x"],
    ["[^\\D]", DIGITS],
    ["[\\x41-\\x43\\]\\\\]", "ABC\\]"],
    ["[\\200-\\377]", ALL.slice(128)],
    ["[a\\n]", "\na"],
    ["[[:x]", ":[x"],
    ["[^\\x00-\\xff]", ""],
    ["[[:alnum:]]", DIGITS + UPPER + LOWER],
    ["[[:alpha:]]", UPPER + LOWER],
    ["[[:ascii:]]", ALL.slice(0, 128)],
    ["[[:blank:]]", "\t "],
    ["[[:cntrl:]]", `${ALL.slice(0, 32)}\x7f`],
    ["[[:digit:]]", DIGITS],
    ["[[:graph:]]", ALL.slice(33, 127)],
    ["[[:lower:]]", LOWER],
    ["[[:print:]]", ALL.slice(32, 127)],
    ["[[:punct:]]", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"],
    ["[[:space:]]", "\t\n\v\f\r "],
    ["[[:upper:]]", UPPER],
    ["[[:word:]]", sorted(`${DIGITS}${UPPER}${LOWER}_`)],
    ["[[:xdigit:]]", `${DIGITS}ABCDEFabcdef`],
    ["[[:^digit:]]", without(DIGITS)],
    ["[^[:^digit:]]", DIGITS],
    ["[x[:digit:]-]", `-${DIGITS}x`],
  ])("%s takes exactly its bytes", (pattern, expected) => {
    expect(bytes(pattern)).toBe(sorted(expected));
  });

  test.each([
    ["k", "Kk"],
    ["[a-c]", "ABCabc"],
    ["[^a-c]", without("ABCabc")],
    ["[[:upper:]]", UPPER + LOWER],
    ["[[:^upper:]]", without(UPPER + LOWER)],
    ["[@`]", "@`"],
    ["\\xe9", "\xe9"],
    ["(?-i)k", "k"],
  ])("%s takes both cases of ASCII letters, and no others, when case is ignored", (pattern, expected) => {
    expect(bytes(pattern, { ignoreCase: true })).toBe(expected);
  });
});

describe("assertions", () => {
  test.each([
    ["^b", "a\nb", false],
    ["a$", "a\nb", false],
    ["a$", "a\n", false],
    ["(?m)^b$", "a\nb\nc", true],
    ["(?m)a$", "a\r", false],
    ["(?m)\\Ab", "a\nb", false],
    ["(?m)a\\z", "a\nb", false],
    ["\\bfoo\\b", "a foo-b", true],
    ["\\bfoo\\b", "a foo_b", false],
    ["\\b", "", false],
    ["\\B", "", true],
    ["o\\Bo", "foo", true],
    ["^$", "", true],
    ["^$", "x", false],
    ["$^", "", true],
    ["^*x", "ax", true],
    ["(?:^|/)feed$", "feed", true],
    ["(?:^|/)feed$", "a/feed", true],
    ["(?:^|/)feed$", "afeed", false],
    ["(a|b$)", "cb", true],
  ])("%s on %j is %s", (pattern, text, expected) => {
    expect(match(pattern, text) !== undefined).toBe(expected);
  });
});

describe("repetition", () => {
  test.each([
    ["a*", "aab", "aa"],
    ["a*?", "aab", ""],
    ["a+?b", "aab", "aab"],
    ["a??", "a", ""],
    ["a{2}", "aaa", "aa"],
    ["a{2,}", "aaaa", "aaaa"],
    ["a{1,2}", "aaa", "aa"],
    ["a{1,2}?", "aaa", "a"],
    ["a{0}b", "ab", "b"],
    ["(?:){1000}x", "x", "x"],
    ["(?U)a+", "aa", "a"],
    ["(?U)a+?", "aa", "aa"],
    ["(|a)*", "aa", ""],
    ["(|a)+", "aa", ""],
    ["(a|ab)(c|bcd)(d*)", "abcd", "abcd"],
    ["x|xy", "xy", "x"],
  ])("%s prefers on %j the match %j", (pattern, text, expected) => {
    expect(match(pattern, text)).toBe(expected);
  });

  test("1,000 is the largest count", () => {
    expect(match("^a{1000}$", "a".repeat(1000))).toHaveLength(1000);
    expect(match("^a{1000}$", "a".repeat(999))).toBeUndefined();
  });
});

describe("flags", () => {
  test.each([
    ["(?i)aB", "Ab", true],
    ["a(?i)b", "aB", true],
    ["a(?i)b", "AB", false],
    ["(?:a(?i)b)c", "aBC", false],
    ["(?i:a)b", "Ab", true],
    ["(?i:a)b", "AB", false],
    ["(?i)a(?-i:b)", "Ab", true],
    ["(?i)a(?-i:b)", "AB", false],
    ["a(?i)b|c", "C", true],
    ["(?s-i:.)", "\n", true],
    ["(?)a", "a", true],
    ["(?is)A.", "a\n", true],
  ])("%s on %j is %s", (pattern, text, expected) => {
    expect(match(pattern, text) !== undefined).toBe(expected);
  });

  test("anchored ties a match to the start of the text, not to its end", () => {
    expect(match("b", "ab", { anchored: true })).toBeUndefined();
    expect(match("a|b", "bc", { anchored: true })).toBe("b");
    expect(match("/apple(/|$)", "/apple", { anchored: true })).toBe("/apple");
    expect(match("\\bb", "ab b", { anchored: true })).toBeUndefined();
  });
});

describe("groups", () => {
  test("plain, named and nested groups are numbered by their parenthesis", () => {
    expect(groups("((?P<one>a)(?<two>b)(?:c))(d)", "abcd")).toEqual(["abcd", "abc", "a", "b", "d"]);
  });

  test("a group that took no part is undefined, an empty one is empty", () => {
    expect(groups("(a)|(b)()", "b")).toEqual(["b", undefined, "b", ""]);
  });

  test("a repeated group keeps its last iteration", () => {
    expect(groups("(?:(a)|(b))*", "ab")).toEqual(["ab", "a", "b"]);
  });

  test("groups above 9 count but are not tracked", () => {
    const program = compiled(engine, "(.)".repeat(12));
    expect(program.groups).toBe(12);
    expect(program.captures("abcdefghijkl")).toEqual(["abcdefghijkl", ..."abcdefghi"]);
  });

  test("nine groups are tracked in the largest programs too, in more than one run", () => {
    const pattern = `${"(x?)".repeat(9)}(?:[ab]{999}){4}`;
    const text = "xxx".concat("ab".repeat(1998));
    expect(groups(pattern, text)).toEqual([text, "x", "x", "x", "", "", "", "", "", ""]);
  });
});

describe("images", () => {
  test("the same pattern and options give the same bytes, whatever was compiled before", async () => {
    const other = await createEngine();
    compiled(other, "(x|y)*z{3,9}\\b");
    for (const pattern of ["^/v([0-9]+)/items/([^/]+)$", "\\bfoo", "(a|b)*a(a|b){12}", "[a-z]{2}/feed$"]) {
      expect(compiled(other, pattern).bytes()).toEqual(compiled(engine, pattern).bytes());
    }
  });

  test("an image taken out of one instance works in another", async () => {
    const image = compiled(engine, "^/v([0-9]+)").bytes();
    const other = await createEngine();
    expect(other.load(image).captures("/v12/x")).toEqual(["/v12", "12"]);
  });
});
