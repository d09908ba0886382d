import type { MapEntry } from "./messages.js";

/** What a configuration file would say: it is there from the start, and after each restart. */
export interface StaticConfiguration {
  servers: StaticServer[];
  upstreams?: Record<string, StaticUpstream>;
  maps?: MapEntry[];
  /** `map_hash_bucket_size`; 64 without. */
  mapBucket?: number;
  /** The one `split_clients_2`: its variable, its key, its shares in percent. */
  split?: { key: string; variable: string; shares: Record<string, number> };
}

export interface StaticServer {
  listens: string[];
  names: string[];
  /** Paths of PEM files; may hold variables of maps, which each handshake looks up. */
  tls?: { certificate: string; key: string /** Which of the addresses have TLS; all without. */; listens?: string[] };
  /** Configuration text: locations, and `set`, `return` or `rewrite` of the server itself. */
  body: string;
}

export interface StaticUpstream {
  servers: string[];
}

/** The declarative modules that deploy/opennjet could load, in the order of `GET /v1/config`. */
export const ALL_MODULES = [
  "njt_http_kv_module",
  "http_split_clients_2",
  "http_log",
  "http_vts",
  "dyn_upstream",
  "http_dyn_map",
  "http_dyn_limit",
  "proxy_pass",
];
