/** Templates, value sources and settings of a source, written into the actions section. */
import {
  FACT_ADDRESS,
  FACT_METHOD,
  FACT_PORT,
  FACT_PROTOCOL,
  FACTS,
  NONE,
  PART_ARGUMENT,
  PART_COOKIE,
  PART_GROUP,
  PART_HEADER,
  PART_TEXT,
  PART_VARIABLE,
  pad4,
  SETTING_HEADER,
  TAG_LAST_HEADER_CHANGE,
  TAG_MUST_UNDERSTAND,
  VAR_HTTP2,
  VAR_REMOTE_ADDR,
  VAR_REMOTE_PORT,
  VAR_REQUEST,
  VAR_REQUEST_METHOD,
  VAR_SERVER_PROTOCOL,
  VARIABLE_COUNT,
} from "../image/layout";
import { E_LIMIT, E_SOURCE } from "../status";
import {
  B_HEADER_USES,
  B_HEADERS,
  fail,
  here,
  noteNeed,
  patch,
  put,
  putBytes,
  readBelow,
  readText,
  readU32,
  reserve,
  status,
  textLength,
} from "./builder";
import { COOKIE, COOKIE_LENGTH, internText, textAddress, textCount, textSize } from "./text-table";

/** The value slot of a header (lower-case name); it is noted as looked at by the route at hand. */
export function useHeader(b: usize, name: usize, length: u32): u32 {
  let headers: usize = load<u32>(b, B_HEADERS);
  if (!length) fail(b, E_SOURCE);
  // A first walk over a shard source has no table yet: headers are numbered in the order of the image.
  if (!headers || status(b)) {
    store<u32>(b, load<u32>(b, B_HEADER_USES) + 1, B_HEADER_USES);
    return FACTS;
  }
  let index = internText(headers, name, length);
  if (index == NONE) {
    fail(b, E_LIMIT);
    return FACTS;
  }
  noteNeed(b, index + FACTS);
  return index + FACTS;
}

/** As useHeader, for the header that carries the cookies. */
export function useCookies(b: usize): u32 {
  return useHeader(b, COOKIE, COOKIE_LENGTH);
}

/** Notes what a variable reads beyond host, target and scheme. */
export function useVariable(b: usize, variable: u32): void {
  if (variable == VAR_REMOTE_ADDR) noteNeed(b, FACT_ADDRESS);
  else if (variable == VAR_REMOTE_PORT) noteNeed(b, FACT_PORT);
  else if (variable == VAR_REQUEST_METHOD) noteNeed(b, FACT_METHOD);
  else if (variable == VAR_SERVER_PROTOCOL || variable == VAR_HTTP2) noteNeed(b, FACT_PROTOCOL);
  else if (variable == VAR_REQUEST) {
    noteNeed(b, FACT_METHOD);
    noteNeed(b, FACT_PROTOCOL);
  }
}

/** Reads a template (u32 part count; per part u32 op, u32 argument, text) and writes it; returns its length in bytes. */
export function compileTemplate(b: usize): u32 {
  let start = here(b);
  let count = readU32(b);
  for (let i: u32 = 0; i < count && !status(b); i++) {
    let op = readBelow(b, PART_GROUP + 1);
    let argument = readBelow(b, 256);
    let text = readText(b);
    let length = textLength(b);
    let field = length;
    if (op == PART_HEADER) {
      field = useHeader(b, text, length);
      length = 0;
    } else if (op == PART_COOKIE) {
      useCookies(b);
    } else if (op == PART_VARIABLE) {
      if (argument >= VARIABLE_COUNT || length) fail(b, E_SOURCE);
      useVariable(b, argument);
    } else if (op == PART_GROUP) {
      if (argument > 9 || length) fail(b, E_SOURCE);
    }
    // A name can't be empty, and a length has 16 bits.
    if (field > 0xffff) fail(b, E_LIMIT);
    if ((op == PART_COOKIE || op == PART_ARGUMENT) && !length) fail(b, E_SOURCE);
    if (op == PART_TEXT && !length) continue;
    put(b, op | (argument << 8) | (field << 16));
    putBytes(b, text, length);
  }
  return here(b) - start;
}

/** Reads settings (u32 count; per setting u32 tag, u32 flags, text name, template) and writes them. */
export function compileSettings(b: usize): void {
  let count = readU32(b);
  for (let i: u32 = 0; i < count && !status(b); i++) {
    let tag = readBelow(b, TAG_LAST_HEADER_CHANGE + 1);
    let flags = readBelow(b, 0x10000);
    if (!tag) fail(b, E_SOURCE);
    let head = reserve(b, SETTING_HEADER);
    let name = readText(b);
    let length = textLength(b);
    put(b, length);
    putBytes(b, name, length);
    let value = compileTemplate(b);
    patch(b, head, tag | TAG_MUST_UNDERSTAND | (flags << 16));
    patch(b, head + 4, 4 + pad4(length) + value);
  }
}

/** Writes one text and stores its offset and length in two words of the output. */
export function putTextAt(b: usize, field: usize, text: usize, length: u32): void {
  patch(b, field, putBytes(b, text, length));
  patch(b, field + 4, length);
}

/** Writes each text of a table: u32 length, text. */
export function putTextList(b: usize, table: usize): void {
  for (let i: u32 = 0; i < textCount(table) && !status(b); i++) {
    put(b, textSize(table, i));
    putBytes(b, textAddress(table, i), textSize(table, i));
  }
}
