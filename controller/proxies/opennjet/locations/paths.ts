/** Paths of routes as conditions on `$uri`, and how the paths of two routes lie to each other. */
import type { PathRule } from "../../../../core-wasm/binding/source.js";
import { onlyByte } from "./byte-set.js";
import { ALWAYS, type Expression, equalTo, matches, matchesPattern } from "./expression.js";
import { literalPattern } from "./pattern-text.js";
import { type PatternNode, parsePattern } from "./pattern-tree.js";

const PLAIN_PATH = /^\/[A-Za-z0-9./_-]*$/;

/** A path rule, read. Texts of bytes, a character for each. */
export type ReadPath =
  | {
      kind: "exact" | "segments" | "prefix";
      /** Empty where it covers every path. */
      path: string;
      /** Of what is written: among prefixes the longest counts, and `/` is longer than segments of nothing. */
      length: number;
      text: string;
      stopsRegex: boolean;
    }
  /** `start`: what every path that it matches begins with. */
  | { kind: "regex"; matches: Expression; start: string };

/** Throws UnsupportedError for a pattern that can't be said. */
export function readPath(rule: PathRule): ReadPath {
  if (rule.kind !== "regex") {
    // A final slash of segments does not count; every path begins with one.
    const text = rule.kind === "segments" ? rule.path.replace(/\/$/, "") : rule.path;
    const path = Buffer.from(text, "utf8").toString("latin1");
    const whole = rule.kind === "prefix" && path === "/" ? "" : path;
    return {
      kind: rule.kind,
      path: whole,
      length: path.length,
      text,
      stopsRegex: rule.kind === "prefix" && rule.stopsRegex,
    };
  }
  const tree = routeTree(rule);
  const tied = { start: "", done: false };
  const begins = startOf(tree, tied);
  return { kind: "regex", matches: matchesPattern("uri", tree), start: begins ? tied.start : "" };
}

/** The pattern of a route, tied to the start of the path where the route is. */
export function routeTree({ pattern, ignoreCase, anchored }: Extract<PathRule, { kind: "regex" }>): PatternNode {
  const tree = parsePattern(pattern, ignoreCase);
  return anchored ? { kind: "sequence", items: [{ kind: "assertion", what: "begin" }, tree] } : tree;
}

/** The condition that a path is covered. */
export function pathExpression(path: ReadPath): Expression {
  if (path.kind === "regex") return path.matches;
  if (path.kind !== "exact" && path.path === "") return ALWAYS;
  if (path.kind === "exact" && PLAIN_PATH.test(path.text)) return equalTo("uri", path.text);
  return matches("uri", `^${pathPattern(path)}`);
}

/** The pattern of such paths, without the anchor at its start. */
export function pathPattern(path: Exclude<ReadPath, { kind: "regex" }>): string {
  const end = { exact: "\\z", segments: "(?:/|\\z)", prefix: "" }[path.kind];
  return `${literalPattern(path.text)}${end}`;
}

/** False only where no path is covered by both. */
export function mayOverlap(a: ReadPath, b: ReadPath): boolean {
  const x = a.kind === "regex" ? a.start : a.path;
  const y = b.kind === "regex" ? b.start : b.path;
  if (a.kind === "exact" && b.kind === "exact") return x === y;
  if (a.kind === "exact") return b.kind === "regex" ? x.startsWith(y) : covers(b, a);
  if (b.kind === "exact") return mayOverlap(b, a);
  const [short, long] = x.length <= y.length ? [a, b] : [b, a];
  const [from, to] = x.length <= y.length ? [x, y] : [y, x];
  if (!to.startsWith(from)) return false;
  return short.kind !== "segments" || long.kind === "regex" || endsSegment(from, to);
}

/** True where every path that `inner` covers is covered by `outer`. False for regexes, whatever they cover. */
export function covers(outer: ReadPath, inner: ReadPath): boolean {
  if (outer.kind === "regex") return false;
  if (outer.kind !== "exact" && outer.path === "") return true;
  const path = inner.kind === "regex" ? inner.start : inner.path;
  if (outer.kind === "exact") return inner.kind === "exact" && path === outer.path;
  if (!path.startsWith(outer.path)) return false;
  if (outer.kind === "prefix") return true;
  if (path.length === outer.path.length) return inner.kind === "exact" || inner.kind === "segments";
  return path[outer.path.length] === "/";
}

function endsSegment(short: string, long: string): boolean {
  return long.length === short.length || long[short.length] === "/";
}

/**
 * Appends the bytes that every match of the pattern begins with to `found`, until there is a choice. True where the pattern
 * is tied to the start of the text.
 */
function startOf(node: PatternNode, found: { start: string; done: boolean }): boolean {
  switch (node.kind) {
    case "bytes": {
      const byte = onlyByte(node.set);
      if (byte === undefined) found.done = true;
      else found.start += String.fromCharCode(byte);
      return false;
    }
    case "assertion":
      if (node.what === "begin" && found.start === "") return true;
      found.done = true;
      return false;
    case "group":
      return startOf(node.item, found);
    case "sequence": {
      let tied = false;
      for (const item of node.items) {
        if (found.done) break;
        if (startOf(item, found)) tied = true;
      }
      return tied;
    }
    default:
      found.done = true;
      return false;
  }
}
