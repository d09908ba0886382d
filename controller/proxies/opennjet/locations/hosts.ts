/** Which hosts a pattern answers for, as conditions on `$host`: what better patterns take is left out. */
import type { HostPattern } from "../../../../core-wasm/binding/source.js";
import { all, type Expression, equalTo, matches, not } from "./expression.js";
import { literalPattern, MOST_PATTERN_BYTES } from "./pattern-text.js";

/** A host that stands for itself in a condition. */
const PLAIN_HOST = /^[a-z0-9.-]+$/;

/** The place of a pattern in the table of hosts: both kinds of a wildcard are one. */
export function hostPlace(pattern: HostPattern): string {
  switch (pattern.kind) {
    case "exact":
      return pattern.host;
    case "wildcard":
      return `*.${pattern.suffix}`;
    case "any":
      return "";
    case "default":
      return "(default)";
  }
}

/**
 * The condition for the hosts that `pattern` answers for where there are these patterns (itself among them, or not). NGINX
 * has normalised `$host` as the core does.
 */
export function hostExpression(pattern: HostPattern, patterns: Iterable<HostPattern>): Expression {
  const better: string[] = [];
  for (const other of patterns) if (isBetter(other, pattern)) better.push(hostPattern(other));
  return all(...covers(pattern), ...noneOf("host", better.sort()));
}

/** The comparisons that say that a variable begins with none of these patterns, in as few as have room for them. */
export function noneOf(variable: string, patterns: readonly string[]): Expression[] {
  const comparisons: Expression[] = [];
  let group: string[] = [];
  let size = 0;
  const close = () => {
    if (group.length > 0) comparisons.push(not(matches(variable, oneOf(group))));
    group = [];
    size = 0;
  };
  for (const pattern of patterns) {
    if (size + pattern.length + 1 > MOST_PATTERN_BYTES) close();
    group.push(pattern);
    size += pattern.length + 1;
  }
  close();
  return comparisons;
}

/** A pattern that begins with one of these. */
export function oneOf(patterns: readonly string[]): string {
  return patterns.length === 1 ? `^${patterns[0]}` : `^(?:${patterns.join("|")})`;
}

function covers(pattern: HostPattern): Expression[] {
  if (pattern.kind === "exact" && PLAIN_HOST.test(pattern.host)) return [equalTo("host", pattern.host)];
  if (pattern.kind === "any" || pattern.kind === "default") return [];
  return [matches("host", `^${hostPattern(pattern)}`)];
}

/** What all of a host that the pattern covers is, without the anchor at its start. */
function hostPattern(pattern: HostPattern): string {
  if (pattern.kind === "exact") return `${literalPattern(pattern.host)}\\z`;
  if (pattern.kind !== "wildcard") return "";
  const labels = pattern.labels === "one" ? "[^\\.]+" : "[^\\.][\\x00-\\xFF]*";
  return `${labels}\\.${literalPattern(pattern.suffix)}\\z`;
}

/** True where a host may be covered by both and `other` answers for it. */
function isBetter(other: HostPattern, than: HostPattern): boolean {
  if (than.kind === "default" || other.kind === "any" || other.kind === "default" || than.kind === "exact")
    return false;
  if (than.kind === "any") return true;
  if (other.kind === "wildcard") {
    // One label covers no host that a longer suffix covers too.
    return than.labels === "any" && other.suffix.endsWith(`.${than.suffix}`);
  }
  if (!other.host.endsWith(`.${than.suffix}`)) return false;
  const labels = other.host.slice(0, -than.suffix.length - 1);
  return labels !== "" && !labels.startsWith(".") && (than.labels === "any" || !labels.includes("."));
}
