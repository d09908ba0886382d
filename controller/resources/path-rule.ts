import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { PathRule } from "../../core-wasm/binding/source.js";
import type { Field } from "./field.js";
import { plain, quote } from "./problem.js";
import type { Shape } from "./shape.js";

/** A path that was read: how it is compared, how its object spells it, and the groups of its pattern. */
export interface ParsedPath {
  rule: PathRule;
  label: string;
  /** Capturing groups of a regex; 0 otherwise. */
  groups: number;
}

const LOCATION: Shape = {
  patterns: [/^ *(?:(?:=|\^~)? *\/[^\x00-\x1f\x7f]*|~\*? *[^\x00-\x20\x7f][^\x00-\x1f\x7f]*)$/],
};

/**
 * A path of a VirtualServer: `/x`, `=/x`, `^~ /x`, `~ re`, `~* re`. Spaces around it and after the modifier do not count.
 * Reports PATH_INVALID, REGEX_INVALID, and warns of paths that no request can have.
 */
export function readLocation(field: Field, checker: PatternChecker): ParsedPath | undefined {
  const text = field.shaped(LOCATION).requiredLine();
  if (text === undefined) return undefined;
  const [, modifier, rest] = /^ *(=|\^~|~\*|~|) *(.*)$/s.exec(text)!;
  const path = withoutFinalSpaces(rest);
  const label = modifier === "" ? path : modifier === "=" ? `=${path}` : `${modifier} ${path}`;
  if (modifier === "~" || modifier === "~*") {
    const ignoreCase = modifier === "~*";
    const groups = readRegex(path, ignoreCase, field, checker);
    if (groups === undefined) return undefined;
    return { rule: { kind: "regex", pattern: path, ignoreCase, anchored: false }, label, groups };
  }
  if (!startsWithSlash(path, field)) return undefined;
  if (modifier === "=") {
    warnUnreachable(path, true, field);
    return { rule: { kind: "exact", path }, label, groups: 0 };
  }
  warnUnreachable(path, false, field);
  return { rule: { kind: "prefix", path, stopsRegex: modifier === "^~" }, label, groups: 0 };
}

/**
 * A path of an Ingress with its pathType (Kubernetes API, HTTPIngressPath). With `useRegex`, paths of type
 * ImplementationSpecific are case-sensitive patterns that match from the start; Exact and Prefix keep the meaning that
 * the API gives them. Without it, ImplementationSpecific is Prefix.
 */
export function readIngressPath(entry: Field, useRegex: boolean, checker: PatternChecker): ParsedPath | undefined {
  const field = entry.get("path");
  const typeField = entry.get("pathType");
  const type = typeField.required() ? typeField.choice(["Exact", "Prefix", "ImplementationSpecific"]) : undefined;
  if (type === undefined) return undefined;
  if (type === "ImplementationSpecific" && (!field.present || field.value === "")) {
    return { rule: { kind: "segments", path: "/" }, label: "/", groups: 0 };
  }
  const path = field.requiredLine();
  if (path === undefined || !startsWithSlash(path, field)) return undefined;
  if (type === "ImplementationSpecific" && useRegex) {
    const groups = readRegex(path, false, field, checker);
    if (groups === undefined) return undefined;
    return { rule: { kind: "regex", pattern: path, ignoreCase: false, anchored: true }, label: path, groups };
  }
  if (useRegex && /[\\()[\]^$*|]/.test(path)) {
    const message = `${quote(path)} is plain text, because its pathType is ${type}`;
    field.warning("PATH_NOT_A_PATTERN", `${message}; a pattern needs ImplementationSpecific`);
  }
  if (type !== "ImplementationSpecific" && !followsApiRules(path, field)) return undefined;
  warnUnreachable(path, true, field);
  if (type === "Exact") return { rule: { kind: "exact", path }, label: path, groups: 0 };
  return { rule: { kind: "segments", path: withoutFinalSlash(path) }, label: path, groups: 0 };
}

/** Two rules with the same key match the same paths in the same rank. */
export function pathKey(rule: PathRule): string {
  if (rule.kind !== "regex") return `${rule.kind} ${rule.path}`;
  return `${rule.ignoreCase ? "~*" : "~"}${rule.anchored ? "^" : ""} ${rule.pattern}`;
}

/** Compiles a pattern on trial. Returns its number of groups, or reports REGEX_INVALID with the position. */
export function readRegex(
  pattern: string,
  ignoreCase: boolean,
  field: Field,
  checker: PatternChecker,
): number | undefined {
  if (pattern === "") {
    field.error("REGEX_INVALID", "the pattern is empty");
    return undefined;
  }
  const result = checker.checkRegex(pattern, ignoreCase);
  if ("groups" in result) return result.groups;
  const { position, message } = result.problem;
  field.error("REGEX_INVALID", `${quote(pattern)} does not compile, at byte ${position}: ${plain(message)}`);
  return undefined;
}

function startsWithSlash(path: string, field: Field): boolean {
  if (path.startsWith("/")) return true;
  field.error("PATH_INVALID", `${quote(path)} must start with /`);
  return false;
}

/** What the API server refuses in Exact and Prefix paths, refused in files too. */
function followsApiRules(path: string, field: Field): boolean {
  const bad = /\/\/|\/\.\.?(\/|$)|%2f/i.exec(path);
  if (bad === null) return true;
  field.error("PATH_INVALID", `${quote(path)} must not hold ${quote(bad[0])}`);
  return false;
}

/** `whole`: the path ends where a segment ends; a raw prefix may go on, as `/.` does in `/.well-known`. */
function warnUnreachable(path: string, whole: boolean, field: Field): void {
  const unreachable = whole ? /\/\/|\/\.\.?(\/|$)/.test(path) : /\/\/|\/\.\.?\//.test(path);
  if (unreachable) {
    field.warning("PATH_UNREACHABLE", `no request has the path ${quote(path)} once // and dot segments are resolved`);
  } else if (/%[0-9a-f]{2}/i.test(path)) {
    const message = `${quote(path)} is compared with the decoded path of a request`;
    field.warning("PATH_UNREACHABLE", `${message}; write the character itself instead of its escape`);
  }
}

function withoutFinalSpaces(text: string): string {
  let end = text.length;
  while (text[end - 1] === " ") end -= 1;
  return text.slice(0, end);
}

function withoutFinalSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}
