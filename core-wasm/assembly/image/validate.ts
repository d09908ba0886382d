/**
 * Checks a shard image before it is loaded. An image that passes can be matched against any request without a read
 * outside of it, a trap or a loop: every part must stand exactly where the compiler would have put it, children of
 * the trie come after their parents, and candidates after the ones they follow.
 *
 * Validator, 32 bytes: 0 u32 image | 4 u32 size | 8 u32 cursor | 12 u32 value slots | 16 u32 upstreams | 20 i32 status
 */
import { checksum64 } from "../balance/checksum";
import { alloc, free } from "../memory/heap";
import { regexScratchSize, regexValidate } from "../regex/regex";
import { E_CHECKSUM, E_CORRUPT, E_MAGIC, E_MEMORY, E_TRUNCATED, E_UNSUPPORTED, E_VERSION, OK } from "../status";
import {
  A_REWRITE,
  A_SETTINGS,
  A_SETTINGS_LENGTH,
  A_STATUS,
  A_TEMPLATE,
  A_TEMPLATE_LENGTH,
  A_TYPE,
  A_UPSTREAM,
  ACTION_PROXY,
  ACTION_REDIRECT,
  ACTION_RETURN,
  ACTION_SIZE,
  C_NAME,
  C_NEGATED,
  C_OPERAND,
  C_OPERAND_LENGTH,
  C_TEST,
  C_VARIABLE,
  CONDITION_SIZE,
  FACTS,
  GUARD_SIZE,
  K_COOKIE,
  K_HEADER_COUNT,
  K_NEED,
  K_SIZE,
  K_TEMPLATE,
  K_TEMPLATE_LENGTH,
  KEY_HEADER,
  M_CONDITIONS,
  M_OUTCOME,
  MATCH_SIZE,
  MAX_HEADERS,
  MAX_HOST,
  MAX_IMAGE,
  MAX_KEY_SLOTS,
  MAX_ROUTES,
  MAX_SPLIT_TOTAL,
  NAME_RESOURCE_SIZE,
  NAME_ROUTE_SIZE,
  NONE,
  PART_ARGUMENT,
  PART_COOKIE,
  PART_GROUP,
  PART_HEADER,
  PART_TEXT,
  PART_VARIABLE,
  PATTERN_ANY_HOST,
  PATTERN_DEFAULT,
  pad4,
  R_MATCH_COUNT,
  R_MATCHES,
  R_NEED,
  R_NEXT,
  R_OUTCOME,
  R_PATH,
  R_REGEX,
  R_REGEX_LENGTH,
  REWRITE_PATH,
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
  SETTING_HEADER,
  SHARD_MAGIC,
  SHARD_VERSION,
  SOURCE_COOKIE,
  SOURCE_HEADER,
  SOURCE_VARIABLE,
  SPLIT,
  SPLIT_ENTRY,
  SPLIT_HEADER,
  SPLIT_TOTAL,
  TAG_LAST_HEADER_CHANGE,
  TAG_MUST_UNDERSTAND,
  TEST_EMPTY,
  TEST_REGEX,
  VARIABLE_COUNT,
} from "./layout";
import { validateTrie } from "./validate-trie";

const V_SIZE: usize = 4;
const V_CURSOR: usize = 8;
const V_SLOTS: usize = 12;
const V_UPSTREAMS: usize = 16;
const V_STATUS: usize = 20;

function bad(v: usize): void {
  if (!load<i32>(v, V_STATUS)) store<i32>(v, E_CORRUPT, V_STATUS);
}

function good(v: usize): bool {
  return load<i32>(v, V_STATUS) == OK;
}

/** Requires `length` bytes at `offset`, which must be where the last part ended. Returns their address, 0 on error. */
function take(v: usize, offset: u32, length: u32): usize {
  let cursor = load<u32>(v, V_CURSOR);
  if (!good(v) || offset != cursor || length > MAX_IMAGE || pad4(length) > load<u32>(v, V_SIZE) - cursor) {
    bad(v);
    return 0;
  }
  store<u32>(v, cursor + pad4(length), V_CURSOR);
  return <usize>load<u32>(v) + offset;
}

function cursorOf(v: usize): u32 {
  return load<u32>(v, V_CURSOR);
}

/** The next `length` bytes, wherever they stand. */
function takeNext(v: usize, length: u32): usize {
  return take(v, cursorOf(v), length);
}

