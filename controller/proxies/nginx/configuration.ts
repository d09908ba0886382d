/**
 * The text of nginx.conf. It follows from start options alone, never from objects: what objects say reaches the workers as
 * pieces of state, and the core decides with it.
 */
import { join } from "node:path";
import type { NginxConfigurationOptions, OtherLua } from "./configuration-options.js";
import { listen, network, quoted, quotedPaths, unixPath } from "./configured-values.js";
import { internalLocations } from "./internal-locations.js";
import { HIDDEN_HEADERS, HOP_HEADERS, headerVariables, NOTHING } from "./proxied-headers.js";

/** TLS and gRPC have upstreams of their own: the cache of kept connections compares addresses only. */
const UPSTREAMS = ["upstream_balancer", "upstream_tls", "upstream_grpc", "upstream_grpcs"];

const LOG_FORMAT =
  'log_format njet_kic escape=json \'{"time":"$time_iso8601","requestId":"$njet_id","client":"$remote_addr",' +
  '"scheme":"$scheme","method":"$request_method","host":"$http_host","target":"$request_uri","protocol":"$server_protocol",' +
  '"status":$njet_status,"bytes":$body_bytes_sent,"durationSeconds":$request_time,"resource":"$njet_resource","path":"$njet_path",' +
  '"upstream":"$njet_upstream","peer":"$upstream_addr","upstreamStatus":"$upstream_status",' +
  '"upstreamConnectSeconds":"$upstream_connect_time","upstreamHeaderSeconds":"$upstream_header_time",' +
  '"upstreamResponseSeconds":"$upstream_response_time"}\';';

/** Statuses that NGINX answers by itself, and for which the page is ours. */
export const OWN_PAGES = "400 401 403 404 405 408 411 412 413 414 416 421 429 495 496 497 500 501 502 503 504 505";

