import { beforeAll, describe, expect, it } from "vitest";
import { literalPattern, patternText } from "../../controller/proxies/opennjet/locations/pattern-text.js";
import { parsePattern } from "../../controller/proxies/opennjet/locations/pattern-tree.js";
import { UnsupportedError } from "../../controller/proxies/plan-step.js";
import type { RegexEngine } from "../../core-wasm/binding/regex.js";
import { conditionHolds, parseCondition } from "../real/opennjet-double/conditions.js";
import { compiled, createEngine } from "../regex/core.js";
import { PatternWriter, writeText } from "../regex/patterns.js";
import { Random } from "../regex/random.js";

const PATTERNS = 3000;
const TEXTS = 20;

let engine: RegexEngine;
beforeAll(async () => {
  engine = await createEngine();
});

function word(pattern: string, ignoreCase = false): string {
  return patternText(parsePattern(pattern, ignoreCase), { quoted: false });
}

/** Whether a pattern matches, as a comparison of a conditional location reads it. */
function matcher(text: string): (value: string) => boolean {
  const tree = parseCondition(`($uri ~ ${text})`);
  return (value) => conditionHolds(tree, () => value);
}

/** A pattern in quotes, as JavaScript has it. */
function fromQuotes(text: string): RegExp {
  return new RegExp(text.replaceAll("\\z", "(?![\\s\\S])"));
}

describe("a pattern of the core, as one of PCRE", () => {
  it.each([
    ["^/api/v[0-9]+$", "^/api/v[0-9]+\\z"],
    ["a.b", "a[^\\x0A]b"],
    ["(?i)ab", "[Aa][Bb]"],
    ["a{2,3}b", "aa(?:a)?b"],
    ["(a|b)+", "(?:a|b)+"],
    ["a||b", "a|(?:)|b"],
    ["é", "\\xC3\\xA9"],
    ["(?m)^a$", "(?:^|(?<=\\x0A))a(?:\\z|(?=\\x0A))"],
    ["\\Qa.b{}\\E+", "a\\.b\\x7B\\x7D+"],
    ["[^a]", "[^a]"],
    ["\\d\\s", "[0-9][\\x09\\x0A\\x0C\\x0D\\x20]"],
    ["&&|\\|\\|", "\\x26\\x26|\\x7C\\x7C"],
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

  it.each(["(a+)+", "(a|a)*", "(a|ab)*", "(a*)*", "(a?a)*", "(.*/)+", "(xa*a*)*"])(
    "is refused where PCRE might try for ever: %s",
    (pattern) => {
      expect(() => word(`${pattern}$`)).toThrow(UnsupportedError);
    },
  );

  it.each(["(/[^/]+)*", "([a-z]+-)*[0-9]", "(a|b|cd)+", "(?:[a-z0-9]+/)+"])(
    "is taken where each text can be read in one way: %s",
    (pattern) => {
      expect(word(pattern)).not.toBe("");
    },
  );

  it("is refused where it would not fit into the buffer of OpenNJet", () => {
    expect(() => word("[a-z0-9]{900}")).toThrow(UnsupportedError);
  });

  it(`matches what the core matches, in ${PATTERNS} random patterns, as a word and in quotes`, () => {
    let compared = 0;
    let matched = 0;
    for (const highBytes of [false, true]) {
      const random = new Random(highBytes ? 11 : 7);
      const writer = new PatternWriter(random, { context: random.chance(0), highBytes });
      for (let i = 0; i < PATTERNS / 2; i++) {
        const { re2, ignoreCase, sameCaptures } = writer.write(2);
        let tree: ReturnType<typeof parsePattern>;
        let text: string;
        try {
          tree = parsePattern(re2, ignoreCase);
          text = patternText(tree, { quoted: false });
        } catch (error) {
          expect(error, re2).toBeInstanceOf(UnsupportedError);
          expect((error as Error).message, re2).not.toContain("can't be said");
          continue;
        }
        const program = compiled(engine, re2, { ignoreCase });
        const matches = matcher(text);
        const quoted = fromQuotes(patternText(tree, { quoted: true }));
        for (let k = 0; k < TEXTS; k++) {
          const value = writeText(random, highBytes);
          const captures = program.captures(value);
          const wanted = captures !== undefined;
          if (matches(value) !== wanted) expect({ re2, text, value, matches: !wanted }).toEqual({ matches: wanted });
          const found = quoted.exec(value);
          const same = sameCaptures
            ? JSON.stringify(found && [...found].slice(0, 10)) === JSON.stringify(captures ?? null)
            : (found !== null) === wanted;
          if (!same) expect({ re2, quoted: quoted.source, value, found }).toEqual({ captures });
          compared++;
          if (wanted) matched++;
        }
        program.release();
      }
    }
    expect(compared).toBeGreaterThan(PATTERNS * TEXTS * 0.8);
    expect(matched).toBeGreaterThan(compared / 10);
  });
});
