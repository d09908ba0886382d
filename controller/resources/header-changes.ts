import type { HeaderChange, Template } from "../../core-wasm/binding/source.js";
import type { Field } from "./field.js";
import { readHeaderName } from "./header-name.js";
import { quote } from "./problem.js";
import type { Shape } from "./shape.js";
import { parseTemplate, type TemplateRules, templatePattern } from "./template.js";
import { CONDITION_VARIABLES } from "./variables.js";

/** What proxy_ignore_headers can name. */
const IGNORABLE_HEADERS = [
  "X-Accel-Redirect",
  "X-Accel-Expires",
  "X-Accel-Limit-Rate",
  "X-Accel-Buffering",
  "X-Accel-Charset",
  "Expires",
  "Cache-Control",
  "Set-Cookie",
  "Vary",
];

/** Headers that one action changes in one way. */
const MAX_HEADERS = 64;
const VALUE_RULES: TemplateRules = { variables: CONDITION_VARIABLES, bareNames: false };
const HEADER_VALUE: Shape = { patterns: [/^[^\x00-\x08\x0a-\x1f\x7f]*$/, templatePattern(VALUE_RULES)] };

/** Header changes of `action.proxy`: requestHeaders first, then responseHeaders, in written order. */
export function readProxyHeaders(proxy: Field): HeaderChange[] {
  const request = proxy.get("requestHeaders");
  const response = proxy.get("responseHeaders");
  request.isMap();
  response.isMap();
  request.warnUnknown(["pass", "set"]);
  response.warnUnknown(["hide", "pass", "ignore", "add"]);
  const changes: HeaderChange[] = [];
  if (request.get("pass").boolean() === false) changes.push({ op: "drop-request" });
  for (const item of request.get("set").items(MAX_HEADERS)) {
    const header = readHeader(item, ["name", "value"]);
    if (header !== undefined) changes.push({ op: "set-request", ...header });
  }
  for (const name of readNames(response.get("hide"))) changes.push({ op: "hide-response", name });
  for (const name of readNames(response.get("pass"))) changes.push({ op: "pass-response", name });
  for (const item of response.get("ignore").items(MAX_HEADERS)) {
    const name = item.required() ? item.choice(IGNORABLE_HEADERS) : undefined;
    if (name !== undefined) changes.push({ op: "ignore-response", name });
  }
  for (const item of response.get("add").items(MAX_HEADERS)) {
    const header = readHeader(item, ["name", "value", "always"]);
    const always = item.get("always").boolean() ?? false;
    if (header !== undefined) changes.push({ op: "add-response", ...header, always });
  }
  return changes;
}

/** `headers` of a return or errorPages answer. */
export function readAnswerHeaders(headers: Field): HeaderChange[] {
  const changes: HeaderChange[] = [];
  for (const item of headers.items(MAX_HEADERS)) {
    const header = readHeader(item, ["name", "value"]);
    if (header !== undefined) changes.push({ op: "add-response", ...header, always: true });
  }
  return changes;
}

function readHeader(item: Field, fields: readonly string[]): { name: string; value: Template } | undefined {
  if (!item.isRequiredMap()) return undefined;
  item.warnUnknown(fields);
  const name = readHeaderName(item.get("name"));
  const value = readHeaderValue(item.get("value"));
  return name === undefined || value === undefined ? undefined : { name, value };
}

function readNames(list: Field): string[] {
  return list
    .items(MAX_HEADERS)
    .map((item) => readHeaderName(item))
    .filter((name) => name !== undefined);
}

/** Absent and empty are the empty value, which takes a header away. */
function readHeaderValue(field: Field): Template | undefined {
  const text = field.present ? field.shaped(HEADER_VALUE).text() : "";
  if (text === undefined) return undefined;
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text)) {
    field.error("HEADER_INVALID", `control characters are not allowed in ${quote(text)}`);
    return undefined;
  }
  return parseTemplate(text, VALUE_RULES, field);
}
