/** Checks the rules of an image: conditions, outcomes, templates, settings, need lists and texts. */
import { regexScratchSize, regexValidate } from "../regex/regex";
import { E_UNSUPPORTED } from "../status";
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
  M_CONDITIONS,
  M_OUTCOME,
  MAX_IMAGE,
  MAX_ROUTES,
  MAX_SPLIT_TOTAL,
  PART_ARGUMENT,
  PART_COOKIE,
  PART_GROUP,
  PART_HEADER,
  PART_TEXT,
  PART_VARIABLE,
  pad4,
  REWRITE_PATH,
  S_COOKIE,
  S_SCRATCH,
  SETTING_HEADER,
  SOURCE_COOKIE,
  SOURCE_HEADER,
  SOURCE_VARIABLE,
  SPLIT,
  SPLIT_ENTRY,
  SPLIT_HEADER,
  SPLIT_TOTAL,
  TAG_LAST,
  TAG_MUST_UNDERSTAND,
  TEST_EMPTY,
  TEST_REGEX,
  VARIABLE_COUNT,
} from "./layout";
import { bad, cursorOf, good, take, takeNext, takeSpan, V_SLOTS, V_STATUS, V_UPSTREAMS } from "./validate-cursor";

/** A template of `length` bytes at `offset`. */
export function checkTemplate(v: usize, offset: u32, length: u32): void {
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
export function checkSettings(v: usize, offset: u32, length: u32): void {
  let end = offset + length;
  if (length > MAX_IMAGE || cursorOf(v) != offset || length & 3) bad(v);
  while (good(v) && cursorOf(v) < end) {
    let head = takeNext(v, SETTING_HEADER);
    if (!head) return;
    let tag: u32 = load<u16>(head);
    let size = load<u32>(head, 4);
    let known = (tag & ~TAG_MUST_UNDERSTAND) - 1 < TAG_LAST;
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

export function checkAction(v: usize, at: usize): void {
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

export function checkOutcome(v: usize, offset: u32): void {
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

export function checkRegex(v: usize, offset: u32, length: u32): void {
  let at = take(v, offset, length);
  if (!at) return;
  if (!regexValidate(at, length) || regexScratchSize(at) > load<u32>(<usize>load<u32>(v), S_SCRATCH)) bad(v);
}

export function checkCondition(v: usize, at: usize): void {
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

export function checkMatch(v: usize, at: usize): void {
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
export function checkNeed(v: usize, offset: u32): void {
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

export function checkTextList(v: usize, offset: u32, count: u32): void {
  if (offset != cursorOf(v)) bad(v);
  for (let i: u32 = 0; i < count && good(v); i++) {
    let at = takeNext(v, 4);
    if (at) takeNext(v, load<u32>(at));
  }
}
