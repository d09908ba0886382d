import type { Action, PathRule, Rewrite, Template } from "../../core-wasm/binding/source.js";
import type { Field } from "./field.js";
import { readAnswerHeaders, readProxyHeaders } from "./header-changes.js";
import { quote } from "./problem.js";
import { hasShape, type Shape } from "./shape.js";
import { parseTemplate, type TemplateRules, templatePattern } from "./template.js";
import { CONDITION_VARIABLES, NO_VARIABLES, REDIRECT_VARIABLES } from "./variables.js";

/** What an action refers to outside of itself. */
export interface ActionContext {
  /** Upstream identities by their name in the object. */
  upstreamKeys: ReadonlyMap<string, string>;
  /** The path of the route, if it could be read; rewritePath depends on it. */
  path?: { rule: PathRule; groups: number };
}

const KINDS = ["pass", "redirect", "return", "proxy"] as const;
const REDIRECT_CODES = [301, 302, 307, 308];
const MAX_BODY = 65_535;
const URL_RULES: TemplateRules = { variables: REDIRECT_VARIABLES, bareNames: false };
const BODY_RULES: TemplateRules = { variables: CONDITION_VARIABLES, bareNames: false };
const REWRITE_RULES: TemplateRules = { variables: NO_VARIABLES, bareNames: false };
const ABSOLUTE_URL = /^(https?|\$\{scheme\}|\$\{http_x_forwarded_proto\}):\/\/./;

const REDIRECT_CODE: Shape = { ranges: REDIRECT_CODES.map((code) => [code, code] as const) };
const RETURN_CODE: Shape = {
  ranges: [
    [200, 299],
    [400, 599],
  ],
};
/** RFC 9110, section 8.3.1. */
const MEDIA_TYPE: Shape = {
  patterns: [/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+( *; *[\w-]+=("[ !#-[\]-~]*"|[\w.+-]+))*$/],
};
const BODY: Shape = { patterns: [templatePattern(BODY_RULES)] };
const URL: Shape = { patterns: [ABSOLUTE_URL, /^[\x21-\x7e]*$/, templatePattern(URL_RULES)] };
const REWRITE: Shape = {
  patterns: [/^\/(?:[!"$&->@-~]|%[0-9a-fA-F]{2})*$/, templatePattern({ ...REWRITE_RULES, groups: 9 })],
};

/** An action: exactly one of pass, redirect, return, proxy. */
export function readAction(field: Field, context: ActionContext): Action | undefined {
  if (!field.isRequiredMap()) return undefined;
  field.warnUnknown(KINDS);
  const kind = field.exactlyOne(KINDS);
  if (kind === undefined) return undefined;
  const value = field.get(kind);
  switch (kind) {
    case "pass": {
      const upstream = readUpstream(value, context);
      return upstream === undefined ? undefined : { kind: "proxy", upstream };
    }
    case "proxy":
      return readProxy(value, context);
    case "redirect":
      return readRedirect(value);
    case "return":
      return readReturn(value);
  }
}

/** A redirect with an absolute url and one of the codes 301 (default), 302, 307, 308. */
export function readRedirect(field: Field): Action | undefined {
  if (!field.isMap()) return undefined;
  field.warnUnknown(["url", "code"]);
  const status = readRedirectCode(field.get("code"));
  const location = readUrl(field.get("url"));
  return location === undefined ? undefined : { kind: "redirect", status, location };
}

/** A redirect status; 301 if absent. */
export function readRedirectCode(field: Field): number {
  const code = field.shaped(REDIRECT_CODE).integer(0, 999);
  if (code === undefined || REDIRECT_CODES.includes(code)) return code ?? 301;
  field.error("STATUS_INVALID", `${code} is none of ${REDIRECT_CODES.join(", ")}`);
  return 301;
}

/** An answer that the proxy gives itself: a 2xx, 4xx or 5xx code, a type, a body, headers. */
export function readReturn(field: Field, defaultType = "text/plain"): Action | undefined {
  if (!field.isMap()) return undefined;
  field.warnUnknown(["code", "type", "body", "headers"]);
  const code = field.get("code").shaped(RETURN_CODE).integer(0, 999) ?? 200;
  if (code < 200 || code > 599 || (code >= 300 && code < 400)) {
    field.get("code").error("STATUS_INVALID", `${code} is not from 200 to 299 or from 400 to 599`);
  }
  const type = field.get("type").shaped(MEDIA_TYPE).line() ?? defaultType;
  if (!hasShape(type, MEDIA_TYPE)) field.get("type").error("HEADER_INVALID", `${quote(type)} is no media type`);
  const body = readBody(field.get("body"));
  const headers = readAnswerHeaders(field.get("headers"));
  if (body === undefined) return undefined;
  return { kind: "return", status: code, contentType: type, body, ...(headers.length > 0 && { headers }) };
}

function readProxy(field: Field, context: ActionContext): Action | undefined {
  if (!field.isMap()) return undefined;
  field.warnUnknown(["upstream", "rewritePath", "requestHeaders", "responseHeaders"]);
  const upstream = readUpstream(field.get("upstream"), context);
  const rewrite = readRewrite(field.get("rewritePath"), context);
  const headers = readProxyHeaders(field);
  if (upstream === undefined) return undefined;
  return { kind: "proxy", upstream, ...(rewrite && { rewrite }), ...(headers.length > 0 && { headers }) };
}

function readUpstream(field: Field, context: ActionContext): string | undefined {
  const name = field.requiredLine();
  if (name === undefined) return undefined;
  const key = context.upstreamKeys.get(name);
  if (key === undefined) field.error("UPSTREAM_UNKNOWN", `there is no upstream ${quote(name)} in spec.upstreams`);
  return key;
}

/** On a prefix route the text replaces the prefix; on others it is the whole path, with groups on a regex route. */
function readRewrite(field: Field, context: ActionContext): Rewrite | undefined {
  const text = field.shaped(REWRITE).line();
  if (text === undefined || context.path === undefined) return undefined;
  const { rule, groups } = context.path;
  if (!text.startsWith("/")) {
    field.error("PATH_INVALID", `${quote(text)} must start with /`);
    return undefined;
  }
  if (/[^\x21-\x7e]|[?#]|%(?![0-9a-fA-F]{2})/.test(text)) {
    const message = `${quote(text)} goes to the upstream as written`;
    field.error("PATH_INVALID", `${message}: percent-encode spaces, ?, #, % and what is not ASCII`);
    return undefined;
  }
  const known = rule.kind === "regex" ? { groups } : {};
  const template = parseTemplate(text, { ...REWRITE_RULES, ...known }, field);
  if (template === undefined) return undefined;
  return rule.kind === "prefix" ? { kind: "prefix", text } : { kind: "path", template };
}

function readUrl(field: Field): Template | undefined {
  const text = field.shaped(URL).requiredLine();
  if (text === undefined) return undefined;
  if (!ABSOLUTE_URL.test(text)) {
    const starts = `http://, https://, \${scheme}:// or \${http_x_forwarded_proto}://`;
    field.error("URL_INVALID", `${quote(text)} must start with ${starts}`);
    return undefined;
  }
  if (/[^\x21-\x7e]/.test(text)) {
    field.error("URL_INVALID", `${quote(text)}: percent-encode spaces and what is not ASCII`);
    return undefined;
  }
  return parseTemplate(text, URL_RULES, field);
}

function readBody(field: Field): Template | undefined {
  const text = field.required() ? field.shaped(BODY).text(MAX_BODY) : undefined;
  if (text === undefined) return undefined;
  return parseTemplate(text, BODY_RULES, field);
}
