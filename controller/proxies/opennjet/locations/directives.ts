/**
 * The directives that locations are made of, all of them: nothing else is ever sent to OpenNJet. What the static configuration
 * has to bring with them stands below.
 */
export const DIRECTIVES = [
  "add_header",
  "client_max_body_size",
  "default_type",
  "grpc_connect_timeout",
  "grpc_hide_header",
  "grpc_ignore_headers",
  "grpc_next_upstream",
  "grpc_next_upstream_timeout",
  "grpc_next_upstream_tries",
  "grpc_pass",
  "grpc_pass_header",
  "grpc_read_timeout",
  "grpc_send_timeout",
  "grpc_set_header",
  "proxy_buffering",
  "proxy_connect_timeout",
  "proxy_hide_header",
  "proxy_ignore_headers",
  "proxy_next_upstream",
  "proxy_next_upstream_timeout",
  "proxy_next_upstream_tries",
  "proxy_pass",
  "proxy_pass_header",
  "proxy_pass_request_headers",
  "proxy_read_timeout",
  "proxy_send_timeout",
  "proxy_set_header",
  "return",
  "rewrite",
  "set",
] as const;

export type DirectiveName = (typeof DIRECTIVES)[number];

/** A directive; its parameters are words that need no more escaping. */
export function directive(name: DirectiveName, ...parameters: string[]): string {
  return `${[name, ...parameters].join(" ")};`;
}

/** Upstreams of the static configuration, by protocol and TLS; each has `balancer_by_lua_block { balancer.balance() }`. */
export const UPSTREAM_ADDRESSES = {
  http: "http://upstream_balancer",
  https: "https://upstream_tls",
  grpc: "grpc://upstream_grpc",
  grpcs: "grpcs://upstream_grpcs",
} as const;

/** What the `http` block of the static configuration has to have for these locations. */
export const LOCATIONS_HTTP_DIRECTIVES = [
  'geo $njet_kic_dollar { default "$"; }',
  'map $http_x_request_id $njet_kic_request_id { default $request_id; "~^[\\x21-\\x7e]{1,128}$" $http_x_request_id; }',
  'map $http_upgrade $njet_kic_connection { default upgrade; "" ""; }',
] as const;

/** What the bundled balancer needs in `http` besides: it sends all requests with an empty key to the same peer. */
export const BUNDLED_HTTP_DIRECTIVES = [
  'map $njet_kic_hash_key $njet_kic_peer_key { default $njet_kic_hash_key; "" $request_id; }',
  // It tries again without end, be there one peer or many.
  ...["proxy", "grpc"].map((module) => `${module}_next_upstream_tries 3;`),
] as const;

/**
 * What its `server` block has to have, besides a catch-all `location / { return 404; }`. No `error_page` there may name a path:
 * conditional locations would take the internal redirect. (A named location is fine.) The regular expression has as many
 * groups as a rewrite may use: without one, OpenNJet leaves groups empty.
 */
export const LOCATIONS_SERVER_DIRECTIVES = [
  'set $proxy_upstream_name "";',
  'set $proxy_alternative_upstream_name "";',
  'set $location_path "";',
  "location ~ ^/__never__/(.)(.)(.)(.)(.)(.)(.)(.)(.)$ { return 404; }",
] as const;

/** What it has to have besides for the bundled balancer. */
export const BUNDLED_SERVER_DIRECTIVES = ['set $njet_kic_hash_key "";'] as const;
