/** Conditions, matches and outcomes of a source, written into the actions section. Layouts: image/layout.ts. */
import {
  A_SETTINGS,
  A_TEMPLATE,
  A_TYPE,
  A_UPSTREAM,
  ACTION_PROXY,
  ACTION_REDIRECT,
  ACTION_RETURN,
  ACTION_SIZE,
  C_NAME,
  C_OPERAND,
  CONDITION_SIZE,
  FLAG_IGNORE_CASE,
  M_CONDITIONS,
  M_OUTCOME,
  MATCH_SIZE,
  MAX_SPLIT_TOTAL,
  NONE,
  REWRITE_PATH,
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
  VARIABLE_COUNT,
} from "../image/layout";
import { alloc } from "../memory/heap";
import { REGEX_MAX_SIZE, REGEX_REFUSED, REGEX_WORK_SIZE, regexCompile, regexScratchSize } from "../regex/regex";
import { E_LIMIT, E_MEMORY, E_REGEX, E_SOURCE } from "../status";
import {
  B_ACTIONS,
  B_REGEX_OUT,
  B_SCRATCH,
  B_UPSTREAMS,
  B_WORK,
  fail,
  failRegex,
  here,
  muted,
  patch,
  patchSpan,
  putBytes,
  readBelow,
  readText,
  reserve,
  status,
  textLength,
} from "./builder";
import { compileSettings, compileTemplate, putTextAt, useCookies, useHeader, useVariable } from "./template";
import { internText } from "./text-table";

/** The most conditions, matches or split entries of one list. */
const MAX_LIST: u32 = 4096;

/** Compiles a pattern and appends its image; returns the length. While muted nothing is compiled. */
export function compileRegex(b: usize, pattern: usize, length: u32, flags: u32): u32 {
  if (muted(b) || status(b)) return 0;
  let work: usize = load<u32>(b, B_WORK);
  if (!work) {
    work = alloc(REGEX_WORK_SIZE);
    store<u32>(b, <u32>work, B_WORK);
    store<u32>(b, <u32>alloc(REGEX_MAX_SIZE), B_REGEX_OUT);
  }
  let out: usize = load<u32>(b, B_REGEX_OUT);
  if (!work || !out) {
    fail(b, E_MEMORY);
    return 0;
  }
  let size = regexCompile(pattern, length, flags, out, work);
  if (size == REGEX_REFUSED) {
    failRegex(b, E_REGEX, load<u32>(out), load<u32>(out, 4));
    return 0;
  }
  let scratch = regexScratchSize(out);
  if (scratch > load<u32>(b, B_SCRATCH)) store<u32>(b, scratch, B_SCRATCH);
  putBytes(b, out, size);
  return size;
}

/** One condition: u32 source, u32 variable, text name, u32 test, u32 negated, u32 ignore case, text operand. */
function compileCondition(b: usize, record: usize): void {
  let source = readBelow(b, SOURCE_VARIABLE + 1);
  let variable = readBelow(b, VARIABLE_COUNT);
  let name = readText(b);
  let nameLength = textLength(b);
  let test = readBelow(b, TEST_EMPTY + 1);
  let negated = readBelow(b, 2);
  let ignoreCase = readBelow(b, 2);
  let operand = readText(b);
  let operandLength = textLength(b);
  if (!source || !test || (test == TEST_EMPTY && operandLength)) fail(b, E_SOURCE);
  patch(b, record, source | (test << 8) | (negated << 16) | (variable << 24));
  if (source == SOURCE_HEADER) {
    patch(b, record + C_NAME, useHeader(b, name, nameLength));
  } else if (source == SOURCE_VARIABLE) {
    if (nameLength) fail(b, E_SOURCE);
    useVariable(b, variable);
  } else {
    if (!nameLength) fail(b, E_SOURCE);
    if (source == SOURCE_COOKIE) useCookies(b);
    putTextAt(b, record + C_NAME, name, nameLength);
  }
  if (test == TEST_EQUALS) {
    putTextAt(b, record + C_OPERAND, operand, operandLength);
  } else if (test == TEST_REGEX) {
    let offset = here(b);
    compileRegex(b, operand, operandLength, ignoreCase ? FLAG_IGNORE_CASE : 0);
    patchSpan(b, record + C_OPERAND, offset);
  }
}