/** The bytes that the two words at `field`, offset and length, name. */
function takeSpan(v: usize, field: usize): usize {
  return take(v, load<u32>(field), load<u32>(field, 4));
}

/** A template of `length` bytes at `offset`. */
function checkTemplate(v: usize, offset: u32, length: u32): void {
  if (length & 3) bad(v);
  let at = take(v, offset, length);
  if (!at) return;
  let end = at + length;
  while (at < end && good(v)) {
    let op: u32 = load<u8>(at);
    let argument: u32 = load<u8>(at, 1);
    let field: u32 = load<u16>(at, 2);
    let bytes = op == PART_TEXT || op == PART_COOKIE || op == PART_ARGUMENT ? field : 0;
    if (op == PART_HEADER) {
      if (field >= load<u32>(v, V_SLOTS) || field < FACTS) bad(v);
    } else if (op == PART_VARIABLE) {
      if (argument >= VARIABLE_COUNT) bad(v);
    } else if (op == PART_GROUP) {
      if (argument > 9) bad(v);
    } else if (op > PART_GROUP) {
      bad(v);
    }
    if (pad4(bytes) > <u32>(end - at) - 4) {
      bad(v);
      return;
    }
    at += 4 + pad4(bytes);
  }
}

/** Settings of `length` bytes at `offset`. */
function checkSettings(v: usize, offset: u32, length: u32): void {
  let end = offset + length;
  if (length > MAX_IMAGE || cursorOf(v) != offset || length & 3) bad(v);
  while (good(v) && cursorOf(v) < end) {
    let head = takeNext(v, SETTING_HEADER);
    if (!head) return;
    let tag: u32 = load<u16>(head);
    let size = load<u32>(head, 4);
    let known = (tag & ~TAG_MUST_UNDERSTAND) - 1 < TAG_LAST_HEADER_CHANGE;
    if (!known && tag & TAG_MUST_UNDERSTAND) {
      store<i32>(v, E_UNSUPPORTED, V_STATUS);
      return;
    }
    if (size & 3 || size > MAX_IMAGE) bad(v);
    if (!known) {
      takeNext(v, size);
      continue;
    }
    let value = takeNext(v, 4);
    if (!value) return;
    let name = load<u32>(value);
    if (name > size || pad4(name) + 4 > size) {
      bad(v);
      return;
    }
    takeNext(v, name);
    checkTemplate(v, cursorOf(v), size - 4 - pad4(name));
  }
  if (cursorOf(v) != end) bad(v);
}

function checkAction(v: usize, at: usize): void {
  let kind: u32 = load<u8>(at);
  let status: u32 = load<u16>(at, A_STATUS);
  let rewrite: u32 = load<u8>(at, A_REWRITE);
  if (kind == ACTION_PROXY) {
    if (rewrite > REWRITE_PATH || load<u32>(at, A_UPSTREAM) >= load<u32>(v, V_UPSTREAMS)) bad(v);
  } else if (kind != ACTION_REDIRECT && kind != ACTION_RETURN) {
    bad(v);
  } else if (rewrite || status < 100 || status > 999) {
    bad(v);
  }
  checkTemplate(v, load<u32>(at, A_TEMPLATE), load<u32>(at, A_TEMPLATE_LENGTH));
  if (kind == ACTION_RETURN) takeSpan(v, at + A_TYPE);
  checkSettings(v, load<u32>(at, A_SETTINGS), load<u32>(at, A_SETTINGS_LENGTH));
}

function checkOutcome(v: usize, offset: u32): void {
  let at = take(v, offset, SPLIT_HEADER);
  if (!at) return;
  if (load<u8>(at) != SPLIT) {
    if (takeNext(v, ACTION_SIZE - SPLIT_HEADER)) checkAction(v, at);
    return;
  }
  let count: u32 = load<u16>(at, 2);
  let total = load<u32>(at, SPLIT_TOTAL);
  if (!count || !total || total > MAX_SPLIT_TOTAL) bad(v);
  let entries = takeNext(v, count * SPLIT_ENTRY);
  let reached: u32 = 0;
  for (let i: u32 = 0; i < count && good(v); i++) {
    let entry = entries + i * SPLIT_ENTRY;
    if (load<u32>(entry) < reached) bad(v);
    reached = load<u32>(entry);
    let action = take(v, load<u32>(entry, 4), ACTION_SIZE);
    if (action) checkAction(v, action);
  }
  if (reached != total) bad(v);
}

