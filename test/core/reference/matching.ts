/** Which rules a request falls to, read from the rules as literally as can be. Slow, and meant to be checked by eye. */
import type { HostPattern, HostRules, PathRule, Route } from "../../../core-wasm/binding/source.js";

/** Text of an object as the bytes that it is stored as, one character a byte. */
export function asBytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

function covers(pattern: HostPattern, host: string): boolean {
  if (pattern.kind === "exact") return pattern.host === host;
  if (pattern.kind === "any") return true;
  if (pattern.kind === "default" || !host.endsWith(`.${pattern.suffix}`)) return false;
  const labels = host.slice(0, host.length - pattern.suffix.length - 1).split(".");
  return !labels.includes("") && (pattern.labels === "any" || labels.length === 1);
}

/** 3 exact, 2 wildcard, 1 no host. */
function rank(pattern: HostPattern): number {
  return pattern.kind === "exact" ? 3 : pattern.kind === "wildcard" ? 2 : 1;
}

function suffixLength(pattern: HostPattern): number {
  return pattern.kind === "wildcard" ? pattern.suffix.length : 0;
}

/** The rules of the most specific pattern that covers the host: exact, then the longest wildcard, then no host. */
export function rulesFor(host: string, all: readonly HostRules[]): HostRules | undefined {
  return all
    .filter(({ pattern }) => covers(pattern, host))
    .sort((a, b) => rank(b.pattern) - rank(a.pattern) || suffixLength(b.pattern) - suffixLength(a.pattern))[0];
}

/** A segments rule by the elements of its path: all of them begin the path of the request. */
function coversSegments(rule: string, path: string): boolean {
  const wanted = rule.replace(/\/$/, "").split("/");
  const elements = path.split("/");
  return wanted.every((element, index) => elements[index] === element);
}

function coversPath(rule: PathRule, path: string): boolean {
  switch (rule.kind) {
    case "exact":
      return asBytes(rule.path) === path;
    case "segments":
      return coversSegments(asBytes(rule.path), path);
    case "prefix":
      return path.startsWith(asBytes(rule.path));
    case "regex": {
      const pattern = asBytes(rule.pattern);
      return new RegExp(rule.anchored ? `^(?:${pattern})` : pattern, rule.ignoreCase ? "i" : "").test(path);
    }
  }
}

/** How much of a path a prefix rule fixes; a final slash of a segments rule does not count. */
function prefixLength(rule: PathRule): number {
  if (rule.kind === "segments") return asBytes(rule.path).replace(/\/$/, "").length;
  return rule.kind === "prefix" ? asBytes(rule.path).length : 0;
}

const isPrefix = ({ kind }: PathRule) => kind === "segments" || kind === "prefix";

/** Of prefix rules of one length: whole segments, then `^~`, then plain text; else the one that is written first. */
function prefixKind(rule: PathRule): number {
  return rule.kind === "segments" ? 0 : rule.kind === "prefix" && rule.stopsRegex ? 1 : 2;
}

/**
 * The routes that cover a path, in the order in which they are tried. NGINX: exact; the longest prefix is remembered and
 * ends the search if it says so; regexes as written; the remembered prefix, after it those around it.
 */
export function candidates(routes: readonly Route[], path: string): Route[] {
  const covering = routes.filter((route) => coversPath(route.path, path));
  const prefixes = covering
    .filter((route) => isPrefix(route.path))
    .sort((a, b) => prefixLength(b.path) - prefixLength(a.path) || prefixKind(a.path) - prefixKind(b.path));
  const longest = prefixes[0]?.path;
  const searches = !(longest?.kind === "prefix" && longest.stopsRegex);
  return [
    ...covering.filter((route) => route.path.kind === "exact"),
    ...(searches ? covering.filter((route) => route.path.kind === "regex") : []),
    ...prefixes,
  ];
}

/** `$arg_name`: the first argument of that name, letter case aside, as it stands in the query. */
export function argumentOf(query: string, name: string): string {
  const wanted = `${name.toLowerCase()}=`;
  const found = query.split("&").find((part) => part.toLowerCase().startsWith(wanted));
  return found?.slice(wanted.length) ?? "";
}
