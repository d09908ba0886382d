/** Conditions, matches and outcomes, as parts of a shard's image. Layouts: core-wasm/assembly/image/layout.ts. */
import {
  A_SETTINGS,
  A_SETTINGS_LENGTH,
  A_TEMPLATE,
  A_TEMPLATE_LENGTH,
  A_TYPE,
  A_UPSTREAM,
  ACTION_PROXY,
  ACTION_REDIRECT,
  ACTION_RETURN,
  ACTION_SIZE,
  C_NAME,
  C_OPERAND,
  C_OPERAND_LENGTH,
  CONDITION_SIZE,
  FLAG_IGNORE_CASE,
  M_CONDITIONS,
  M_OUTCOME,
  MATCH_SIZE,
  MAX_LIST,
  MAX_SPLIT_TOTAL,
  REWRITE_NONE,
  REWRITE_PATH,
  REWRITE_PREFIX,
  SOURCE_ARGUMENT,
  SOURCE_COOKIE,
  SOURCE_HEADER,
  SOURCE_VARIABLE,
  SPLIT,
  SPLIT_ENTRY,
  SPLIT_HEADER,
  SPLIT_TOTAL,
  TEST_EMPTY,
  TEST_EQUALS,
  TEST_REGEX,
} from "../../assembly/image/layout.js";
import type { Action, Condition, ConditionTest, Match, Outcome, Split, Template, ValueSource } from "../source.js";
import { putErrorPages } from "./error-pages.js";
import type { ShardCompilation } from "./shard-compilation.js";
import { putHeaderChanges, putTemplate } from "./template.js";

const SOURCES: Readonly<Record<ValueSource["kind"], number>> = {
  header: SOURCE_HEADER,
  cookie: SOURCE_COOKIE,
  argument: SOURCE_ARGUMENT,
  variable: SOURCE_VARIABLE,
};
const TESTS: Readonly<Record<ConditionTest["kind"], number>> = {
  equals: TEST_EQUALS,
  regex: TEST_REGEX,
  empty: TEST_EMPTY,
};
const NOTHING: Template = [];

/** Writes the parts of a condition, and its record, which has been reserved. */
function putCondition(c: ShardCompilation, record: number, { source, test, negated }: Condition): void {
  const { out } = c;
  let variable = 0;
  if (source.kind === "variable") {
    variable = c.useVariable(source.name);
  } else if (source.kind === "header") {
    out.patch(record + C_NAME, c.useHeader(source.name));
  } else {
    if (source.name === "") throw c.invalid(`a ${source.kind} without a name`);
    if (source.kind === "cookie") c.useCookies();
    out.textAt(record + C_NAME, source.name);
  }
  out.patch(record, SOURCES[source.kind] | (TESTS[test.kind] << 8) | (negated ? 1 << 16 : 0) | (variable << 24));
  if (test.kind === "equals") {
    out.textAt(record + C_OPERAND, test.value);
  } else if (test.kind === "regex") {
    out.patch(record + C_OPERAND, out.length);
    out.patch(record + C_OPERAND_LENGTH, c.putRegex(test.pattern, test.ignoreCase ? FLAG_IGNORE_CASE : 0));
  }
}

/** Writes the parts of a match, and its record, which has been reserved. */
export function putMatch(c: ShardCompilation, record: number, { conditions, outcome }: Match): void {
  const { out } = c;
  if (conditions.length >= MAX_LIST)
    throw c.beyond(`a match of ${conditions.length} conditions, at most ${MAX_LIST - 1}`);
  const start = out.reserve(conditions.length * CONDITION_SIZE);
  out.patch(record, conditions.length);
  out.patch(record + M_CONDITIONS, start);
  for (let i = 0; i < conditions.length; i++) putCondition(c, start + i * CONDITION_SIZE, conditions[i]);
  out.patch(record + M_OUTCOME, putOutcome(c, outcome));
}

/** Writes a list of matches and returns its offset. */
export function putMatches(c: ShardCompilation, matches: readonly Match[]): number {
  if (matches.length >= MAX_LIST) throw c.beyond(`${matches.length} matches, at most ${MAX_LIST - 1}`);
  const start = c.out.reserve(matches.length * MATCH_SIZE);
  for (let i = 0; i < matches.length; i++) putMatch(c, start + i * MATCH_SIZE, matches[i]);
  return start;
}

function checkedStatus(c: ShardCompilation, status: number): number {
  if (!(Number.isInteger(status) && status >= 100 && status <= 999)) throw c.invalid(`${status} is no status`);
  return status;
}

/** Writes an action and returns its offset. */
function putAction(c: ShardCompilation, action: Action): number {
  const { out } = c;
  const record = out.reserve(ACTION_SIZE);
  let head: number;
  let template = NOTHING;
  if (action.kind === "proxy") {
    if (action.upstream === "") throw c.invalid("an upstream without a key");
    const { rewrite } = action;
    let kind = REWRITE_NONE;
    if (rewrite) {
      kind = rewrite.kind === "prefix" ? REWRITE_PREFIX : REWRITE_PATH;
      template = rewrite.kind === "prefix" ? [rewrite.text] : rewrite.template;
    }
    head = ACTION_PROXY | (kind << 8);
    out.patch(record + A_UPSTREAM, c.upstreams.add(action.upstream));
  } else if (action.kind === "redirect") {
    head = ACTION_REDIRECT | (checkedStatus(c, action.status) << 16);
    template = action.location;
  } else {
    head = ACTION_RETURN | (checkedStatus(c, action.status) << 16);
    template = action.body;
  }
  out.patch(record, head);
  out.patch(record + A_TEMPLATE, out.length);
  if (template.length > 0) out.patch(record + A_TEMPLATE_LENGTH, putTemplate(c, template));
  if (action.kind === "return") out.textAt(record + A_TYPE, action.contentType);
  const settings = out.length;
  if (action.headers) putHeaderChanges(c, action.headers);
  if (action.kind === "proxy" && action.errorPages) putErrorPages(c, action.errorPages);
  out.patch(record + A_SETTINGS, settings);
  out.patch(record + A_SETTINGS_LENGTH, out.length - settings);
  return record;
}

function putSplit(c: ShardCompilation, { entries }: Split): number {
  const { out } = c;
  const count = entries.length;
  if (count >= MAX_LIST) throw c.beyond(`a split of ${count} entries, at most ${MAX_LIST - 1}`);
  const split = out.reserve(SPLIT_HEADER + count * SPLIT_ENTRY);
  let total = 0;
  for (let i = 0; i < count; i++) {
    const { weight, action } = entries[i];
    if (!(Number.isInteger(weight) && weight >= 0)) throw c.invalid(`${weight} is no weight`);
    total += weight;
    if (total > MAX_SPLIT_TOTAL) throw c.beyond(`a split whose weights exceed ${MAX_SPLIT_TOTAL}`);
    const entry = split + SPLIT_HEADER + i * SPLIT_ENTRY;
    out.patch(entry, total);
    const record = putAction(c, action);
    out.patch(entry + 4, record);
  }
  if (total === 0) throw c.invalid("a split without weight");
  out.patch(split, SPLIT | (count << 16));
  out.patch(split + SPLIT_TOTAL, total);
  return split;
}

/** Writes an outcome and returns its offset. */
export function putOutcome(c: ShardCompilation, outcome: Outcome): number {
  return outcome.kind === "split" ? putSplit(c, outcome) : putAction(c, outcome);
}
