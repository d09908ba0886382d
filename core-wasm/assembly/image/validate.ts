/**
 * Checks a shard image before it is loaded. An image that passes can be matched against any request without a read
 * outside of it, a trap or a loop: every part must stand exactly where the compiler would have put it, children of
 * the trie come after their parents, and candidates after the ones they follow.
 */
import { checksum64 } from "../balance/checksum";
import { alloc, free } from "../memory/heap";
import { E_CHECKSUM, E_CORRUPT, E_MAGIC, E_MEMORY, E_TRUNCATED, E_VERSION, OK } from "../status";
import {
  FACTS,
  GUARD_SIZE,
  K_COOKIE,
  K_HEADER_COUNT,
  K_NEED,
  K_SIZE,
  K_STICKY,
  K_STICKY_LENGTH,
  K_TEMPLATE,
  K_TEMPLATE_LENGTH,
  KEY_HEADER,
  MATCH_SIZE,
  MAX_HEADERS,
  MAX_HOST,
  MAX_IMAGE,
  MAX_KEY_SLOTS,
  MAX_ROUTES,
  NAME_RESOURCE_SIZE,
  NAME_ROUTE_SIZE,
  NONE,
  PATTERN_ANY_HOST,
  PATTERN_DEFAULT,
  R_MATCH_COUNT,
  R_MATCHES,
  R_NEED,
  R_NEXT,
  R_OUTCOME,
  R_PATH,
  R_REGEX,
  R_REGEX_LENGTH,
  ROUTE_EXACT,
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
} from "./layout";
import {
  bad,
  cursorOf,
  good,
  take,
  takeNext,
  takeSpan,
  V_CURSOR,
  V_SIZE,
  V_SLOTS,
  V_STATUS,
  V_UPSTREAMS,
} from "./validate-cursor";
import { checkMatch, checkNeed, checkOutcome, checkRegex, checkTemplate, checkTextList } from "./validate-rules";
import { validateTrie } from "./validate-trie";

function checkRoute(v: usize, at: usize, index: u32): void {
  let image: usize = load<u32>(v);
  let kind: u32 = load<u8>(at);
  let regex = load<u32>(at, R_REGEX);
  let firstRegex = load<u32>(image, S_FIRST_REGEX);
  let firstPrefix = load<u32>(image, S_FIRST_PREFIX);
  let stage: u32 = kind == ROUTE_EXACT ? 0 : kind == ROUTE_REGEX ? 1 : 2;
  if (kind > ROUTE_REGEX || stage != (index < firstRegex ? 0 : index < firstPrefix ? 1 : 2)) bad(v);
  let next = load<u32>(at, R_NEXT);
  if (next != NONE) {
    let end = stage == 0 ? firstRegex : load<u32>(image, S_ROUTE_COUNT);
    if (next <= index || next >= end || stage == 1) bad(v);
  }
  takeSpan(v, at + R_PATH);
  if (kind == ROUTE_REGEX) checkRegex(v, regex, load<u32>(at, R_REGEX_LENGTH));
  else if (regex) bad(v);
  let count = load<u32>(at, R_MATCH_COUNT);
  if (count > MAX_ROUTES) bad(v);
  let matches = good(v) ? take(v, load<u32>(at, R_MATCHES), count * MATCH_SIZE) : 0;
  for (let i: u32 = 0; i < count && good(v); i++) checkMatch(v, matches + i * MATCH_SIZE);
  if (load<u32>(at, R_OUTCOME)) checkOutcome(v, load<u32>(at, R_OUTCOME));
  checkNeed(v, load<u32>(at, R_NEED));
}

function checkNames(v: usize): void {
  let image: usize = load<u32>(v);
  let offset = load<u32>(image, S_NAMES);
  if (!offset) return;
  let routes = load<u32>(image, S_ROUTE_COUNT);
  let guards = load<u32>(image, S_GUARD_COUNT);
  let head = take(v, offset, 4);
  if (!head) return;
  let count = load<u32>(head);
  if (count > MAX_ROUTES << 1) {
    bad(v);
    return;
  }
  let resources = takeNext(v, count * NAME_RESOURCE_SIZE);
  let labels = takeNext(v, routes * NAME_ROUTE_SIZE);
  let owners = takeNext(v, (guards + 1) << 2);
  if (!good(v)) return;
  for (let i: u32 = 0; i < count && good(v); i++) {
    let at = resources + i * NAME_RESOURCE_SIZE;
    takeSpan(v, at);
  }
  for (let i: u32 = 0; i < routes && good(v); i++) {
    let at = labels + i * NAME_ROUTE_SIZE;
    if (load<u32>(at) >= count) bad(v);
    takeSpan(v, at + 4);
  }
  for (let i: u32 = 0; i <= guards; i++) {
    let owner = load<u32>(owners + ((<usize>i) << 2));
    if (owner >= count && !(i == guards && owner == NONE)) bad(v);
  }
}

