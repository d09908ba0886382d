/**
 * What the core compiles: the rules of one host pattern (a *shard*) and the peers of one upstream (a *peer set*).
 *
 * All text is ordinary JavaScript text and is stored as UTF-8. The same objects give the same image bytes,
 * whatever the order of `routes`; only the order of regex routes, of `guards` and of `matches` carries meaning.
 */

/** The hosts that a shard answers for. Host names are lower case, without port and final dot. */
export type HostPattern =
  /** One host, compared in full. */
  | { kind: "exact"; host: string }
  /** `*.suffix`; `labels: "one"` covers a single label (Ingress), `"any"` one or more (VirtualServer). */
  | { kind: "wildcard"; suffix: string; labels: "one" | "any" }
  /** Rules that name no host: consulted when no exact and no wildcard pattern covers the request's host. */
  | { kind: "any" }
  /** The last resort of every host: only its `unmatched` outcome counts. */
  | { kind: "default" };

/** How a route's path is compared with the normalised request path. */
export type PathRule =
  /** The whole path, byte for byte (Ingress `Exact`, VirtualServer `=`). */
  | { kind: "exact"; path: string }
  /** Whole path segments; a final slash does not count (Ingress `Prefix`). */
  | { kind: "segments"; path: string }
  /** Plain text prefix (VirtualServer `/x`); `stopsRegex` is `^~`. */
  | { kind: "prefix"; path: string; stopsRegex: boolean }
  /** RE2 syntax over bytes; `anchored` ties it to the start of the path. */
  | { kind: "regex"; pattern: string; ignoreCase: boolean; anchored: boolean };

/** Request-derived values, named as in NGINX, without the dollar sign. */
export type VariableName =
  | "args"
  | "host"
  | "http2"
  | "https"
  | "query_string"
  | "remote_addr"
  | "remote_port"
  | "request"
  | "request_method"
  | "request_uri"
  | "scheme"
  | "server_protocol"
  | "uri";

/** A value that is read from the request. */
export type ValueSource =
  | { kind: "header"; name: string }
  | { kind: "cookie"; name: string }
  | { kind: "argument"; name: string }
  | { kind: "variable"; name: VariableName };

/** A literal, a value of the request, or a group of the route's regex (1 to 9). */
export type TemplatePart = string | ValueSource | { kind: "group"; index: number };

/** Parts that are written one after another. */
export type Template = TemplatePart[];

/** What a condition compares its value with. `equals` ignores ASCII case; `empty` holds for absent and empty. */
export type ConditionTest =
  | { kind: "equals"; value: string }
  | { kind: "regex"; pattern: string; ignoreCase: boolean }
  | { kind: "empty" };

/** `negated` turns the result of the test around; an absent value is compared as the empty text. */
export interface Condition {
  source: ValueSource;
  test: ConditionTest;
  negated: boolean;
}

/** All conditions must hold. */
export interface Match {
  conditions: Condition[];
  outcome: Outcome;
}

/** How the request target for the upstream is made. The query is carried over once. */
export type Rewrite =
  /** `text` takes the place of the part of the path that a prefix rule matched. */
  | { kind: "prefix"; text: string }
  /** The template is the whole new path. */
  | { kind: "path"; template: Template };

/** A change that the proxy makes to headers. Names are sent as written and compared without case. */
export type HeaderChange =
  /** Sets a header of the request to the upstream; an empty value removes it. */
  | { op: "set-request"; name: string; value: Template }
  /** The client's headers are not passed on. */
  | { op: "drop-request" }
  /** Adds a header to the answer; without `always` only to 200, 201, 204, 206, 301-304, 307 and 308. */
  | { op: "add-response"; name: string; value: Template; always: boolean }
  /** Removes a header of the upstream's answer. */
  | { op: "hide-response"; name: string }
  /** Passes a header that a proxy hides by default. */
  | { op: "pass-response"; name: string }
  /** An upstream header (X-Accel-*, Expires, Cache-Control, Set-Cookie, Vary) that has no effect on the proxy. */
  | { op: "ignore-response"; name: string };

/** Header changes of an answer that the proxy makes itself. */
export type AnswerHeader = Extract<HeaderChange, { op: "add-response" }>;

/** What the client gets instead of an answer with one of `codes` (300 to 599), of the upstream or of the proxy itself. */
export type ErrorPage = { codes: number[] } /** Without `status` the client gets the one that the answer had. */ & (
  | { kind: "return"; status?: number; contentType: string; body: Template; headers?: AnswerHeader[] }
  | { kind: "redirect"; status: number; location: Template }
);