/** Throws a RangeError for an option that can't stand in a configuration. */
export function nginxConfiguration(options: NginxConfigurationOptions): string {
  const { runDirectory: run, trustedProxies, proxyProtocol, family } = options;
  const networks = trustedProxies.map(network);
  const trusting = networks.length > 0 && !proxyProtocol;
  // Behind the PROXY protocol the other end is who it names, where it may.
  const peer = proxyProtocol ? "$remote_addr" : trusting ? "$realip_remote_addr" : "$remote_addr";
  const { maps, forwarded } = headerVariables(trusting, peer);
  const condition = family?.logged === undefined ? "" : ` if=$${family.logged}`;
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const plainFlags = `default_server backlog=4096${proxyProtocol ? " proxy_protocol" : ""}`;
  const plain = options.http ? listen(options.http, plainFlags) : [];
  const tls = options.https ? listen(options.https, `${plainFlags} ssl${family === undefined ? " http2" : ""}`) : [];
  if (plain.length + tls.length === 0) throw new RangeError("neither a plain nor a TLS listener");
  if (options.https && !options.defaultCertificate)
    throw new RangeError("the TLS listener needs a default certificate");
  const direct = (name: string, value: string) => `proxy_set_header ${name} ${value.slice(value.indexOf(":") + 1)};`;
  const indirect = (module: string) => (entry: [string, string]) =>
    `${module}_set_header ${entry[0]} $njet_${entry[1].slice(0, entry[1].indexOf(":"))};`;
  const variable = ([, value]: [string, string]) =>
    `map ${NOTHING} $njet_${value.slice(0, value.indexOf(":"))} { default ${value.slice(value.indexOf(":") + 1)}; }`;
  const lua = family?.lua ?? ownLua(options);
  const dropped = (module: string) => HOP_HEADERS.map((name) => `${module}_set_header ${name} "";`);

  const http = [
    ...temp.map((name) => `${name}_temp_path ${quoted(join(options.tempDirectory ?? run, name))};`),
    `lua_package_path ${lua.path};`,
    `lua_package_cpath ${quotedPaths(options.luaCPath)};`,
    ...lua.http,
    "lua_check_client_abort on;",
    ...(family?.http ?? []),
    ...(networks.length === 0 ? [] : realIp(networks, proxyProtocol, trusting)),
    ...maps,
    ...forwarded.map(variable),
    ...["target", "upgrade", "connection", "resource", "path", "upstream"].map(
      (n) => `map ${NOTHING} $njet_${n} { default ""; }`,
    ),
    "init_by_lua_block {",
    ...lua.init.map((line) => `  ${line}`),
    "}",
    "init_worker_by_lua_block { balancer.init_worker() }",
    ...UPSTREAMS.flatMap((name) => [
      `upstream ${name} {`,
      "  server 0.0.0.1;",
      "  balancer_by_lua_block { balancer.balance() }",
      "  keepalive 320;",
      "  keepalive_time 1h;",
      "  keepalive_timeout 120s;",
      "  keepalive_requests 10000;",
      "}",
    ]),
    // A status that is none has zeros in front, and is no number in JSON.
    'map $status $njet_status { default $status; "~^0" 0; }',
    LOG_FORMAT,
    `access_log ${options.accessLog === undefined ? "off" : `${quoted(options.accessLog)} njet_kic${condition}`};`,
    "server_tokens off;",
    "default_type text/plain;",
    "client_header_buffer_size 4k;",
    "large_client_header_buffers 2 32k;",
    "client_header_timeout 60s;",
    "client_body_timeout 60s;",
    "send_timeout 60s;",
    "keepalive_timeout 75s;",
    "keepalive_requests 100000;",
    // What a request takes, so that its pool is one block: each further one is asked for, and given back.
    "request_pool_size 16k;",
    "reset_timedout_connection on;",
    "tcp_nodelay on;",
    "proxy_http_version 1.1;",
    // With 64k a request takes a fifth more of the processor: so much memory is given back and faulted in each time.
    "proxy_buffer_size 16k;",
    "proxy_buffers 8 16k;",
    "proxy_busy_buffers_size 32k;",
    "grpc_buffer_size 64k;",
    "proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Charset Expires Cache-Control Set-Cookie Vary;",
    "grpc_ignore_headers X-Accel-Redirect X-Accel-Charset;",
    "proxy_redirect off;",
    ...HIDDEN_HEADERS.map((name) => `proxy_hide_header ${name};`),
    "proxy_ssl_session_reuse on;",
    `underscores_in_headers ${options.allowUnderscoreHeaders ? "on" : "off"};`,
    ...servers(),
    "server {",
    `  listen unix:${unixPath(options.controlSocket)};`,
    "  access_log off;",
    ...lua.control.map((line) => `  ${line}`),
    "}",
  ];

  function servers(): string[] {
    const withTls = tls.length === 0 ? [] : [...tls, ...tlsLines(options)];
    if (family?.routes !== undefined) return server([...plain, ...withTls, ...family.routes]);
    return [
      ...(plain.length === 0 ? [] : server([...plain, ...serverLines(false)])),
      ...(withTls.length === 0 ? [] : server([...withTls, ...serverLines(true)])),
    ];
  }

  function serverLines(secure: boolean): string[] {
    return [
      "client_max_body_size 0;",
      `error_page ${OWN_PAGES} //njet-kic/page;`,
      // Else NGINX would answer 400.
      "error_page 494 =431 //njet-kic/page;",
      "log_by_lua_block { balancer.log() }",
      ...forwarded.map(indirect("proxy")),
      ...dropped("proxy"),
      "proxy_set_header Forwarded $njet_forwarded;",
      "proxy_set_header Upgrade $njet_upgrade;",
      "proxy_set_header Connection $njet_connection;",
      ...forwarded.map(indirect("grpc")),
      ...dropped("grpc"),
      "grpc_set_header Forwarded $njet_forwarded;",
      "location / {",
      `  rewrite_by_lua_block { balancer.route(${secure}) }`,
      "  header_filter_by_lua_block { balancer.respond() }",
      ...forwarded.map(([name, value]) => `  ${direct(name, value)}`),
      ...dropped("proxy").map((line) => `  ${line}`),
      `  proxy_set_header Forwarded ${trusting ? "$njet_forwarded" : '""'};`,
      ...["Connection", "Upgrade"].map((name) => `  proxy_set_header ${name} "";`),
      // Nothing is upgraded here: what a peer offers is about its own connection.
      ...["Upgrade", ...HIDDEN_HEADERS].map((name) => `  proxy_hide_header ${name};`),
      "  proxy_pass http://upstream_balancer;",
      "}",
      // No client can ask for it: NGINX merges slashes.
      "location = //njet-kic/page { internal; content_by_lua_block { balancer.page() } }",
      ...internalLocations(),
    ];
  }

  return [
    ...(options.user === undefined ? [] : [`user ${quoted(options.user.name)} ${quoted(options.user.group)};`]),
    ...options.modules.map((path) => `load_module ${quoted(path)};`),
    ...(family?.main ?? []),
    "daemon off;",
    `worker_processes ${options.workers === 0 ? "auto" : options.workers};`,
    `worker_shutdown_timeout ${options.shutdownTimeout}ms;`,
    `pid ${quoted(join(run, "nginx.pid"))};`,
    `lock_file ${quoted(join(run, "nginx.lock"))};`,
    `error_log ${options.errorLog === "stderr" ? "stderr" : quoted(options.errorLog)} ${options.errorLevel};`,
    "pcre_jit on;",
    "events {",
    `  worker_connections ${options.connections};`,
    "  multi_accept on;",
    "}",
    "http {",
    ...http.map((line) => `  ${line}`),
    "}",
    "",
  ].join("\n");
}

