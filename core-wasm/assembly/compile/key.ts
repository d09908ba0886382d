/** Compiles the hash key of a peer set: a template with the headers it reads. Layout: image/layout.ts. */
import {
  FACTS,
  K_COOKIE,
  K_HEADER_COUNT,
  K_NEED,
  K_SIZE,
  K_STICKY,
  K_STICKY_LENGTH,
  K_TEMPLATE,
  K_TEMPLATE_LENGTH,
  KEY_HEADER,
  MAX_KEY_SLOTS,
} from "../image/layout";
import { E_MEMORY, E_SOURCE } from "../status";
import {
  atEnd,
  B_HEADERS,
  clearNeed,
  cursor,
  fail,
  here,
  mark,
  mute,
  patch,
  putNeed,
  reserve,
  seek,
  status,
} from "./builder";
import { compileTemplate, putTextList } from "./template";
import { cookieSlot, newTextTable, textCount } from "./text-table";

/**
 * Compiles the template that the builder `b` stands on, and the sticky one that may follow it; returns the length of its output, or a negative status.
 */
export function compileKey(b: usize): i32 {
  let headers = newTextTable(MAX_KEY_SLOTS - FACTS);
  if (!headers) fail(b, E_MEMORY);
  store<u32>(b, <u32>headers, B_HEADERS);
  if (status(b)) return status(b);
  let start = cursor(b);
  // The first walk finds the headers, which stand before the template.
  mute(b, true);
  clearNeed(b);
  compileTemplate(b);
  if (!atEnd(b)) compileTemplate(b);
  if (!atEnd(b)) fail(b, E_SOURCE);
  mute(b, false);
  reserve(b, KEY_HEADER);
  putTextList(b, headers);
  patch(b, K_HEADER_COUNT, textCount(headers));
  patch(b, K_COOKIE, cookieSlot(headers));
  patch(b, K_NEED, putNeed(b));
  seek(b, start);
  let template = here(b);
  patch(b, K_TEMPLATE, template);
  patch(b, K_TEMPLATE_LENGTH, compileTemplate(b));
  if (!atEnd(b)) {
    patch(b, K_STICKY, here(b));
    patch(b, K_STICKY_LENGTH, compileTemplate(b));
  }
  mark(b, K_SIZE);
  return status(b) ? status(b) : <i32>here(b);
}
