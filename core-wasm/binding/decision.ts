import type { AnswerHeader, HeaderChange, PeerState } from "./source.js";

/**
 * A request as a proxy received it. Strings that come from the wire (`host`, `target`, header values) are byte
 * strings: one character per byte, as Node's HTTP parser gives them. Nothing is parsed or decoded by the caller.
 */
export interface RequestInput {
  /** As sent, such as `GET`. */
  method: string;
  scheme: "http" | "https";
  /** The Host header or `:authority`, raw; empty if there is none. */
  host: string;
  /** The request target, raw: origin form or absolute form. */
  target: string;
  /** `HTTP/1.1`, `HTTP/2.0` and so on. */
  protocol: string;
  clientAddress: string;
  clientPort: number;
  /** Value of a header by lower-case name, repeated headers joined by ", " (cookies by "; "); undefined if absent. */
  header(name: string): string | undefined;
}

/** A header change with its value already filled in. */
export type FilledHeaderChange =
  | Exclude<HeaderChange, { op: "set-request" | "add-response" }>
  | { op: "set-request"; name: string; value: string }
  | { op: "add-response"; name: string; value: string; always: boolean };

/** An error page with its texts filled in; `codes` and the rest as in `ErrorPage`. */
export type FilledErrorPage = { codes: readonly number[] } & (
  | {
      kind: "return";
      status?: number;
      contentType: string;
      body: string;
      headers: Extract<FilledHeaderChange, AnswerOp>[];
    }
  | { kind: "redirect"; status: number; location: string }
);
type AnswerOp = Pick<AnswerHeader, "op">;

/** Where a decision came from: `Kind/namespace/name`, the host pattern and the path that matched (as their object spells them). */
export interface DecisionOrigin {
  resource: string;
  host: string;
  path: string;
}

/** A peer that was picked: an IP literal without brackets, and where on its ring or in its order it stands. */
export interface ChosenPeer {
  address: string;
  port: number;
  position: number;
  /** Stands for the peer as it is now, when the end of the request is reported; of a peer that has left, nothing counts. */
  token: number;
  /** Value of the session cookie that leads back to this peer, where the upstream has one. */
  session?: string;
}

/** A peer as metrics and explanations show it. */
export interface PeerStatus {
  address: string;
  port: number;
  weight: number;
  /** Its endpoint is going away. */
  draining: boolean;
  /** By active checks. */
  state: PeerState;
  /** Requests under way; counted where the method, `bounded` or `maxConns` looks at them, else 0. */
  conns: number;
  /** Out because of failures of requests, as `maxFails` says. */
  out: boolean;
}

/** What to do with a request. All text is byte strings, ready for the wire. */
export type Decision =
  | {
      action: "proxy";
      /** Identity of the upstream. */
      upstreamKey: string;
      /** `namespace/service:port`. */
      upstream: string;
      peer: ChosenPeer;
      /** What the method hashes, for `pickPeer`; undefined where it hashes nothing, or an absent or empty key. */
      hash?: number;
      /** Value of the session cookie for the peer, where the upstream has one; `isNew`: the client is to be given it. */
      session?: { value: string; isNew: boolean };
      /** Path and query for the upstream. */
      target: string;
      headers: FilledHeaderChange[];
      errorPages?: FilledErrorPage[];
      origin?: DecisionOrigin;
    }
  | { action: "redirect"; status: number; location: string; headers: FilledHeaderChange[]; origin?: DecisionOrigin }
  | {
      action: "return";
      status: number;
      /** Undefined where the proxy is to show its own page for `status` (404, 503, 400). */
      body?: string;
      contentType?: string;
      headers: FilledHeaderChange[];
      /** Set on 502 and 503 of the core: the upstream of which no peer could be picked, and its identity if it has a peer set. */
      upstream?: string;
      upstreamKey?: string;
      /** With status 502: each peer that could be used has `maxConns` requests under way; `pickPeer` asks again. */
      busy?: true;
      /** As in a decision to proxy, where the action was to proxy. */
      errorPages?: FilledErrorPage[];
      /** As in a decision to proxy, for `pickPeer`. */
      hash?: number;
      origin?: DecisionOrigin;
    };

/** One rule that was looked at, in order, and what became of it. */
export interface ExplainStep {
  step: "host" | "guard" | "route" | "condition" | "split" | "unmatched" | "upstream" | "request";
  /** What was tried, in the object's own spelling. */
  rule: string;
  /** Object that owns the rule, if any. */
  resource?: string;
  result: "taken" | "passed";
  /** Why. */
  reason: string;
}