/** One match (u32 condition count, conditions, outcome) into the record reserved for it. */
export function compileMatch(b: usize, record: usize): void {
  let count = readBelow(b, MAX_LIST);
  let conditions = reserve(b, count * CONDITION_SIZE);
  patch(b, record, count);
  patch(b, record + M_CONDITIONS, conditions);
  for (let i: u32 = 0; i < count && !status(b); i++) compileCondition(b, conditions + i * CONDITION_SIZE);
  patch(b, record + M_OUTCOME, compileOutcome(b));
}

/** A list of matches: `count` records, then the parts of each. Returns the offset of the records. */
export function compileMatches(b: usize, count: u32): u32 {
  if (count >= MAX_LIST) fail(b, E_LIMIT);
  if (status(b)) return 0;
  let records = reserve(b, count * MATCH_SIZE);
  for (let i: u32 = 0; i < count && !status(b); i++) compileMatch(b, records + i * MATCH_SIZE);
  return records;
}

/** One action: u32 kind, u32 status, text upstream or content type, u32 rewrite, template, settings. */
function compileAction(b: usize, record: usize): void {
  let kind = readBelow(b, ACTION_RETURN + 1);
  let code = readBelow(b, 1000);
  let text = readText(b);
  let length = textLength(b);
  let rewrite = readBelow(b, REWRITE_PATH + 1);
  if (!kind || (kind != ACTION_PROXY && (rewrite || code < 100)) || (kind == ACTION_REDIRECT && length)) {
    fail(b, E_SOURCE);
  }
  if (muted(b)) store<u32>(b, load<u32>(b, B_ACTIONS) + 1, B_ACTIONS);
  patch(b, record, kind | (rewrite << 8) | (code << 16));
  if (kind == ACTION_PROXY && !muted(b)) {
    let upstream = length && !status(b) ? internText(<usize>load<u32>(b, B_UPSTREAMS), text, length) : NONE;
    if (upstream == NONE) fail(b, E_SOURCE);
    patch(b, record + A_UPSTREAM, upstream);
  }
  let template = here(b);
  compileTemplate(b);
  patchSpan(b, record + A_TEMPLATE, template);
  if (kind == ACTION_RETURN) putTextAt(b, record + A_TYPE, text, length);
  let settings = here(b);
  compileSettings(b);
  patchSpan(b, record + A_SETTINGS, settings);
}

/** One outcome: u32 entry count (0: a plain action); for a split per entry u32 weight and the action. Returns its offset. */
export function compileOutcome(b: usize): u32 {
  let count = readBelow(b, MAX_LIST);
  if (!count) {
    let record = reserve(b, ACTION_SIZE);
    compileAction(b, record);
    return record;
  }
  let split: usize = reserve(b, SPLIT_HEADER + count * SPLIT_ENTRY);
  let total: u32 = 0;
  for (let i: u32 = 0; i < count && !status(b); i++) {
    total += readBelow(b, MAX_SPLIT_TOTAL + 1);
    if (total > MAX_SPLIT_TOTAL) fail(b, E_SOURCE);
    let entry = split + SPLIT_HEADER + i * SPLIT_ENTRY;
    let record = reserve(b, ACTION_SIZE);
    patch(b, entry, total);
    patch(b, entry + 4, record);
    compileAction(b, record);
  }
  if (!total) fail(b, E_SOURCE);
  patch(b, split, SPLIT | (count << 16));
  patch(b, split + SPLIT_TOTAL, total);
  return <u32>split;
}
