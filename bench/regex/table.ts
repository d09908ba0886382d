/** Table `regex`: the core's engine against JavaScript's RegExp, on plain patterns and on hostile input. */
import { FreshStrings } from "../fresh-strings.js";
import { type Measured, measure, measureOnce } from "../measure.js";
import type { Row } from "../report.js";
import { CoreRegex, type Tester } from "./core-adapter.js";

const TABLE = "regex";
const SUBJECTS = 2000;
const HOSTILE = 65_536;

/** Patterns as they stand in routes, and texts of which about every second one matches. */
const PLAIN: { pattern: string; ignoreCase?: boolean; texts: string[] }[] = [
  {
    pattern: "^/api/v[0-9]+/users/[0-9]+$",
    texts: ["/api/v2/users/12345", "/api/v2/users/me", "/api/v12/users/9", "/static/app.js"],
  },
  {
    pattern: "\\.(png|jpe?g|gif|svg|webp)$",
    texts: ["/img/2024/logo.png", "/img/2024/photo.jpeg", "/img/index.html", "/a.svg.txt"],
  },
  { pattern: "^/(orders|users|carts)/[a-z0-9-]+/?$", texts: ["/orders/a-12", "/users/anna/", "/carts/", "/prices/12"] },
  { pattern: "^/old/(.*)/edit$", texts: ["/old/a/b/c/edit", "/old/document/view", "/old/x/edit", "/new/x/edit"] },
  {
    pattern: "mobile|android|iphone",
    ignoreCase: true,
    texts: [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0)",
      "Mozilla/5.0 (X11; Linux x86_64)",
      "okhttp/4.9 Android",
      "curl/8.5.0",
    ],
  },
  {
    pattern: "^[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}$",
    texts: [
      "0a1b2c3d-1234-abcd-0123456789ab",
      "0a1b2c3d-1234-abcd-0123456789ag",
      "ffffffff-ffff-ffff-ffffffffffff",
      "not-a-uuid",
    ],
  },
];

/**
 * Patterns for which a backtracking engine tries very many ways to fail, the byte of which the text is made, and the
 * lengths that RegExp gets: 64 KiB only where it comes back at all, else lengths that show how the time grows.
 */
const HOSTILE_PATTERNS = [
  { pattern: "^a*a*b", byte: "a", backtracking: "quadratic", lengths: [HOSTILE / 2, HOSTILE] },
  { pattern: "^(a+)+b", byte: "a", backtracking: "exponential", lengths: [22, 26] },
  { pattern: "^(a|aa)*b", byte: "a", backtracking: "exponential", lengths: [32, 36] },
  { pattern: "(x+x+)+y", byte: "x", backtracking: "exponential", lengths: [22, 26] },
];

function testerCase(name: string, tester: Tester, texts: FreshStrings): Measured {
  return {
    name,
    operations: texts.strings.length,
    prepare: () => texts.renew(),
    pass: () => {
      let found = 0;
      for (const text of texts.strings) if (tester.test(text)) found++;
      return found;
    },
  };
}

function plainRows(): Row[] {
  const core = new CoreRegex();
  const rows: Row[] = [];
  for (const { pattern, ignoreCase = false, texts } of PLAIN) {
    const regexp = new RegExp(pattern, ignoreCase ? "i" : "");
    const compiled = core.compile(pattern, ignoreCase);
    for (const text of texts) {
      if (compiled.test(text) !== regexp.test(text)) throw new Error(`${pattern} on ${text}: two answers`);
    }
    const fresh = new FreshStrings(Array.from({ length: SUBJECTS }, (_, i) => texts[i % texts.length]));
    const cases = [testerCase("RegExp", regexp, fresh), testerCase("core", compiled, fresh)];
    const times = measure(cases, { time: 80 });
    const reference = times.get("RegExp") ?? Number.NaN;
    for (const [name, ns] of times) {
      const goal = name === "core" ? ({ of: "ratio", atMost: 2.5 } as const) : undefined;
      rows.push({ table: TABLE, name: `${pattern}: ${name}`, ns, ratio: ns / reference, goal });
    }
  }
  return rows;
}

/** The core gets 64 KiB of each, and half as much, to show that its time grows with the length. */
function hostileRows(): Row[] {
  const core = new CoreRegex();
  const rows: Row[] = [];
  for (const { pattern, byte, backtracking, lengths } of HOSTILE_PATTERNS) {
    const regexp = new RegExp(pattern);
    for (const length of lengths) {
      const text = new FreshStrings([byte.repeat(length)]);
      text.renew();
      const ns = measureOnce(1, () => void regexp.test(text.strings[0])) * 1e6;
      rows.push({ table: TABLE, name: `${pattern} on ${length} bytes: RegExp (${backtracking})`, ns });
    }
    const compiled = core.compile(pattern, false);
    const [half, whole] = [HOSTILE / 2, HOSTILE].map((length) => {
      const text = new FreshStrings([byte.repeat(length)]);
      if (compiled.test(byte.repeat(length))) throw new Error(`${pattern} was found where it is not`);
      const times = measure([testerCase("core", compiled, text)], { rounds: 3, time: 60 });
      return times.get("core") ?? Number.NaN;
    });
    rows.push({ table: TABLE, name: `${pattern} on ${HOSTILE / 2} bytes: core`, ns: half });
    // Twice the text may take twice the time, and a little more for what leaves the caches.
    const goal = { of: "ratio", atMost: 2.6 } as const;
    rows.push({
      table: TABLE,
      name: `${pattern} on ${HOSTILE} bytes: core, against half of it`,
      ns: whole,
      ratio: whole / half,
      goal,
    });
  }
  return rows;
}

/** Measures the table. Throws if the two engines disagree. */
export function regexTable(): Row[] {
  return [...plainRows(), ...hostileRows()];
}
