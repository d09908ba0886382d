/**
 * Every path of the control server, below its base. They have changed between releases of OpenNJet, so they stand here and
 * nowhere else. Source: `module_key` of the modules, and their OpenAPI files.
 */
export const BASE_PATH = "/api";

export const PATHS = {
  modules: "/v1/config",
  location: "/v1/dyn_loc",
  server: "/v1/dyn_srv",
  upstream: "/v1/dyn_ups",
  certificate: "/v1/ssl",
  healthCheck: "/v1/hc",
  keyValue: "/v1/kv",
  members: "/v1/upstream_api/http/upstreams",
  maps: "/v1/config/http_dyn_map",
  upstreams: "/v1/config/dyn_upstream",
  splits: "/v1/config/http_split_clients_2",
  accessLog: "/v1/config/http_log",
  vts: "/v1/config/http_vts",
  limits: "/v1/config/http_dyn_limit",
} as const;
