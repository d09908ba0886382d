import type { FilledHeaderChange } from "../../binding/decision.js";
import { connectionNames, headerValue, isConnectionBound, isFraming, isToken } from "./header-names.js";

/** What the proxy says about the client to the upstream. */
export interface ForwardedFacts {
  requestId: string;
  /** Address of the other end of the connection. */
  peerAddress: string;
  /** Address of the client: the same, unless a trusted proxy names another. */
  clientAddress: string;
  scheme: "http" | "https";
  /** Raw Host header; empty if there was none. */
  host: string;
  port: number;
  /** True where the connection comes from a trusted proxy: what it says about the client is kept and added to. */
  trusted: boolean;
}

type SetRequest = Extract<FilledHeaderChange, { op: "set-request" }>;

/**
 * Headers for the upstream as a flat list of names and values, in the client's order and with its repeats.
 * Left out: what is bound to one connection, names with `_` unless allowed, what a client claims about itself in
 * X-Forwarded-*, X-Real-IP, X-Request-ID and Forwarded, and what the decision replaces. Expect is answered by the
 * proxy, and Trailer names fields that are not passed on.
 */
export function upstreamHeaders(
  raw: readonly string[],
  changes: readonly FilledHeaderChange[],
  facts: ForwardedFacts,
  allowUnderscores: boolean,
): string[] {
  let dropAll = false;
  let sets: Map<string, SetRequest> | undefined;
  for (const change of changes) {
    if (change.op === "drop-request") dropAll = true;
    else if (change.op === "set-request") {
      const name = change.name.toLowerCase();
      if (isFraming(name) || !isToken(name)) continue;
      sets ??= new Map();
      sets.set(name, change);
    }
  }
  const named = namedByConnection(raw);
  const headers: string[] = [];
  if (facts.host !== "" && sets?.has("host") !== true) headers.push("Host", facts.host);
  let forwardedFor = "";
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i];
    const value = raw[i + 1];
    const lower = name.toLowerCase();
    if (lower === "host" || lower === "expect" || lower === "trailer") continue;
    if (lower === "content-length") {
      headers.push(name, value);
      continue;
    }
    if (lower === "x-forwarded-for" && facts.trusted) forwardedFor += `${value}, `;
    if (dropAll || (!allowUnderscores && name.includes("_"))) continue;
    if (lower === "te") {
      if (/(^|,)\s*trailers\s*(,|;|$)/i.test(value)) headers.push("TE", "trailers");
      continue;
    }
    if (isConnectionBound(lower) || saidByProxy(lower, facts.trusted)) continue;
    if (named?.has(lower) === true || sets?.has(lower) === true) continue;
    headers.push(name, value);
  }
  addForwarded(headers, raw, forwardedFor, facts, sets);
  if (sets !== undefined) {
    for (const { name, value } of sets.values()) {
      const safe = headerValue(value);
      if (safe !== "") headers.push(name, safe);
    }
  }
  return headers;
}

/** Names that the client's Connection headers bind to its own connection. */
function namedByConnection(raw: readonly string[]): Set<string> | undefined {
  let names: Set<string> | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i].length === 10 && raw[i].toLowerCase() === "connection") names = connectionNames(raw[i + 1], names);
  }
  return names;
}

/** Headers that the proxy writes itself and so does not copy. */
function saidByProxy(lower: string, trusted: boolean): boolean {
  if (lower === "forwarded") return !trusted;
  if (lower === "x-real-ip" || lower === "x-request-id") return true;
  return (
    lower === "x-forwarded-for" ||
    lower === "x-forwarded-proto" ||
    lower === "x-forwarded-host" ||
    lower === "x-forwarded-port"
  );
}

function addForwarded(
  headers: string[],
  raw: readonly string[],
  forwardedFor: string,
  facts: ForwardedFacts,
  sets: Map<string, SetRequest> | undefined,
): void {
  const add = (name: string, lower: string, value: string): void => {
    if (value !== "" && sets?.has(lower) !== true) headers.push(name, value);
  };
  const kept = (lower: string): string | undefined => (facts.trusted ? firstValue(raw, lower) : undefined);
  add("X-Request-ID", "x-request-id", facts.requestId);
  add("X-Real-IP", "x-real-ip", facts.clientAddress);
  add("X-Forwarded-For", "x-forwarded-for", forwardedFor + facts.peerAddress);
  add("X-Forwarded-Proto", "x-forwarded-proto", kept("x-forwarded-proto") ?? facts.scheme);
  add("X-Forwarded-Host", "x-forwarded-host", kept("x-forwarded-host") ?? facts.host);
  add("X-Forwarded-Port", "x-forwarded-port", kept("x-forwarded-port") ?? String(facts.port));
}

function firstValue(raw: readonly string[], lower: string): string | undefined {
  for (let i = 0; i < raw.length; i += 2) if (raw[i].toLowerCase() === lower) return raw[i + 1];
  return undefined;
}

const SANE_REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** The client's X-Request-ID if it is one plain value, at most 128 printable characters without a space. */
export function saneRequestId(value: string | undefined): string | undefined {
  return value !== undefined && SANE_REQUEST_ID.test(value) ? value : undefined;
}
