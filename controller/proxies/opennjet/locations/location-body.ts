/** Actions as bodies of locations. */
import type { Action, HeaderChange, PathRule, Template } from "../../../../core-wasm/binding/source.js";
import type { UpstreamTransport } from "../../../model/types.js";
import { UnsupportedError } from "../../plan-step.js";
import {
  literalText,
  quotedHeaderName,
  quotedHeaderValue,
  quotedLocation,
  quotedTemplate,
  quotedText,
  timeText,
  wholeNumber,
  word,
} from "./configuration-text.js";
import { directive, UPSTREAM_ADDRESSES } from "./directives.js";
import { routeTree } from "./paths.js";
import { capturingText, literalPattern } from "./pattern-text.js";
import { shown } from "./shown.js";

type ProxyAction = Extract<Action, { kind: "proxy" }>;

/** An object can't set these: the proxy alone frames messages. */
const FRAMING = new Set(
  "connection keep-alive proxy-connection transfer-encoding upgrade http2-settings te proxy-authenticate proxy-authorization proxy-authentication-info content-length trailer expect".split(
    " ",
  ),
);
/** What peers are told, as on stock NGINX; parameters as they stand in configuration text. */
const TOLD: readonly (readonly [name: string, value: string])[] = [
  ["Host", "$http_host"],
  ["X-Request-ID", "$njet_kic_request_id"],
  ["X-Real-IP", "$remote_addr"],
  ["X-Forwarded-For", "$remote_addr"],
  ["X-Forwarded-Proto", "$scheme"],
  ["X-Forwarded-Host", "$http_host"],
  ["X-Forwarded-Port", "$server_port"],
  ["Keep-Alive", '""'],
  ["Proxy-Connection", '""'],
  ["Proxy-Authenticate", '""'],
  ["Proxy-Authorization", '""'],
  ["HTTP2-Settings", '""'],
  ["Trailer", '""'],
  ["Forwarded", '""'],
];
/** Headers of peers without effect on the proxy. */
const IGNORED = {
  proxy:
    "X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset Expires Cache-Control Set-Cookie Vary",
  grpc: "X-Accel-Redirect X-Accel-Charset",
} as const;
/** Bytes of a rewritten path that NGINX sends as they are, whether it escapes the path or not. */
const SAFE_PATH = /^[A-Za-z0-9/_.~!$&'()*+,;=:@-]*$/;
const SET_COOKIE_PATH = "/";

/** What a location of a proxied route needs to know besides its action. */
export interface ProxyPlace {
  /** What `$proxy_upstream_name` is to say. */
  backend: string;
  transport: UpstreamTransport;
  /** With the bundled balancer: the key of its hash, if there is one. */
  bundled?: { hashKey: Template | undefined };
  /** The path of the route; undefined for unmatched paths. */
  path: PathRule | undefined;
}

/** An answer of the proxy itself. Throws UnsupportedError for what can't be said. */
export function answerBody(action: Exclude<Action, ProxyAction>): string {
  const lines = addedHeaders(action.headers ?? []);
  const status = wholeNumber(action.status);
  if (action.kind === "redirect")
    return [...lines, directive("return", status, quotedLocation(action.location))].join(" ");
  if (action.status === 444 || action.status < 200)
    throw new UnsupportedError(`NGINX answers nothing for the status ${status}`);
  // The proxy's own page.
  if (action.body.length === 0 && action.status >= 400) return [...lines, directive("return", status)].join(" ");
  if (/[\x00-\x1f\x7f]/.test(action.contentType))
    throw new UnsupportedError("a content type has no control characters");
  const type = directive("default_type", quotedText(action.contentType || "text/plain"));
  return [...lines, type, directive("return", status, quotedTemplate(action.body))].join(" ");
}

/** A location that passes requests on. Throws UnsupportedError for what can't be said. */
export function proxyBody(action: ProxyAction, { backend, transport, bundled, path }: ProxyPlace): string {
  if (action.errorPages !== undefined && action.errorPages.length > 0) {
    throw new UnsupportedError("error pages need the carrier core");
  }
  const module = transport.protocol === "grpc" ? "grpc" : "proxy";
  const headers = action.headers ?? [];
  const { protocol, tls } = transport;
  const address = UPSTREAM_ADDRESSES[protocol === "grpc" ? (tls ? "grpcs" : "grpc") : tls ? "https" : "http"];
  return [
    directive("set", "$proxy_upstream_name", quotedText(backend)),
    directive("set", "$location_path", quotedText(SET_COOKIE_PATH)),
    // Before the path is rewritten: the key is of what the client has asked for.
    ...(bundled?.hashKey === undefined
      ? []
      : [directive("set", "$njet_kic_hash_key", quotedTemplate(bundled.hashKey))]),
    ...rewriteLines(action, path),
    ...requestHeaders(headers, module),
    ...answerHeaders(headers, module),
    ...transportLines(bundled === undefined ? transport : withFewTries(transport), module),
    directive(`${module}_pass`, address),
  ].join(" ");
}

/** NGINX puts the query behind the new path, and escapes the path where the client's was escaped. */
function rewriteLines({ rewrite }: ProxyAction, path: PathRule | undefined): string[] {
  if (rewrite === undefined) return [];
  if (rewrite.kind === "prefix") {
    // Without a route there is no prefix, and the target passes as it is.
    if (path === undefined) return [];
    const taken = path.kind === "segments" ? path.path.replace(/\/$/, "") : path.kind === "regex" ? "" : path.path;
    const text = rewrite.text.startsWith("/") ? rewrite.text : `/${rewrite.text}`;
    const pattern = word(`^${literalPattern(taken)}([\\x00-\\xFF]*)\\z`);
    return [directive("rewrite", pattern, word(`${safePath(text)}$1`), "break")];
  }
  const [first, ...rest] = rewrite.template;
  const rooted = typeof first === "string" && first.startsWith("/") ? rewrite.template : ["/", first ?? "", ...rest];
  for (const part of rooted) {
    if (typeof part === "string") safePath(part);
    else if (part.kind !== "group")
      throw new UnsupportedError("a rewritten path with a value of the request needs the carrier core");
  }
  const grouped = path?.kind === "regex";
  const pattern = word(grouped ? capturingText(routeTree(path)) : "^");
  return [directive("rewrite", pattern, quotedTemplate(rooted, grouped), "break")];
}

function safePath(text: string): string {
  if (!SAFE_PATH.test(text)) {
    throw new UnsupportedError(
      `the rewritten path ${shown(text)} has characters that only the carrier core sends unchanged`,
    );
  }
  return literalText(text);
}

function requestHeaders(changes: readonly HeaderChange[], module: "proxy" | "grpc"): string[] {
  const told = new Map(TOLD.map(([name, value]) => [name.toLowerCase(), { name, value }]));
  if (module === "proxy") {
    told.set("upgrade", { name: "Upgrade", value: "$http_upgrade" });
    told.set("connection", { name: "Connection", value: "$njet_kic_connection" });
  }
  const lines: string[] = [];
  for (const change of changes) {
    if (change.op === "drop-request") {
      if (module === "grpc")
        throw new UnsupportedError("headers of gRPC requests are kept from the peers by the carrier core only");
      lines.push(directive("proxy_pass_request_headers", "off"));
    }
    if (change.op !== "set-request" || FRAMING.has(change.name.toLowerCase())) continue;
    quotedHeaderName(change.name);
    told.set(change.name.toLowerCase(), { name: change.name, value: quotedHeaderValue(change.value) });
  }
  for (const { name, value } of told.values())
    lines.push(directive(`${module}_set_header`, quotedHeaderName(name), value));
  return lines;
}

function answerHeaders(changes: readonly HeaderChange[], module: "proxy" | "grpc"): string[] {
  const lines = [directive(`${module}_ignore_headers`, ...IGNORED[module].split(" "))];
  const hidden = new Set(["proxy-authenticate", "trailer"]);
  for (const change of changes) if (change.op === "hide-response") hidden.add(change.name.toLowerCase());
  for (const name of hidden) lines.push(directive(`${module}_hide_header`, quotedHeaderName(name)));
  for (const change of changes) {
    // What is hidden stays so.
    if (change.op !== "pass-response" || hidden.has(change.name.toLowerCase())) continue;
    lines.push(directive(`${module}_pass_header`, quotedHeaderName(change.name)));
  }
  return [...lines, ...addedHeaders(changes)];
}

function addedHeaders(changes: readonly HeaderChange[]): string[] {
  const lines: string[] = [];
  for (const change of changes) {
    if (change.op !== "add-response" || FRAMING.has(change.name.toLowerCase())) continue;
    const parameters = [quotedHeaderName(change.name), quotedHeaderValue(change.value)];
    lines.push(directive("add_header", ...parameters, ...(change.always ? ["always"] : [])));
  }
  return lines;
}

/** Any number of tries is without end with the bundled balancer: what the static configuration says counts then. */
function withFewTries(transport: UpstreamTransport): UpstreamTransport {
  const { nextUpstreamTries: tries, ...others } = transport;
  return tries === 0 || tries === undefined ? others : { ...others, nextUpstreamTries: tries };
}

function transportLines(transport: UpstreamTransport, module: "proxy" | "grpc"): string[] {
  const lines: string[] = [];
  const { connectTimeout, readTimeout, sendTimeout, nextUpstream, nextUpstreamTries, nextUpstreamTimeout } = transport;
  if (transport.clientMaxBodySize !== undefined) {
    lines.push(directive("client_max_body_size", wholeNumber(transport.clientMaxBodySize)));
  }
  if (transport.buffering === false && module === "proxy") lines.push(directive("proxy_buffering", "off"));
  if (connectTimeout !== undefined) lines.push(directive(`${module}_connect_timeout`, timeText(connectTimeout)));
  if (readTimeout !== undefined) lines.push(directive(`${module}_read_timeout`, timeText(readTimeout)));
  if (sendTimeout !== undefined) lines.push(directive(`${module}_send_timeout`, timeText(sendTimeout)));
  if (nextUpstream !== undefined) {
    lines.push(directive(`${module}_next_upstream`, ...(nextUpstream.length === 0 ? ["off"] : nextUpstream)));
  }
  if (nextUpstreamTries !== undefined) {
    lines.push(directive(`${module}_next_upstream_tries`, wholeNumber(nextUpstreamTries)));
  }
  if (nextUpstreamTimeout !== undefined) {
    lines.push(directive(`${module}_next_upstream_timeout`, timeText(nextUpstreamTimeout)));
  }
  return lines;
}
