/** Writes shard sources and hash keys in the form that the core compiles. The format is in ABI.md, "Shard source". */
import type { ByteWriter } from "./byte-writer.js";
import type {
  Action,
  Condition,
  HeaderChange,
  HostPattern,
  HostRules,
  Match,
  Outcome,
  Route,
  Template,
  TemplatePart,
  ValueSource,
  VariableName,
} from "./source.js";

const SOURCE_MAGIC = 0x53534a4e;
const SOURCE_VERSION = 1;

/** Variables by number, as in core-wasm/assembly/image/layout.ts. */
export const VARIABLE_NAMES: readonly VariableName[] = [
  "args",
  "host",
  "http2",
  "https",
  "query_string",
  "remote_addr",
  "remote_port",
  "request",
  "request_method",
  "request_uri",
  "scheme",
  "server_protocol",
  "uri",
];
const VARIABLES = new Map(VARIABLE_NAMES.map((name, index) => [name, index]));

const ROUTE_KIND = { exact: 0, segments: 1, prefix: 2, regex: 3 } as const;
const STOPS_REGEX = 1;
const IGNORE_CASE = 2;
const ANCHORED = 4;

const SOURCE_KIND = { header: 1, cookie: 2, argument: 3, variable: 4 } as const;
const TEST_KIND = { equals: 1, regex: 2, empty: 3 } as const;
const ACTION_KIND = { proxy: 1, redirect: 2, return: 3 } as const;
const REWRITE_KIND = { prefix: 1, path: 2 } as const;
const PART_TEXT = 0;
const PART_GROUP = 5;
/** Longest text of one template part, in characters: at most four bytes each, of which a part holds 65,535. */
const PART_LIMIT = 16_000;

/** Tags of header changes; the names stand at their tag. */
export const HEADER_CHANGES = [
  "",
  "set-request",
  "drop-request",
  "add-response",
  "hide-response",
  "pass-response",
  "ignore-response",
] as const satisfies readonly (HeaderChange["op"] | "")[];
export const ALWAYS = 1;

/** Pattern kind and host text as the core has them. */
export function patternParts(pattern: HostPattern): { kind: number; host: string } {
  switch (pattern.kind) {
    case "exact":
      return { kind: 0, host: pattern.host };
    case "wildcard":
      return { kind: pattern.labels === "one" ? 1 : 2, host: pattern.suffix };
    case "any":
      return { kind: 3, host: "" };
    case "default":
      return { kind: 4, host: "" };
  }
}

function variableNumber(name: VariableName): number {
  return VARIABLES.get(name) ?? 255;
}

function writeSource(out: ByteWriter, source: ValueSource): void {
  out.u32(SOURCE_KIND[source.kind]);
  out.u32(source.kind === "variable" ? variableNumber(source.name) : 0);
  out.text(source.kind === "variable" ? "" : source.kind === "header" ? source.name.toLowerCase() : source.name);
}

function writePart(out: ByteWriter, part: TemplatePart): void {
  if (typeof part === "string") {
    out.u32(PART_TEXT);
    out.u32(0);
    out.text(part);
  } else if (part.kind === "group") {
    out.u32(PART_GROUP);
    out.u32(part.index);
    out.text("");
  } else {
    writeSource(out, part);
  }
}

/** A literal longer than a part may be is written as several. */
function partsOf(template: Template): Template {
  if (!template.some((part) => typeof part === "string" && part.length > PART_LIMIT)) return template;
  return template.flatMap((part): Template => {
    if (typeof part !== "string") return [part];
    const pieces: string[] = [];
    for (let rest = [...part]; rest.length > 0; ) pieces.push(rest.splice(0, PART_LIMIT).join(""));
    return pieces;
  });
}

export function writeTemplate(out: ByteWriter, template: Template): void {
  const parts = partsOf(template);
  out.u32(parts.length);
  for (const part of parts) writePart(out, part);
}

function writeHeaderChange(out: ByteWriter, change: HeaderChange): void {
  out.u32(HEADER_CHANGES.indexOf(change.op));
  out.u32("always" in change && change.always ? ALWAYS : 0);
  out.text("name" in change ? change.name : "");
  writeTemplate(out, "value" in change ? change.value : []);
}

function writeAction(out: ByteWriter, action: Action): void {
  out.u32(ACTION_KIND[action.kind]);
  out.u32(action.kind === "proxy" ? 0 : action.status);
  out.text(action.kind === "proxy" ? action.upstream : action.kind === "return" ? action.contentType : "");
  const rewrite = action.kind === "proxy" ? action.rewrite : undefined;
  out.u32(rewrite ? REWRITE_KIND[rewrite.kind] : 0);
  if (action.kind === "redirect") writeTemplate(out, action.location);
  else if (action.kind === "return") writeTemplate(out, action.body);
  else writeTemplate(out, rewrite ? (rewrite.kind === "prefix" ? [rewrite.text] : rewrite.template) : []);
  out.u32(action.headers?.length ?? 0);
  for (const change of action.headers ?? []) writeHeaderChange(out, change);
}

function writeOutcome(out: ByteWriter, outcome: Outcome): void {
  if (outcome.kind !== "split") {
    out.u32(0);
    writeAction(out, outcome);
    return;
  }
  out.u32(outcome.entries.length);
  for (const entry of outcome.entries) {
    out.u32(entry.weight);
    writeAction(out, entry.action);
  }
}

function writeCondition(out: ByteWriter, condition: Condition): void {
  const { test } = condition;
  writeSource(out, condition.source);
  out.u32(TEST_KIND[test.kind]);
  out.u32(condition.negated ? 1 : 0);
  out.u32(test.kind === "regex" && test.ignoreCase ? 1 : 0);
  out.text(test.kind === "equals" ? test.value : test.kind === "regex" ? test.pattern : "");
}

function writeMatch(out: ByteWriter, match: Match): void {
  out.u32(match.conditions.length);
  for (const condition of match.conditions) writeCondition(out, condition);
  writeOutcome(out, match.outcome);
}

function writeRoute(out: ByteWriter, route: Route): void {
  const { path } = route;
  out.u32(ROUTE_KIND[path.kind]);
  let flags = 0;
  if (path.kind === "prefix" && path.stopsRegex) flags = STOPS_REGEX;
  if (path.kind === "regex") flags = (path.ignoreCase ? IGNORE_CASE : 0) | (path.anchored ? ANCHORED : 0);
  out.u32(flags);
  out.text(path.kind === "regex" ? path.pattern : path.path);
  out.text(route.label);
  out.text(route.resource);
  out.u32(route.matches.length);
  for (const match of route.matches) writeMatch(out, match);
  out.u32(route.outcome ? 1 : 0);
  if (route.outcome) writeOutcome(out, route.outcome);
}

/** Writes the whole source of a shard. */
export function writeShardSource(out: ByteWriter, rules: HostRules): void {
  const { kind, host } = patternParts(rules.pattern);
  out.u32(SOURCE_MAGIC);
  out.u32(SOURCE_VERSION);
  out.u32(kind);
  out.text(host);
  out.u32(rules.guards.length);
  for (const guard of rules.guards) {
    out.text(guard.resource);
    writeMatch(out, guard.match);
  }
  out.u32(rules.routes.length);
  for (const route of rules.routes) writeRoute(out, route);
  out.u32(rules.unmatched ? 1 : 0);
  if (rules.unmatched) {
    out.text(rules.unmatched.resource);
    writeOutcome(out, rules.unmatched.outcome);
  }
}