export type Action =
  /** The first of `errorPages` that names a status counts. */
  | { kind: "proxy"; upstream: string; rewrite?: Rewrite; headers?: HeaderChange[]; errorPages?: ErrorPage[] }
  | { kind: "redirect"; status: number; location: Template; headers?: HeaderChange[] }
  | { kind: "return"; status: number; contentType: string; body: Template; headers?: HeaderChange[] };

/** One entry is chosen by weight; the total may be anything from 1 to 1,000,000; weight 0 is never chosen. */
export interface Split {
  kind: "split";
  entries: { weight: number; action: Action }[];
}

export type Outcome = Action | Split;

/** A route of a shard. */
export interface Route {
  path: PathRule;
  /** The path as its object spells it; shown in decisions. */
  label: string;
  /** `Kind/namespace/name` of the object that owns the route; shown in decisions. */
  resource: string;
  /** Tried in order; the first whose conditions hold decides. */
  matches: Match[];
  /** Without one, and with no match that holds, the next candidate route is tried. */
  outcome?: Outcome;
}

/** The rules of one host pattern: what is compiled into one shard. */
export interface HostRules {
  pattern: HostPattern;
  /** Tried before any path, in order (such as the redirect from http to https). */
  guards: { resource: string; match: Match }[];
  routes: Route[];
  /** When no route decides. Without it: the outcome of the `default` pattern, else 404. */
  unmatched?: { resource: string; outcome: Outcome };
}

/** A peer: an IP literal (IPv6 without brackets) and a port. */
export interface Peer {
  address: string;
  port: number;
  /** 1 to 65,535. */
  weight: number;
  /** Takes no new clients: only requests whose session cookie names it, and, when no other peer is left, the rest. */
  draining?: boolean;
}

/**
 * How a peer is chosen. `ring` is the CRC-32 ring of the ids `ip:port`, `nginx-ring` as NGINX's `hash ... consistent`,
 * `maglev` Google's table of 65,537 places. `bounded` passes a peer over that has more than 1.25 times its share of the
 * requests under way.
 */
export type BalanceMethod =
  | { kind: "round-robin" | "least-conn" | "random" | "random-two" | "ip-hash" }
  | { kind: "ring" | "nginx-ring" | "maglev"; key: Template; bounded?: boolean };

/** When a peer may be picked. Times in milliseconds. */
export interface PeerSetLimits {
  /** Failures within `failTimeout` that take a peer out for as long; 0: never. NGINX's default is 1. */
  maxFails?: number;
  /** NGINX's default is 10,000. */
  failTimeout?: number;
  /** Requests under way a peer may have, in each context; 0 (default): any number. */
  maxConns?: number;
  /** How long the weight of a peer that has come back rises to its full value; 0 (default): at once. */
  slowStart?: number;
  /** Peers get no traffic before their first passed check. */
  mandatory?: boolean;
  /** When active checks have every peer down, all are used, instead of none. */
  panic?: boolean;
}

/** The peers of one upstream. `key` is its identity, `kind/namespace/object/name`. */
export interface PeerSetSource {
  key: string;
  /** `namespace/service:port`, shown in decisions. */
  display: string;
  method: BalanceMethod;
  peers: Peer[];
  limits?: PeerSetLimits;
  /** Name of the cookie that keeps a client with its peer. */
  sessionCookie?: string;
}

/** What active checks have found out about a peer. A peer that nobody checks stays `unchecked`, and may be picked. */
export type PeerState = "unchecked" | "up" | "down" | "draining";

/**
 * Text form of a pattern: `shop.example.com`, `*.example.com` (one label), `**.example.com` (any number), `` (no host),
 * `(default)`, which no host can be called.
 */
export function patternText(pattern: HostPattern): string {
  switch (pattern.kind) {
    case "exact":
      return pattern.host;
    case "wildcard":
      return `${pattern.labels === "one" ? "*" : "**"}.${pattern.suffix}`;
    case "any":
      return "";
    case "default":
      return "(default)";
  }
}

/** The pattern that `patternText` has written. */
export function patternOf(text: string): HostPattern {
  if (text === "") return { kind: "any" };
  if (text === patternText({ kind: "default" })) return { kind: "default" };
  if (text.startsWith("**.")) return { kind: "wildcard", suffix: text.slice(3), labels: "any" };
  if (text.startsWith("*.")) return { kind: "wildcard", suffix: text.slice(2), labels: "one" };
  return { kind: "exact", host: text };
}
