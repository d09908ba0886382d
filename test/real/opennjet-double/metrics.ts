import type { ServedRequest } from "./data-plane.js";

const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const CACHE = ["miss", "bypass", "expired", "stale", "updating", "revalidated", "hit", "scarce"];
const CONNECTIONS = ["accepted", "active", "handled", "reading", "requests", "waiting", "writing"];

/** `vhost_traffic_status_display_format prometheus`. Bytes and seconds are not measured here. */
export function metricsText(served: readonly ServedRequest[]): string {
  const lines = [
    'njet_vts_info{hostname="double",module_version="v0.2.1",version="4.0.1.0"} 1',
    "njet_vts_start_time_seconds 0.000",
    ...CONNECTIONS.map(
      (status) => `njet_vts_main_connections{status="${status}"} ${status === "requests" ? served.length : 0}`,
    ),
    ...["max_size", "used_size", "used_node"].map((shared) => `njet_vts_main_shm_usage_bytes{shared="${shared}"} 0`),
  ];
  for (const host of new Set(served.map(({ server }) => server))) {
    const counts = (status: string) =>
      served.filter((one) => one.server === host && String(one.status)[0] === status[0]).length;
    lines.push(
      ...["in", "out"].map((direction) => `njet_vts_server_bytes_total{host="${host}",direction="${direction}"} 0`),
      ...CLASSES.map((code) => `njet_vts_server_requests_total{host="${host}",code="${code}"} ${counts(code)}`),
      `njet_vts_server_request_seconds_total{host="${host}"} 0.000`,
      `njet_vts_server_request_seconds{host="${host}"} 0.000`,
      ...CACHE.map((status) => `njet_vts_server_cache_total{host="${host}",status="${status}"} 0`),
    );
  }
  return `${lines.join("\n")}\n`;
}