function server(lines: readonly string[]): string[] {
  return ["server {", ...lines.map((line) => `  ${line}`), "}"];
}

function ownLua({ packageRoot, luaPath, family, ...options }: NginxConfigurationOptions): OtherLua {
  const own = ["?.lua", "?/init.lua"].map((file) => join(packageRoot, file));
  return {
    path: quotedPaths([...own, luaPath].join(";")),
    http: [
      `lua_shared_dict njet_kic_state ${options.stateSize}m;`,
      "lua_shared_dict njet_kic_workers 256k;",
      "lua_shared_dict njet_kic_counters 32m;",
    ],
    init: [
      'balancer = require "balancer"',
      `balancer.init { library = ${quoted(options.library)}, token = ${quoted(options.tokenFile)}, journal = ${quoted(options.journalFile)},`,
      `  body_limit = ${options.bodyLimit}, logs = ${options.accessLog !== undefined}${family?.init ?? ""} }`,
    ],
    control: [
      // A batch is one piece or 4 MiB, and no piece is larger than the journal takes. Bodies stay in memory: they hold private keys, and
      // a disk that is full must not keep changes away.
      "client_max_body_size 65m;",
      "client_body_buffer_size 65m;",
      "location / { content_by_lua_block { balancer.control() } }",
    ],
  };
}

function realIp(networks: readonly string[], proxyProtocol: boolean, trusting: boolean): string[] {
  return [
    ...networks.map((one) => `set_real_ip_from ${one};`),
    `real_ip_header ${proxyProtocol ? "proxy_protocol" : "X-Forwarded-For"};`,
    "real_ip_recursive on;",
    ...(trusting
      ? [`geo $realip_remote_addr $njet_trusted { default 0; ${networks.map((one) => `${one} 1;`).join(" ")} }`]
      : []),
  ];
}

function tlsLines({ https, defaultCertificate, family }: NginxConfigurationOptions): string[] {
  if (https === undefined || defaultCertificate === undefined) return [];
  const certificates = family?.tls ?? [
    `ssl_certificate ${quoted(defaultCertificate.chain)};`,
    `ssl_certificate_key ${quoted(defaultCertificate.key)};`,
    "ssl_certificate_by_lua_block { balancer.certificate() }",
  ];
  return [
    ...certificates,
    "ssl_protocols TLSv1.2 TLSv1.3;",
    "ssl_prefer_server_ciphers off;",
    // A session that is resumed would not show a renewed certificate.
    "ssl_session_cache off;",
    "ssl_session_tickets off;",
    "ssl_buffer_size 4k;",
  ];
}
