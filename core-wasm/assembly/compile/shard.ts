/** Compiles the source of one host pattern into its shard image. Source format: ABI.md, "Shard source". */
import { checksum64 } from "../balance/checksum";
import {
  GUARD_SIZE,
  MAX_HEADERS,
  MAX_HOST,
  MAX_ROUTES,
  NAME_RESOURCE_SIZE,
  NAME_ROUTE_SIZE,
  NONE,
  PATTERN_ANY_HOST,
  PATTERN_DEFAULT,
  R_FLAGS,
  R_MATCH_COUNT,
  R_MATCHES,
  R_NEED,
  R_NEXT,
  R_OUTCOME,
  R_PATH,
  R_REGEX,
  R_REGEX_LENGTH,
  ROUTE_REGEX,
  ROUTE_SIZE,
  S_CHECKSUM,
  S_COOKIE,
  S_FIRST_PREFIX,
  S_FIRST_REGEX,
  S_GUARD_COUNT,
  S_GUARDS,
  S_HEADER_COUNT,
  S_HEADER_SIZE,
  S_HEADERS,
  S_HOST_LENGTH,
  S_MATCH,
  S_NAMES,
  S_PATTERN,
  S_ROUTE_COUNT,
  S_ROUTES,
  S_SCRATCH,
  S_SIZE,
  S_UNMATCHED,
  S_UNMATCHED_NEED,
  S_UPSTREAM_COUNT,
  S_UPSTREAMS,
  S_VERSION,
  SHARD_MAGIC,
  SHARD_VERSION,
} from "../image/layout";
import { alloc, free } from "../memory/heap";
import { BY_PATH, BY_STAGE, sortInPlace } from "../memory/merge-sort";
import { E_MEMORY, E_SOURCE } from "../status";
import {
  at,
  atEnd,
  B_ACTIONS,
  B_HEADER_USES,
  B_HEADERS,
  B_RESOURCES,
  B_SCRATCH,
  B_UPSTREAMS,
  clearNeed,
  cursor,
  fail,
  here,
  mark,
  mute,
  patch,
  patchByte,
  put,
  putBytes,
  putNeed,
  readBelow,
  readText,
  readU32,
  reserve,
  seek,
  status,
  textLength,
} from "./builder";
import {
  E_FLAGS,
  E_INDEX,
  E_LABEL,
  E_LABEL_LENGTH,
  E_MATCH_COUNT,
  E_MATCHES,
  E_NEXT,
  E_OUTCOME,
  E_PATH,
  E_PATH_LENGTH,
  E_RESOURCE,
  E_RESOURCE_LENGTH,
  ENTRY_SIZE,
  readRoute,
  stageOf,
} from "./route-entry";
import { compileMatch, compileMatches, compileOutcome, compileRegex } from "./rules";
import { putTextAt, putTextList } from "./template";
import { cookieSlot, internText, newTextTable, textAddress, textCount, textSize } from "./text-table";
import { compileTrie } from "./trie";

export const SOURCE_MAGIC: u32 = 0x53534a4e;
const SOURCE_VERSION: u32 = 1;

/** Writes what belongs to one route into its record: path, regex, matches, outcome, need list. */
function putRoute(b: usize, record: usize, entry: usize): void {
  let kind = load<u32>(entry);
  patchByte(b, record, kind);
  patchByte(b, record + R_FLAGS, load<u32>(entry, E_FLAGS));
  patch(b, record + R_NEXT, load<u32>(entry, E_NEXT));
  clearNeed(b);
  let path: usize = load<u32>(entry, E_PATH);
  let length = load<u32>(entry, E_PATH_LENGTH);
  putTextAt(b, record + R_PATH, path, length);
  if (kind == ROUTE_REGEX) {
    mark(b, record + R_REGEX);
    patch(b, record + R_REGEX_LENGTH, compileRegex(b, path, length, load<u32>(entry, E_FLAGS)));
  }
  seek(b, load<u32>(entry, E_MATCHES));
  patch(b, record + R_MATCH_COUNT, load<u32>(entry, E_MATCH_COUNT));
  patch(b, record + R_MATCHES, compileMatches(b, load<u32>(entry, E_MATCH_COUNT)));
  if (load<u32>(entry, E_OUTCOME)) {
    seek(b, load<u32>(entry, E_OUTCOME));
    patch(b, record + R_OUTCOME, compileOutcome(b));
  }
  patch(b, record + R_NEED, putNeed(b));
}

