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

/** An upstream with its peers. `peers.key` is its identity, `kind/namespace/object/name`. */
export interface Upstream {
  peers: PeerSetSource;
  transport: UpstreamTransport;
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