function checkBody(v: usize): void {
  let image: usize = load<u32>(v);
  let host = load<u32>(image, S_HOST_LENGTH);
  let pattern = load<u32>(image, S_PATTERN);
  let routes = load<u32>(image, S_ROUTE_COUNT);
  let guards = load<u32>(image, S_GUARD_COUNT);
  let headers = load<u32>(image, S_HEADER_COUNT);
  let cookie = load<u32>(image, S_COOKIE);
  if (host > MAX_HOST || pattern > PATTERN_DEFAULT || (host == 0) != pattern >= PATTERN_ANY_HOST) bad(v);
  if (routes > MAX_ROUTES || guards > MAX_ROUTES || headers > MAX_HEADERS) bad(v);
  if (load<u32>(image, S_FIRST_REGEX) > load<u32>(image, S_FIRST_PREFIX)) bad(v);
  if (load<u32>(image, S_FIRST_PREFIX) > routes || cookie >= headers + FACTS || (cookie && cookie < FACTS)) bad(v);
  if (load<u32>(image, S_SCRATCH) > 1 << 20) bad(v);
  if (!good(v)) return;
  store<u32>(v, headers + FACTS, V_SLOTS);
  store<u32>(v, load<u32>(image, S_UPSTREAM_COUNT), V_UPSTREAMS);
  take(v, S_HEADER_SIZE, (host + 8) & ~7);
  let match = load<u32>(image, S_MATCH);
  let table = load<u32>(image, S_ROUTES);
  if (match != cursorOf(v) || table < match || table > load<u32>(v, V_SIZE) || table & 3) bad(v);
  if (!good(v)) return;
  store<i32>(v, validateTrie(image, match, table), V_STATUS);
  store<u32>(v, table, V_CURSOR);
  let records = take(v, table, routes * ROUTE_SIZE);
  let guardRecords = take(v, load<u32>(image, S_GUARDS), guards * GUARD_SIZE);
  for (let i: u32 = 0; i < guards && good(v); i++) {
    checkMatch(v, guardRecords + i * GUARD_SIZE + 4);
    checkNeed(v, load<u32>(guardRecords + i * GUARD_SIZE));
  }
  for (let i: u32 = 0; i < routes && good(v); i++) checkRoute(v, records + i * ROUTE_SIZE, i);
  if (load<u32>(image, S_UNMATCHED)) checkOutcome(v, load<u32>(image, S_UNMATCHED));
  checkNeed(v, load<u32>(image, S_UNMATCHED_NEED));
  checkTextList(v, load<u32>(image, S_UPSTREAMS), load<u32>(image, S_UPSTREAM_COUNT));
  checkTextList(v, load<u32>(image, S_HEADERS), headers);
  checkNames(v);
  if (good(v) && ((cursorOf(v) + 7) & ~7) != load<u32>(v, V_SIZE)) bad(v);
}

/**
 * Checks the key of a peer set; 0 bytes stand for none. OK, or what is wrong.
 */
export function validateKey(blob: usize, length: u32): i32 {
  if (!length) return OK;
  if (length < KEY_HEADER || load<u32>(blob, K_SIZE) != length) return E_CORRUPT;
  let headers = load<u32>(blob, K_HEADER_COUNT);
  let cookie = load<u32>(blob, K_COOKIE);
  if (headers > MAX_KEY_SLOTS - FACTS || cookie >= headers + FACTS || (cookie && cookie < FACTS)) return E_CORRUPT;
  let v = alloc(32);
  if (!v) return E_MEMORY;
  memory.fill(v, 0, 32);
  store<u32>(v, <u32>blob);
  store<u32>(v, length, V_SIZE);
  store<u32>(v, KEY_HEADER, V_CURSOR);
  store<u32>(v, headers + FACTS, V_SLOTS);
  checkTextList(v, KEY_HEADER, headers);
  checkNeed(v, load<u32>(blob, K_NEED));
  checkTemplate(v, load<u32>(blob, K_TEMPLATE), load<u32>(blob, K_TEMPLATE_LENGTH));
  let sticky = load<u32>(blob, K_STICKY);
  let stickyLength = load<u32>(blob, K_STICKY_LENGTH);
  if (sticky) checkTemplate(v, sticky, stickyLength);
  if ((sticky == 0) != (stickyLength == 0) || (sticky && !cookie)) bad(v);
  if (cursorOf(v) != length) bad(v);
  let status = load<i32>(v, V_STATUS);
  free(v);
  return status;
}

/**
 * Checks `length` bytes, which must be one shard image: OK, or the status that says what is wrong. With `seal` the image
 * has just been made: if it is sound, its checksum is written, not compared.
 */
export function validateShard(image: usize, length: u32, seal: bool): i32 {
  if (length < S_HEADER_SIZE) return E_TRUNCATED;
  if (load<u32>(image) != SHARD_MAGIC) return E_MAGIC;
  if (load<u32>(image, S_VERSION) != SHARD_VERSION) return E_VERSION;
  let size = load<u32>(image, S_SIZE);
  if (size > length) return E_TRUNCATED;
  if (size != length || size > MAX_IMAGE) return E_CORRUPT;
  let sum = checksum64(image + 16, size - 16);
  if (!seal && sum != load<u64>(image, S_CHECKSUM)) return E_CHECKSUM;
  let v = alloc(32);
  if (!v) return E_MEMORY;
  memory.fill(v, 0, 32);
  store<u32>(v, <u32>image);
  store<u32>(v, size, V_SIZE);
  store<u32>(v, S_HEADER_SIZE, V_CURSOR);
  checkBody(v);
  let status = load<i32>(v, V_STATUS);
  if (seal && status == OK) store<u64>(image, sum, S_CHECKSUM);
  free(v);
  return status;
}