/** The names section: who owns each route and how its object spells the path. `guards` is a list of resource indices. */
function putNames(b: usize, list: usize, routes: u32, guards: usize, guardCount: u32, unmatched: u32): void {
  let resources: usize = load<u32>(b, B_RESOURCES);
  mark(b, S_NAMES);
  put(b, textCount(resources));
  let resourceTable = reserve(b, textCount(resources) * NAME_RESOURCE_SIZE);
  let routeTable = reserve(b, routes * NAME_ROUTE_SIZE);
  putBytes(b, guards, guardCount << 2);
  put(b, unmatched);
  for (let i: u32 = 0; i < textCount(resources) && !status(b); i++) {
    putTextAt(b, resourceTable + i * NAME_RESOURCE_SIZE, textAddress(resources, i), textSize(resources, i));
  }
  for (let i: u32 = 0; i < routes && !status(b); i++) {
    let entry: usize = load<u32>(list + ((<usize>i) << 2));
    let resource = <usize>load<u32>(entry, E_RESOURCE);
    patch(b, routeTable + i * NAME_ROUTE_SIZE, internText(resources, resource, load<u32>(entry, E_RESOURCE_LENGTH)));
    putTextAt(
      b,
      routeTable + i * NAME_ROUTE_SIZE + 4,
      <usize>load<u32>(entry, E_LABEL),
      load<u32>(entry, E_LABEL_LENGTH),
    );
  }
}

/** Reads the header of a source and writes that of the image. */
function putHeader(b: usize): void {
  if (readU32(b) != SOURCE_MAGIC || readU32(b) != SOURCE_VERSION) fail(b, E_SOURCE);
  let pattern = readBelow(b, PATTERN_DEFAULT + 1);
  let host = readText(b);
  let length = textLength(b);
  if (length > MAX_HOST || (length == 0) != pattern >= PATTERN_ANY_HOST) fail(b, E_SOURCE);
  if (status(b)) return;
  reserve(b, S_HEADER_SIZE);
  patch(b, 0, SHARD_MAGIC);
  patch(b, S_VERSION, SHARD_VERSION);
  patch(b, S_PATTERN, pattern);
  patch(b, S_HOST_LENGTH, length);
  putBytes(b, host, length);
  // At least one whole word of padding lets hosts be compared eight bytes at a time.
  reserve(b, ((length + 8) & ~7) - ((length + 3) & ~3));
}

/** Walks over the guards: per guard text resource and a match. */
function skipGuards(b: usize, count: u32): void {
  for (let i: u32 = 0; i < count && !status(b); i++) {
    readText(b);
    compileMatch(b, 0);
  }
}

/**
 * Compiles the source that the builder `b` stands on. On success the output of the builder is the finished image and its
 * length is returned; else a negative status.
 */
export function compileShard(b: usize): i32 {
  putHeader(b);
  let guardCount = readBelow(b, MAX_ROUTES);
  let guardsAt = cursor(b);
  mute(b, true);
  skipGuards(b, guardCount);
  let count = readBelow(b, MAX_ROUTES);
  let entries = status(b) ? <usize>0 : alloc(count * ENTRY_SIZE + 16);
  let lists = status(b) ? <usize>0 : alloc(count * 12 + guardCount * 4 + 16);
  if (!status(b) && (!entries || !lists)) fail(b, E_MEMORY);
  for (let i: u32 = 0; i < count && !status(b); i++) readRoute(b, entries + i * ENTRY_SIZE);
  let hasUnmatched = readBelow(b, 2);
  let unmatchedAt = cursor(b);
  if (hasUnmatched) {
    readText(b);
    compileOutcome(b);
  }
  if (!status(b) && !atEnd(b)) fail(b, E_SOURCE);
  mute(b, false);
  if (!status(b)) putShard(b, entries, lists, count, guardCount, guardsAt, hasUnmatched ? unmatchedAt : 0);
  free(entries);
  free(lists);
  return status(b) ? status(b) : <i32>here(b);
}

