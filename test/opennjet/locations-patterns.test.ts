import { beforeAll, describe, expect, it } from "vitest";
import {
  capturingText,
  literalPattern,
  searchTexts,
} from "../../controller/proxies/opennjet/locations/pattern-text.js";
import { parsePattern } from "../../controller/proxies/opennjet/locations/pattern-tree.js";
import { UnsupportedError } from "../../controller/proxies/plan-step.js";
import type { RegexEngine } from "../../core-wasm/binding/regex.js";
import { conditionHolds, parseCondition } from "../real/opennjet-double/conditions.js";
import { pcrePattern } from "../real/opennjet-double/pcre.js";
import { compiled, createEngine } from "../regex/core.js";
import { PatternWriter, writeText } from "../regex/patterns.js";
import { Random } from "../regex/random.js";
import { DANGEROUS_PATTERNS, ORDINARY_PATTERNS, ORDINARY_REWRITES } from "./pattern-lists.js";

const PATTERNS = 3000;
const TEXTS = 20;

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
});

function word(pattern: string, ignoreCase = false): string {
  return searchTexts(parsePattern(pattern, ignoreCase)).join(" or ");
}

function inQuotes(pattern: string): string {
  return capturingText(parsePattern(pattern, false));
}

/** Whether one of these matches, as comparisons of a conditional location are read. */
function matcher(texts: readonly string[]): (value: string) => boolean {
  const tree = parseCondition(`(${texts.map((text) => `$uri ~ ${text}`).join(" || ")})`);
  return (value) => conditionHolds(tree, () => value);
}

/** Undefined where the pattern is refused, for what it costs. */
function unlessRefused<T>(written: () => T): T | undefined {
  try {
    return written();
  } catch (error) {
    expect(error).toBeInstanceOf(UnsupportedError);
    expect((error as Error).message).not.toContain("can't be said");
    return undefined;
  }
}

