/** The part of nginx.conf that Lua sends requests on to, for what it can't set for one request. */

const STATUS_BITS = ["http_502", "http_503", "http_504"];
const BODY_BITS = { from: 10, to: 40 };

function nextUpstream(mask: number, any: boolean): string {
  const statuses = STATUS_BITS.filter((_, bit) => (mask & (1 << bit)) !== 0);
  return ["error", "timeout", ...statuses, ...(any ? ["non_idempotent"] : [])].join(" ");
}

/** What is done with the answers of peers there. */
const FILTERS = "header_filter_by_lua_block { balancer.respond() } body_filter_by_lua_block { balancer.replace() }";

/**
 * The internal locations for what Lua can't set for one request: kind of upstream, buffering, and for which statuses
 * another peer is tried. Their names are made by `location_of` in balancer/upstreams.lua.
 */
export function internalLocations(): string[] {
  const kinds = [
    { name: "http", module: "proxy", pass: "proxy_pass http://upstream_balancer$njet_target;" },
    {
      name: "http_unbuffered",
      module: "proxy",
      pass: "proxy_buffering off; proxy_pass http://upstream_balancer$njet_target;",
    },
    { name: "https", module: "proxy", pass: "proxy_pass https://upstream_tls$njet_target;" },
    {
      name: "https_unbuffered",
      module: "proxy",
      pass: "proxy_buffering off; proxy_pass https://upstream_tls$njet_target;",
    },
    { name: "grpc", module: "grpc", pass: "grpc_pass grpc://upstream_grpc;" },
    { name: "grpcs", module: "grpc", pass: "grpc_pass grpcs://upstream_grpcs;" },
  ];
  const lines: string[] = [];
  for (const { name, module, pass } of kinds) {
    for (let mask = 0; mask < 1 << STATUS_BITS.length; mask++) {
      for (const any of [false, true]) {
        const next = `${module}_next_upstream ${nextUpstream(mask, any)};`;
        lines.push(`location @${name}_${mask}${any ? "_any" : ""} { ${next} ${FILTERS} ${pass} }`);
      }
    }
  }
  for (let bits = BODY_BITS.from; bits <= BODY_BITS.to; bits++) {
    lines.push(
      `location @body_${bits} { client_max_body_size ${2 ** bits}; rewrite_by_lua_block { balancer.read_body() } }`,
    );
  }
  return lines;
}