function putShard(
  b: usize,
  entries: usize,
  list: usize,
  count: u32,
  guardCount: u32,
  guardsAt: u32,
  unmatchedAt: u32,
): void {
  let byPath = list + ((<usize>count) << 2);
  let spare = byPath + ((<usize>count) << 2);
  let guards = spare + ((<usize>count) << 2);
  store<u32>(b, <u32>newTextTable(min(load<u32>(b, B_HEADER_USES), MAX_HEADERS)), B_HEADERS);
  store<u32>(b, <u32>newTextTable(load<u32>(b, B_ACTIONS) + 1), B_UPSTREAMS);
  store<u32>(b, <u32>newTextTable(count + guardCount + 1), B_RESOURCES);
  if (!load<u32>(b, B_HEADERS) || !load<u32>(b, B_UPSTREAMS) || !load<u32>(b, B_RESOURCES)) {
    fail(b, E_MEMORY);
    return;
  }
  // Only regex routes keep the order of the source; the sort by path makes that of the others canonical.
  let plain: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    let entry = entries + i * ENTRY_SIZE;
    if (load<u32>(entry) == ROUTE_REGEX) continue;
    store<u32>(byPath + ((<usize>plain) << 2), <u32>entry);
    plain++;
  }
  sortInPlace(byPath, spare, plain, BY_PATH);
  memory.copy(list, byPath, (<usize>plain) << 2);
  let last = plain;
  for (let i: u32 = 0; i < count; i++) {
    let entry = entries + i * ENTRY_SIZE;
    if (load<u32>(entry) != ROUTE_REGEX) continue;
    store<u32>(list + ((<usize>last) << 2), <u32>entry);
    last++;
  }
  sortInPlace(list, spare, count, BY_STAGE);
  let firstRegex: u32 = 0;
  let firstPrefix: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    let entry: usize = load<u32>(list + ((<usize>i) << 2));
    store<u32>(entry, i, E_INDEX);
    store<u32>(entry, NONE, E_NEXT);
    if (stageOf(entry) < 1) firstRegex = i + 1;
    if (stageOf(entry) < 2) firstPrefix = i + 1;
  }
  mark(b, S_MATCH);
  compileTrie(b, byPath, plain);

  let routes = reserve(b, count * ROUTE_SIZE);
  patch(b, S_ROUTE_COUNT, count);
  patch(b, S_ROUTES, routes);
  patch(b, S_FIRST_REGEX, firstRegex);
  patch(b, S_FIRST_PREFIX, firstPrefix);
  let guardTable = reserve(b, guardCount * GUARD_SIZE);
  patch(b, S_GUARD_COUNT, guardCount);
  patch(b, S_GUARDS, guardTable);
  let resources: usize = load<u32>(b, B_RESOURCES);
  seek(b, guardsAt);
  for (let i: u32 = 0; i < guardCount && !status(b); i++) {
    let resource = readText(b);
    store<u32>(guards + ((<usize>i) << 2), internText(resources, resource, textLength(b)));
    clearNeed(b);
    compileMatch(b, guardTable + i * GUARD_SIZE + 4);
    patch(b, guardTable + i * GUARD_SIZE, putNeed(b));
  }
  for (let i: u32 = 0; i < count && !status(b); i++) {
    let entry: usize = load<u32>(list + ((<usize>i) << 2));
    internText(resources, <usize>load<u32>(entry, E_RESOURCE), load<u32>(entry, E_RESOURCE_LENGTH));
    putRoute(b, routes + i * ROUTE_SIZE, entry);
  }
  let unmatched = NONE;
  if (unmatchedAt) {
    seek(b, unmatchedAt);
    let resource = readText(b);
    unmatched = internText(resources, resource, textLength(b));
    clearNeed(b);
    patch(b, S_UNMATCHED, compileOutcome(b));
    patch(b, S_UNMATCHED_NEED, putNeed(b));
  }
  patch(b, S_UPSTREAM_COUNT, textCount(<usize>load<u32>(b, B_UPSTREAMS)));
  mark(b, S_UPSTREAMS);
  putTextList(b, <usize>load<u32>(b, B_UPSTREAMS));
  let headers: usize = load<u32>(b, B_HEADERS);
  patch(b, S_HEADER_COUNT, textCount(headers));
  mark(b, S_HEADERS);
  putTextList(b, headers);
  patch(b, S_COOKIE, cookieSlot(headers));
  patch(b, S_SCRATCH, load<u32>(b, B_SCRATCH));
  putNames(b, list, count, guards, guardCount, unmatched);
  if (status(b)) return;
  if (here(b) & 7) reserve(b, 4);
  mark(b, S_SIZE);
  store<u64>(at(b, 0), checksum64(at(b, 16), here(b) - 16), S_CHECKSUM);
}
