/** Templates and the changes of headers, as parts of an image. */
import {
  MAX_PART,
  PART_ARGUMENT,
  PART_COOKIE,
  PART_GROUP,
  PART_HEADER,
  PART_TEXT,
  PART_VARIABLE,
  SETTING_HEADER,
  TAG_MUST_UNDERSTAND,
} from "../../assembly/image/layout.js";
import type { HeaderChange, Template, TemplatePart } from "../source.js";
import type { Compilation } from "./compilation.js";
import { ALWAYS, HEADER_CHANGES } from "./numbers.js";

/** Longest text of one part, in characters: at most four bytes each, of which a part holds 65,535. */
const LONGEST_TEXT = 16_000;
const LAST_GROUP = 9;

/** Writes a part: u8 op, u8 argument, u16 field; a text follows where the op has one. */
function putText(c: Compilation, op: number, text: string): void {
  const { out } = c;
  const head = out.reserve(4);
  const size = out.text(text);
  if (size > MAX_PART) throw c.beyond(`a name or text of more than ${MAX_PART} bytes`);
  out.words[head >> 2] = op | (size << 16);
}

/** A literal longer than a part may be is written as several. */
function putLiteral(c: Compilation, text: string): void {
  if (text === "") return;
  if (text.length <= LONGEST_TEXT) {
    putText(c, PART_TEXT, text);
    return;
  }
  const characters = [...text];
  for (let i = 0; i < characters.length; i += LONGEST_TEXT) {
    putText(c, PART_TEXT, characters.slice(i, i + LONGEST_TEXT).join(""));
  }
}

function putPart(c: Compilation, part: TemplatePart): void {
  if (typeof part === "string") {
    putLiteral(c, part);
    return;
  }
  switch (part.kind) {
    case "header":
      c.out.put(PART_HEADER | (c.useHeader(part.name) << 16));
      return;
    case "variable":
      c.out.put(PART_VARIABLE | (c.useVariable(part.name) << 8));
      return;
    case "group":
      if (!(Number.isInteger(part.index) && part.index >= 0 && part.index <= LAST_GROUP)) {
        throw c.invalid(`there is no group ${part.index}`);
      }
      c.out.put(PART_GROUP | (part.index << 8));
      return;
    default:
      if (part.name === "") throw c.invalid(`a ${part.kind} without a name`);
      if (part.kind === "cookie") c.useCookies();
      putText(c, part.kind === "cookie" ? PART_COOKIE : PART_ARGUMENT, part.name);
  }
}

/** Writes a template; returns its length in bytes. It stands where `out.length` was before. */
export function putTemplate(c: Compilation, template: Template): number {
  const start = c.out.length;
  for (const part of template) putPart(c, part);
  return c.out.length - start;
}

const NO_VALUE: Template = [];

/** Writes a setting that a host must understand: type, length, value. */
export function putSetting(c: Compilation, tag: number, name: string, template: Template, flags = 0): void {
  const { out } = c;
  const head = out.reserve(SETTING_HEADER + 4);
  const start = head + SETTING_HEADER;
  const nameSize = out.text(name);
  out.words[start >> 2] = nameSize;
  putTemplate(c, template);
  out.words[head >> 2] = tag | TAG_MUST_UNDERSTAND | (flags << 16);
  out.words[(head >> 2) + 1] = out.length - start;
}

/** Writes header changes as settings. */
export function putHeaderChanges(c: Compilation, changes: readonly HeaderChange[]): void {
  for (const change of changes) {
    const name = "name" in change ? change.name : "";
    const value = "value" in change ? change.value : NO_VALUE;
    putSetting(c, HEADER_CHANGES.indexOf(change.op), name, value, "always" in change && change.always ? ALWAYS : 0);
  }
}
