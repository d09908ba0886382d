import type { FilledHeaderChange } from "../../binding/decision.js";
import { connectionNames, headerValue, isConnectionBound, isFraming, isToken } from "./header-names.js";

/** Statuses that get headers of `add-response` without `always` (NGINX's add_header). */
const PLAIN_STATUSES = new Set([200, 201, 204, 206, 301, 302, 303, 304, 307, 308]);

/** The upstream's answer head, ready for the client. */
export interface ClientHead {
  /** Flat list of names and values in the upstream's order; Set-Cookie and other repeats stay apart. */
  headers: string[];
  /** True where the upstream's own Date was let through. */
  hasDate: boolean;
  /** True where the upstream's own Server was let through. */
  hasServer: boolean;
}

/**
 * Headers of an upstream's answer for the client. Hidden unless `pass-response` names them, as NGINX does: Date,
 * Server, X-Pad and X-Accel-*. `ignore-response` asks for no effect on the proxy, and none of those headers has one
 * here. Undefined where the answer's framing is not to be trusted: a Transfer-Encoding other than `chunked`.
 */
export function clientHeaders(
  raw: readonly (Buffer | string)[],
  status: number,
  changes: readonly FilledHeaderChange[],
): ClientHead | undefined {
  const headers: string[] = [];
  let named: Set<string> | undefined;
  let hasDate = false;
  let hasServer = false;
  const policy = changes.length === 0 ? undefined : responsePolicy(changes);
  for (let i = 0; i < raw.length; i += 2) {
    const name = text(raw[i]);
    const lower = name.toLowerCase();
    const value = text(raw[i + 1]);
    if (lower === "connection") {
      named = connectionNames(value, named);
      continue;
    }
    if (lower === "transfer-encoding" && value.toLowerCase() !== "chunked") return undefined;
    if (isConnectionBound(lower)) continue;
    if (lower === "content-length" && status === 204) continue;
    if (policy?.hide.has(lower) === true) continue;
    if (hiddenByDefault(lower) && policy?.pass.has(lower) !== true) continue;
    if (lower === "date") hasDate = true;
    else if (lower === "server") hasServer = true;
    headers.push(name, headerValue(value));
  }
  const kept = named === undefined ? headers : withoutNames(headers, named);
  addResponseHeaders(kept, status, changes);
  return { headers: kept, hasDate, hasServer };
}

/** Adds the headers that the decision asks for on an answer with `status`. */
export function addResponseHeaders(headers: string[], status: number, changes: readonly FilledHeaderChange[]): void {
  for (const change of changes) {
    if (change.op !== "add-response") continue;
    if (!change.always && !PLAIN_STATUSES.has(status)) continue;
    const lower = change.name.toLowerCase();
    if (isFraming(lower) || !isToken(lower)) continue;
    const value = headerValue(change.value);
    if (value !== "") headers.push(change.name, value);
  }
}

/** Trailer fields for the client as pairs: framing and connection-bound names are not allowed there (RFC 9110 6.5.1). */
export function clientTrailers(raw: readonly (Buffer | string)[]): [string, string][] {
  const trailers: [string, string][] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = text(raw[i]);
    const lower = name.toLowerCase();
    if (isFraming(lower) || lower === "host" || lower === "set-cookie") continue;
    trailers.push([name, headerValue(text(raw[i + 1]))]);
  }
  return trailers;
}

function hiddenByDefault(lower: string): boolean {
  return lower === "date" || lower === "server" || lower === "x-pad" || lower.startsWith("x-accel-");
}

function responsePolicy(changes: readonly FilledHeaderChange[]): { hide: Set<string>; pass: Set<string> } {
  const hide = new Set<string>();
  const pass = new Set<string>();
  for (const change of changes) {
    if (change.op === "hide-response") hide.add(change.name.toLowerCase());
    else if (change.op === "pass-response") pass.add(change.name.toLowerCase());
  }
  return { hide, pass };
}

function withoutNames(headers: string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (!names.has(headers[i].toLowerCase())) kept.push(headers[i], headers[i + 1]);
  }
  return kept;
}

function text(value: Buffer | string): string {
  return typeof value === "string" ? value : value.toString("latin1");
}
