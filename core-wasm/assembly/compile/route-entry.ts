/**
 * The routes of a source while they are being sorted.
 *
 * Entry, 56 bytes: 0 u32 kind | 4 u32 flags | 8 u32 path | 12 u32 path length | 16 u32 label | 20 u32 label length
 * | 24 u32 resource | 28 u32 resource length | 32 u32 match count | 36 u32 source position of the matches
 * | 40 u32 source position of the outcome (0: none) | 44 u32 final index | 48 u32 next candidate | 52 u32 enclosing entry
 */
import { FLAG_STOPS_REGEX, MAX_PATH, ROUTE_EXACT, ROUTE_REGEX, ROUTE_SEGMENTS } from "../image/layout";
import { compareBytes } from "../memory/bytes";
import { E_LIMIT, E_SOURCE } from "../status";
import { cursor, fail, readBelow, readText, readTextTo, readU32, status, textLength } from "./builder";
import { compileMatch, compileOutcome } from "./rules";

export const E_FLAGS: usize = 4;
export const E_PATH: usize = 8;
export const E_PATH_LENGTH: usize = 12;
export const E_LABEL: usize = 16;
export const E_LABEL_LENGTH: usize = 20;
export const E_RESOURCE: usize = 24;
export const E_RESOURCE_LENGTH: usize = 28;
export const E_MATCH_COUNT: usize = 32;
export const E_MATCHES: usize = 36;
export const E_OUTCOME: usize = 40;
export const E_INDEX: usize = 44;
export const E_NEXT: usize = 48;
export const E_ENCLOSING: usize = 52;
export const ENTRY_SIZE: u32 = 56;

/**
 * Reads one route: u32 kind, u32 flags, text path, text label, text resource, u32 match count, matches, u32 has outcome,
 * outcome. The builder must be muted: what belongs to the route is only walked.
 */
export function readRoute(b: usize, entry: usize): void {
  let kind = readBelow(b, ROUTE_REGEX + 1);
  store<u32>(entry, kind);
  store<u32>(entry, readBelow(b, 8), E_FLAGS);
  let path = readText(b);
  let length = textLength(b);
  if (length > MAX_PATH) fail(b, E_LIMIT);
  if (kind != ROUTE_REGEX && length && load<u8>(path) != 47) fail(b, E_SOURCE);
  if (kind == ROUTE_SEGMENTS && length && load<u8>(path + length - 1) == 47) length--;
  store<u32>(entry, <u32>path, E_PATH);
  store<u32>(entry, length, E_PATH_LENGTH);
  readTextTo(b, entry + E_LABEL);
  readTextTo(b, entry + E_RESOURCE);
  let matches = readU32(b);
  store<u32>(entry, matches, E_MATCH_COUNT);
  store<u32>(entry, cursor(b), E_MATCHES);
  for (let i: u32 = 0; i < matches && !status(b); i++) compileMatch(b, 0);
  let outcome = readBelow(b, 2);
  store<u32>(entry, outcome ? cursor(b) : 0, E_OUTCOME);
  if (outcome) compileOutcome(b);
}

/** Which of the three tries a kind belongs to when two routes have one path: exact, then segments, then plain prefixes. */
export function compareByPath(a: usize, b: usize): i32 {
  let order = compareBytes(
    <usize>load<u32>(a, E_PATH),
    load<u32>(a, E_PATH_LENGTH),
    <usize>load<u32>(b, E_PATH),
    load<u32>(b, E_PATH_LENGTH),
  );
  if (order) return order;
  let kind = <i32>load<u32>(a) - <i32>load<u32>(b);
  if (kind) return kind;
  return <i32>(load<u32>(b, E_FLAGS) & FLAG_STOPS_REGEX) - <i32>(load<u32>(a, E_FLAGS) & FLAG_STOPS_REGEX);
}

/** 0 exact, 1 regex, 2 prefixes: the stages of a search. */
export function stageOf(entry: usize): u32 {
  let kind = load<u32>(entry);
  return kind == ROUTE_EXACT ? 0 : kind == ROUTE_REGEX ? 1 : 2;
}

/** Candidate order: by stage; prefixes from the longest on. What is equal here keeps the order it has. */
export function compareByStage(a: usize, b: usize): i32 {
  let stage = <i32>stageOf(a) - <i32>stageOf(b);
  if (stage || stageOf(a) != 2) return stage;
  return <i32>load<u32>(b, E_PATH_LENGTH) - <i32>load<u32>(a, E_PATH_LENGTH);
}
