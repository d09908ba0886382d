/** Random tables of rules, and requests that come near them. */
import type { HostPattern, HostRules, PathRule, Route, Template } from "../../core-wasm/binding/source.js";
import type { Random } from "../support/random.js";
import { answer, equals, exact, prefix, regex, segments } from "../support/rules.js";
import { asBytes } from "./reference/matching.js";

const LABELS = ["a", "b", "aa", "shop", "xn--bcher-kva", "a-b", "1"];
const SEGMENTS = [
  "a",
  "b",
  "aa",
  "ab",
  "api",
  "api-v2",
  "é",
  "ü-long-name-of-a-folder",
  "a b",
  "100%",
  "A",
  "x?y",
  ".",
];
const REGEXES = ["[0-9]+$", "/a+(/|$)", "^/api", "b", "\\.php$", "é", "^/(a|b)/[^/]*$", "%", "^/$", "/aa?b"];
const COMMON = `/a/${"common-prefix/".repeat(6)}`;

const PATTERNS: HostPattern[] = [
  { kind: "exact", host: "shop.a.b" },
  { kind: "exact", host: "a.b" },
  { kind: "exact", host: "a.shop.a.b" },
  { kind: "exact", host: "[2001:db8::1]" },
  { kind: "exact", host: "xn--bcher-kva.b" },
  { kind: "wildcard", suffix: "a.b", labels: "one" },
  { kind: "wildcard", suffix: "shop.a.b", labels: "any" },
  { kind: "wildcard", suffix: "b", labels: "any" },
  { kind: "wildcard", suffix: "aa.b", labels: "one" },
  { kind: "wildcard", suffix: "1", labels: "one" },
  { kind: "any" },
  { kind: "default" },
];

/** What every rule of a table answers with: its id, and how the core reads the request. */
function body(id: string): Template {
  const read = (["host", "uri", "args", "request_uri"] as const).flatMap((name): Template => {
    return ["\n", { kind: "variable", name }];
  });
  return [id, ...read];
}

function rulePath(random: Random): string {
  const depth = random.below(5);
  const path = `/${random.picks(SEGMENTS.slice(0, -1), depth).join("/")}`;
  if (random.onceIn(6)) return `${COMMON}${path.slice(1)}`;
  return depth > 0 && random.onceIn(4) ? `${path}/` : path;
}

function pathRule(random: Random): PathRule {
  switch (random.below(8)) {
    case 0:
    case 1:
      return exact(rulePath(random));
    case 2:
    case 3:
      return segments(rulePath(random));
    case 4:
      return prefix(rulePath(random), true);
    case 5:
      return regex(random.pick(REGEXES), { ignoreCase: random.onceIn(3), anchored: random.onceIn(3) });
    default:
      // A raw prefix may end anywhere, also within a character.
      return prefix(rulePath(random).slice(0, 1 + random.below(40)));
  }
}

function routesOf(random: Random, table: string): Route[] {
  const paths = Array.from({ length: 1 + random.below(12) }, () => pathRule(random));
  // A node with more than eight children is laid out otherwise.
  if (random.onceIn(4)) {
    const parent = rulePath(random).replace(/\/?$/, "/");
    const children = "0123456789abcdefXYZ_~é".slice(0, 7 + random.below(16));
    for (const child of children) paths.push(random.onceIn(2) ? exact(parent + child) : prefix(parent + child));
  }
  return paths.map((path, index) => {
    const id = `${table}/${index}`;
    const rest = { path, label: id, resource: id };
    // Routes that leave the request to the next candidate: always, or unless an argument says otherwise.
    if (random.onceIn(6)) return { ...rest, matches: [] };
    const match = { conditions: [equals({ kind: "argument", name: "go" }, "yes")], outcome: answer(...body(`${id}!`)) };
    if (random.onceIn(5)) return { ...rest, matches: [match] };
    return { ...rest, matches: [], outcome: answer(...body(id)) };
  });
}

/** Rules of two to eight patterns. */
export function randomTable(random: Random): HostRules[] {
  const patterns = random.shuffled(PATTERNS).slice(0, 2 + random.below(7));
  return patterns.map((pattern, index) => ({
    pattern,
    guards: [],
    routes: pattern.kind === "default" ? [] : routesOf(random, `${index}`),
    unmatched:
      pattern.kind === "default" || random.onceIn(3)
        ? { resource: `u${index}`, outcome: answer(...body(`u${index}`)) }
        : undefined,
  }));
}

