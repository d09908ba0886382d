/** Settings of a decision: header changes and error pages, with their texts filled in. Layout: ABI.md, "Settings". */
import {
  PART_TEXT,
  pad4,
  SETTING_HEADER,
  TAG_ERROR_HEADER,
  TAG_ERROR_REDIRECT,
  TAG_ERROR_RETURN,
} from "../assembly/image/layout.js";
import { ALWAYS, HEADER_CHANGES } from "./compile/numbers.js";
import { type Context, RENDERED, SETTINGS, SETTINGS_LENGTH } from "./context.js";
import type { Core } from "./core.js";
import type { FilledErrorPage, FilledHeaderChange } from "./decision.js";

/** What a decision carries besides itself. */
export interface Settings {
  headers: FilledHeaderChange[];
  /** Undefined where there are none. */
  errorPages: FilledErrorPage[] | undefined;
}

const NONE: Settings = { headers: [], errorPages: undefined };
const TAG = 0x7fff;
/** Status of three digits, or 0 for that of the answer; statuses that the page stands for; content type. */
const ERROR_PAGE = /^([1-9]\d{2}|0) (\d{3}(?:,\d{3})*) ?([^\x00-\x1f\x7f]*)$/;

/** Settings of the last decision of `context`. Their texts are byte strings. */
export function readSettings(core: Core, context: Context): Settings {
  const length = context.word(SETTINGS_LENGTH);
  if (!length) return NONE;
  const headers: FilledHeaderChange[] = [];
  let errorPages: FilledErrorPage[] | undefined;
  const start = context.word(SETTINGS);
  for (let at = start, index = 0; at < start + length; index++) {
    const head = context.words[at >> 2] >>> 0;
    const tag = head & TAG;
    const name = context.latin1(at + SETTING_HEADER + 4, context.words[(at + SETTING_HEADER) >> 2]);
    const op = HEADER_CHANGES[tag];
    if (op === "set-request") {
      headers.push({ op, name, value: textOf(core, context, at, index) });
    } else if (op === "add-response") {
      const always = ((head >>> 16) & ALWAYS) !== 0;
      headers.push({ op, name, value: textOf(core, context, at, index), always });
    } else if (op === "drop-request") {
      headers.push({ op });
    } else if (op) {
      headers.push({ op, name });
    } else if (tag >= TAG_ERROR_RETURN && tag <= TAG_ERROR_HEADER) {
      errorPages ??= [];
      addErrorPage(errorPages, tag, name, textOf(core, context, at, index));
    }
    at += SETTING_HEADER + context.words[(at + 4) >> 2];
  }
  return { headers, errorPages };
}

function addErrorPage(pages: FilledErrorPage[], tag: number, name: string, value: string): void {
  if (tag === TAG_ERROR_HEADER) {
    const last = pages.at(-1);
    if (last?.kind === "return") last.headers.push({ op: "add-response", name, value, always: true });
    return;
  }
  // The core does not look into names: those of an image from elsewhere may be anything.
  const [, status, list, contentType] = ERROR_PAGE.exec(name) ?? [];
  if (status === undefined) return;
  const codes = list.split(",").map(Number);
  if (tag === TAG_ERROR_REDIRECT) {
    pages.push({ codes, kind: "redirect", status: Number(status), location: value });
    return;
  }
  const kept = status === "0" ? {} : { status: Number(status) };
  pages.push({ codes, kind: "return", ...kept, contentType, body: value, headers: [] });
}

/** The text of setting `index` at `at`. One that is the same for each request is read where it stands. */
function textOf(core: Core, context: Context, at: number, index: number): string {
  const { words } = context;
  const value = at + SETTING_HEADER;
  const template = value + 4 + pad4(words[value >> 2]);
  const end = value + words[(at + 4) >> 2];
  if (template === end) return "";
  const part = words[template >> 2];
  const size = part >>> 16;
  const plain = (words[at >> 2] & TAG) === TAG_ERROR_RETURN && (part & 0xff) === PART_TEXT;
  if (plain && template + 4 + pad4(size) === end) return context.latin1(template + 4, size);
  const length = core.exports.render_setting(context.pointer, index);
  return length > 0 ? context.latin1(context.word(RENDERED), length) : "";
}