function checkRegex(v: usize, offset: u32, length: u32): void {
  let at = take(v, offset, length);
  if (!at) return;
  if (!regexValidate(at, length) || regexScratchSize(at) > load<u32>(<usize>load<u32>(v), S_SCRATCH)) bad(v);
}

function checkCondition(v: usize, at: usize): void {
  let source: u32 = load<u8>(at);
  let test: u32 = load<u8>(at, C_TEST);
  if (!source || source > SOURCE_VARIABLE || !test || test > TEST_EMPTY || load<u8>(at, C_NEGATED) > 1) bad(v);
  if (load<u8>(at, C_VARIABLE) >= <u8>VARIABLE_COUNT) bad(v);
  if (source == SOURCE_HEADER) {
    if (load<u32>(at, C_NAME) >= load<u32>(v, V_SLOTS) || load<u32>(at, C_NAME) < FACTS) bad(v);
  } else if (source != SOURCE_VARIABLE) {
    takeSpan(v, at + C_NAME);
    // Cookies are read from the slot that the header of the image names.
    if (source == SOURCE_COOKIE && !load<u32>(<usize>load<u32>(v), S_COOKIE)) bad(v);
  }
  if (test == TEST_REGEX) checkRegex(v, load<u32>(at, C_OPERAND), load<u32>(at, C_OPERAND_LENGTH));
  else if (test != TEST_EMPTY) takeSpan(v, at + C_OPERAND);
}

function checkMatch(v: usize, at: usize): void {
  let count = load<u32>(at);
  if (count > MAX_ROUTES) {
    bad(v);
    return;
  }
  let conditions = take(v, load<u32>(at, M_CONDITIONS), count * CONDITION_SIZE);
  for (let i: u32 = 0; i < count && good(v); i++) checkCondition(v, conditions + i * CONDITION_SIZE);
  checkOutcome(v, load<u32>(at, M_OUTCOME));
}

/** A need list; none where the offset is 0. */
function checkNeed(v: usize, offset: u32): void {
  if (!offset) return;
  let at = take(v, offset, 4);
  if (!at) return;
  let count = load<u32>(at);
  let slots = load<u32>(v, V_SLOTS);
  if (!count || count > slots || !takeNext(v, count << 2)) {
    bad(v);
    return;
  }
  for (let i: u32 = 0; i < count; i++) {
    let slot = load<u32>(at + 4 + ((<usize>i) << 2));
    if (slot >= slots || (i && slot <= load<u32>(at + ((<usize>i) << 2)))) bad(v);
  }
}

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

function checkTextList(v: usize, offset: u32, count: u32): void {
  if (offset != cursorOf(v)) bad(v);
  for (let i: u32 = 0; i < count && good(v); i++) {
    let at = takeNext(v, 4);
    if (at) takeNext(v, load<u32>(at));
  }
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
 * Checks the compiled hash key of a peer set (compile/key.ts has the layout); 0 bytes stand for no key. OK, or what is
 * wrong.
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
  if (cursorOf(v) != length) bad(v);
  let status = load<i32>(v, V_STATUS);
  free(v);
  return status;
}

/** Checks `length` bytes, which must be one shard image: OK, or the status that says what is wrong. */
export function validateShard(image: usize, length: u32): i32 {
  if (length < S_HEADER_SIZE) return E_TRUNCATED;
  if (load<u32>(image) != SHARD_MAGIC) return E_MAGIC;
  if (load<u32>(image, S_VERSION) != SHARD_VERSION) return E_VERSION;
  let size = load<u32>(image, S_SIZE);
  if (size > length) return E_TRUNCATED;
  if (size != length || size > MAX_IMAGE) return E_CORRUPT;
  if (checksum64(image + 16, size - 16) != load<u64>(image, S_CHECKSUM)) return E_CHECKSUM;
  let v = alloc(32);
  if (!v) return E_MEMORY;
  memory.fill(v, 0, 32);
  store<u32>(v, <u32>image);
  store<u32>(v, size, V_SIZE);
  store<u32>(v, S_HEADER_SIZE, V_CURSOR);
  checkBody(v);
  let status = load<i32>(v, V_STATUS);
  free(v);
  return status;
}