function randomCase(random: Random, text: string): string {
  return [...text].map((c) => (random.onceIn(2) ? c.toUpperCase() : c)).join("");
}

/** A host near the patterns of a table, often not quite one of them. */
export function randomHost(random: Random, rules: readonly HostRules[]): string {
  const { pattern } = random.pick(rules);
  let host = random.picks(LABELS, 1 + random.below(3)).join(".");
  if (pattern.kind === "exact") host = pattern.host;
  if (pattern.kind === "wildcard") host = `${random.picks(LABELS, 1 + random.below(3)).join(".")}.${pattern.suffix}`;
  if (random.onceIn(5)) host = `${random.pick(LABELS)}.${host}`;
  if (random.onceIn(4)) host = randomCase(random, host);
  if (random.onceIn(6)) host += ".";
  if (random.onceIn(4)) host += random.pick([":80", ":", ":65535", ":8080", ":123456", ":8a", ":80:80"]);
  if (random.onceIn(12))
    host = random.pick(["", ".", "..", "a..b", "[::1", "[]", "[::g]", "[2001:DB8::1]:443", ".a.b"]);
  if (random.onceIn(20)) {
    const at = random.below(host.length + 1);
    host = host.slice(0, at) + random.pick([" ", "\0", "/", "\\", "@", "é", "\x7f", "%", "_", "*"]) + host.slice(at);
  }
  if (random.onceIn(200)) host = `${"a".repeat(random.pick([250, 251, 252, 253, 254, 255]))}.b`;
  return host;
}

function escaped(byte: string): string {
  const hex = byte.charCodeAt(0).toString(16).padStart(2, "0");
  return `%${byte.charCodeAt(0) % 2 ? hex : hex.toUpperCase()}`;
}

/** A target that should be read as a path near one of the rules, or as none. */
export function randomTarget(random: Random, rules: readonly HostRules[]): string {
  const { routes } = random.pick(rules);
  const rule = routes.length > 0 ? random.pick(routes).path : undefined;
  let path =
    rule && rule.kind !== "regex"
      ? asBytes(rule.path)
      : `/${asBytes(random.picks(SEGMENTS, random.below(4)).join("/"))}`;
  if (random.onceIn(3)) path += random.pick(["/", "x", "/x", "/a", "12", ".php", "/1/2/"]);
  if (random.onceIn(8)) path = path.slice(0, -1);
  if (random.onceIn(12)) path = randomCase(random, path);
  const often = random.onceIn(6) ? 3 : 40;
  let target = [...path]
    .map((byte, index) => {
      const mustHide = /[\0-\x20%?#\x7f]/.test(byte);
      return (mustHide && !random.onceIn(30)) || (index > 0 && random.onceIn(often)) ? escaped(byte) : byte;
    })
    .join("");
  for (let changes = random.onceIn(3) ? 1 + random.below(3) : 0; changes > 0; changes--) {
    const at = random.onceIn(2) ? target.lastIndexOf("/") : random.below(target.length + 1);
    const piece = random.pick([
      "/",
      "//",
      "/.",
      "/./",
      "/../",
      "/x/..",
      "/%2e%2E",
      "%2F",
      "/.a",
      "/..a",
      "%2e",
      "/...",
      ".",
    ]);
    target = target.slice(0, at) + piece + target.slice(at);
  }
  if (random.onceIn(60)) {
    const at = random.below(target.length + 1);
    target =
      target.slice(0, at) +
      random.pick(["%", "%0", "%zz", "%00", "\0", " ", "\r\n", "\x7f", "%g0", "%0g"]) +
      target.slice(at);
  }
  if (random.onceIn(3))
    target += random.pick(["?", "?go=yes", "?GO=YES&go=no", "?a=b&go=yes#x", "?go=%79es", "?x#go=yes", "?go", "?a?b"]);
  if (random.onceIn(20)) target += random.pick(["#", "#a?go=yes", "#/../.."]);
  return target;
}

/** The same target in absolute form, mostly for the host of the request. */
export function absoluteForm(random: Random, host: string, target: string): string {
  const authority = random.onceIn(6)
    ? random.pick(["other.b", "", "user@a.b", "a.b:99", "shop.a.b"])
    : randomCase(random, host);
  return `${random.pick(["http", "https", "HTTP", "hTTps", "ftp", "http"])}://${authority}${random.onceIn(6) ? "" : target}`;
}
