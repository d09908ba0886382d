/** The neutral routing model: what every proxy is driven with, whatever objects it came from. */
import type { HostRules, PeerSetSource } from "../../core-wasm/binding/source.js";

/** How a proxy talks to the peers of an upstream. Times in milliseconds; undefined means the proxy's default (NGINX's). */
export interface UpstreamTransport {
  /** Plain HTTP or TLS towards the peers. */
  tls: boolean;
  protocol: "http" | "grpc";
  connectTimeout?: number;
  readTimeout?: number;
  sendTimeout?: number;
  /** When another peer is tried, as in proxy_next_upstream; empty means never. */
  nextUpstream?: ("error" | "timeout" | "http_502" | "http_503" | "http_504" | "non_idempotent")[];
  /** 0 means without limit. */
  nextUpstreamTries?: number;
  nextUpstreamTimeout?: number;
  /** Bytes; 0 means without limit. */
  clientMaxBodySize?: number;
  buffering?: boolean;
  keepalive?: number;
}

/** How the peers of an upstream are probed. Times in milliseconds; defaults are filled in by the resources. */
export interface HealthCheck {
  /** `grpc` asks grpc.health.v1.Health/Check; `tcp` only connects. */
  type: "http" | "grpc" | "tcp";
  tls: boolean;
  /** Path and query of the request. */
  path: string;
  /** Instead of the peer's own port. */
  port?: number;
  /** Sent with the request; `Host` too. */
  headers: { name: string; value: string }[];
  interval: number;
  /** Up to so much is added to each interval. */
  jitter: number;
  /** Failures in a row that take a peer out. */
  fails: number;
  /** Passes in a row that bring it back. */
  passes: number;
  connectTimeout: number;
  readTimeout: number;
  sendTimeout: number;
  /** How long a connection is kept for the next probe; undefined: each probe makes its own. */
  keepaliveTime?: number;
  /** Ranges of status that pass, or with `negated` fail. Undefined: 2xx and 3xx pass. */
  statusMatch?: { negated: boolean; ranges: { from: number; to: number }[] };
  /** The gRPC status that passes, where the peer does not know the service; undefined: only SERVING passes. */
  grpcStatus?: number;
  grpcService: string;
  /** States are kept over a change of the check. */
  persistent: boolean;
}

/** The cookie that keeps a client with its peer, as it is set. */
export interface SessionCookie {
  name: string;
  path?: string;
  /** Milliseconds; `max` for as long as browsers keep one. Undefined: until the browser ends. */
  expires?: number | "max";
  domain?: string;
  httpOnly: boolean;
  secure: boolean;
  sameSite?: "Strict" | "Lax" | "None";
}

/** An upstream with its peers. `peers.key` is its identity, `kind/namespace/object/name`. */
export interface Upstream {
  peers: PeerSetSource;
  transport: UpstreamTransport;
  healthCheck?: HealthCheck;
  /** `peers.sessionCookie` is its name. */
  sessionCookie?: SessionCookie;
  /** Requests that wait where every peer has `maxConns` under way; `timeout` in milliseconds. */
  queue?: { size: number; timeout: number };
}

/** A certificate for one host name or one-label wildcard (`*.example.com`) that an object names. */
export interface Certificate {
  /** Lower case. */
  host: string;
  /** PEM, leaf first. */
  chain: string;
  /** PEM. Secret: never logged, never printed. */
  key: string;
  /** `Secret/namespace/name`. */
  resource: string;
  /** Hash of chain and key: changes when the certificate is renewed. */
  fingerprint: string;
}

/** What changed, in pieces that can each be applied by themselves. Keys: pattern text, upstream key, host. */
export interface ModelChange {
  hosts: Map<string, HostRules | undefined>;
  upstreams: Map<string, Upstream | undefined>;
  certificates: Map<string, Certificate | undefined>;
}

/** The whole model in force: a change from nothing. */
export interface ModelSnapshot extends ModelChange {
  hosts: Map<string, HostRules>;
  upstreams: Map<string, Upstream>;
  certificates: Map<string, Certificate>;
}