describe("a pattern of the core, as one of PCRE", () => {
  it.each([
    ["^/api/v[0-9]$", "^/api/v[0-9]\\z"],
    ["a.b", "a[^\\x0A]b"],
    ["(?i)ab", "[Aa][Bb]"],
    ["xa{2,3}b", "xaa(?:a)?b"],
    ["(a|b)c", "[ab]c"],
    ["^(xa||b)c", "^(?:b|xa)?c"],
    ["é", "\\xC3\\xA9"],
    ["(?m)^a$", "(?:^|(?<=\\x0A))a(?:\\z|(?=\\x0A))"],
    ["\\Qa.b{}\\E", "a\\.b\\x7B\\x7D"],
    ["[^a]", "[^a]"],
    ["\\d\\s", "[0-9][\\x09\\x0A\\x0C\\x0D\\x20]"],
    ["&&&|\\|\\|", "\\x26\\x26\\x26|\\x7C\\x7C"],
    ["\\n\\t\\\\n", "\\x0A\\x09\\x5Cn"],
  ])("of %j is %j", (pattern, expected) => {
    expect(word(pattern)).toBe(expected);
  });

  it("has no byte that a reader of configuration files gives a meaning", () => {
    const every = Array.from({ length: 256 }, (_, byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
    expect(word(every)).toMatch(/^[!-~]+$/);
    expect(word(every)).not.toMatch(/[;{}"'#$&]|\|\||\\[nrt"'\\]/);
    expect(literalPattern("a b;{}\"'\\#$&&||()\n")).toBe(
      "a\\x20b\\x3B\\x7B\\x7D\\x22\\x27\\x5C\\x23\\x24\\x26\\x26\\x7C\\x7C\\x28\\x29\\x0A",
    );
  });

  it("is refused where it would not fit into the buffer of OpenNJet", () => {
    expect(() => word("[a-z0-9]{900}")).toThrow(UnsupportedError);
  });
});

describe("a pattern of which nothing counts but whether it matches", () => {
  it.each([
    ["loses what it repeats at its ends", ".*\\.example\\.com(/.*)?", "\\.example\\.com"],
    ["is searched for piece by piece", "^/.*a.*b$", "^/(?>[^\\x0A]*?a)[^\\x0A]*b\\z"],
    [
      "passes over what a failed try has read",
      "Mozilla.*Chrome.*Safari",
      "Mozilla(?>[^\\x0A]*?Chrome|(?>[^\\x0A]*)(*SKIP)(?!))(?:[^\\x0A]*Safari|(?>[^\\x0A]*)(*SKIP)(?!))",
    ],
    ["leaves a loop of several bytes for good", "^(/[^/]+)*$", "^(?:/[^/]+)*+\\z"],
    ["leaves it as soon as the rest is found", "^(/[a-z]+)*/x$", "^(?:(?!/x\\z)/[a-z]+)*+/x\\z"],
    [
      "leaves each of two such loops as soon as its rest is found",
      "^(x|(a?b)+/a)*(a?b)*\\b[ab]",
      "^(?:(?!(?:(?!\\b[ab])a?b)*+\\b[ab])(?:x|(?:a?b)++/a))*+(?:(?!\\b[ab])a?b)*+\\b[ab]",
    ],
    ["has no turn of a loop that reads nothing", "^(?:[ab]*|//)*c$", "^(?:[ab]|//)*+c\\z"],
    ["tries what begins alike once", "bot|bing|bat", "b(?:ot|ing|at)"],
    [
      "has alternatives at the start of the text by themselves",
      "(^|; )id=[^;]+;",
      "^id=[^\\x3B][^\\x3B]*\\x3B|\\x3B\\x20id=[^\\x3B][^\\x3B]*\\x3B",
    ],
    [
      "is several where each may skip what others find",
      "a.*b|c.*d",
      "a(?:[^\\x0A]*b|(?>[^\\x0A]*)(*SKIP)(?!)) or c(?:[^\\x0A]*d|(?>[^\\x0A]*)(*SKIP)(?!))",
    ],
    ["is read in one way where loops exclude each other", "^/[0-9]+-[0-9]+$", "^/[0-9][0-9]*\\-[0-9][0-9]*\\z"],
  ])("%s: %s", (_, pattern, expected) => {
    expect(word(pattern)).toBe(expected);
  });

  it.each(ORDINARY_PATTERNS)("is taken where it is what users write: %s", (pattern) => {
    expect(word(pattern)).not.toBe("");
  });

  it.each(DANGEROUS_PATTERNS)("is refused where %s: %s", (_, pattern) => {
    expect(() => word(pattern)).toThrow(/^a pattern can be read in several ways, which may take PCRE much time/);
  });
});

describe("a pattern whose groups count", () => {
  it.each(ORDINARY_REWRITES)("is taken where it is what users rewrite: %s", (pattern) => {
    expect(inQuotes(pattern)).not.toBe("");
  });

  it.each([
    ["three loops read the same bytes", "^/(.*)/(.*)/(.*)$"],
    ["another part comes behind the second of two such loops", "^/(.*)a(.*)b"],
    ["an unanchored one has two such loops", "/(.*)/x/(.*)$"],
    ["a loop of several bytes might end in the middle of itself", "^(ab?)*b(.*)$"],
    ["a last turn of a loop may read nothing", "^[ab](/[a-z]+)?(ab+c|/?)+"],
    ["a loop of several bytes might be left too late", "^(/[^/]+)*/([^/]*)\\.php$"],
    ["a loop of several bytes reads as little as it can", "^((?:ab)+?)(.*)$"],
    ["a turn of a loop reads nothing where an assertion holds", "([a-z]?$)*$"],
    ["an alternative that may fail late comes before one that always matches", "^/(.*a.*b.*c|9*)"],
    ["an alternative that may fail late comes before one that reads the rest", "^/(?:(.*a.*b.*c)d|(.*))"],
    ["what may be left out is tried first, and may fail late", "^/(.*a.*b.*c)?"],
    ["what comes behind the loop that is searched for may fail late", "/x/.*(a.*b.*c|9*)"],
  ])("is refused where %s: %s", (_, pattern) => {
    expect(() => inQuotes(pattern)).toThrow(UnsupportedError);
  });

  it("skips only what it has begun to read, also where a group holds the begin", () => {
    expect(inQuotes("(b[^/]+?$)$")).toBe("(?:(b[^/]+?\\z)\\z|b[^/](?>[^/]*)(*SKIP)(?!))");
  });

  it("gives groups what the core gives them, where loops are left for good", () => {
    const path = "/a/b/c.php";
    const text = inQuotes("^/([^/]+/)*([^/]+)\\.php$");
    expect(text).toBe("^/([^/]+/)*+([^/]+)\\.php\\z");
    expect(pcrePattern(text).exec(path)).toEqual([path, "b/", "c"]);
  });
});

describe("of random patterns", () => {
  it(`${PATTERNS} match what the core matches, and have its groups, or are refused`, () => {
    let taken = 0;
    let grouped = 0;
    let matched = 0;
    for (const highBytes of [false, true]) {
      const random = new Random(highBytes ? 11 : 7);
      const writer = new PatternWriter(random, { context: random.chance(0), highBytes });
      for (let i = 0; i < PATTERNS / 2; i++) {
        const { re2, ignoreCase, sameCaptures } = writer.write(2);
        const tree = parsePattern(re2, ignoreCase);
        const texts = unlessRefused(() => searchTexts(tree));
        const quoted = unlessRefused(() => capturingText(tree));
        const program = compiled(engine, re2, { ignoreCase });
        const matches = texts === undefined ? undefined : matcher(texts);
        const groups = quoted === undefined ? undefined : pcrePattern(quoted);
        if (matches !== undefined) taken++;
        if (groups !== undefined) grouped++;
        for (let k = 0; k < TEXTS; k++) {
          const value = writeText(random, highBytes);
          const captures = program.captures(value);
          const wanted = captures !== undefined;
          if (wanted) matched++;
          if (matches !== undefined && matches(value) !== wanted)
            expect({ re2, texts, value, matches: !wanted }).toEqual({ matches: wanted });
          if (!wanted || groups === undefined) continue;
          const found = groups.exec(value);
          const same = sameCaptures ? JSON.stringify(found?.slice(0, 10)) === JSON.stringify(captures) : found !== null;
          if (!same) expect({ re2, quoted, value, found }).toEqual({ captures });
        }
        program.release();
      }
    }
    expect(taken).toBeGreaterThan(PATTERNS * 0.8);
    expect(grouped).toBeGreaterThan(PATTERNS * 0.5);
    expect(matched).toBeGreaterThan((PATTERNS * TEXTS) / 10);
  });
});
