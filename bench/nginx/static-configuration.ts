/** What somebody would write by hand for the same work: nginx.conf without Lua, one `server` for each host. */
import {
  addressesOf,
  allAddresses,
  CONDITION_HEADER,
  hostOf,
  regexOf,
  SEARCHED,
  SEARCHED_HOST,
  SERVICES,
  serviceOf,
  servicesOf,
  tenantOf,
} from "./site.js";

export interface StaticOptions {
  /** Folder for temporary files. */
  folder: string;
  workers: number;
  port: number;
  /** Directives of the main context besides. */
  main?: readonly string[];
}

const BODY = "x".repeat(256);

/** An NGINX with these lines in `http`. Settings of connections are those that ours has. */
function configuration({ folder, workers, main = [] }: StaticOptions, http: readonly string[]): string {
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return [
    ...main,
    ...(process.getuid?.() === 0 ? ["user root;"] : []),
    ...[
      "daemon off;",
      `worker_processes ${workers};`,
      `pid ${folder}/nginx.pid;`,
      "error_log stderr warn;",
      "pcre_jit on;",
    ],
    ...["worker_shutdown_timeout 10s;", "events {", "  worker_connections 16384;", "  multi_accept on;", "}"],
    "http {",
    ...temp.map((name) => `  ${name}_temp_path ${folder}/${name};`),
    ...["access_log off;", "server_tokens off;", "default_type text/plain;", "tcp_nodelay on;"].map(
      (line) => `  ${line}`,
    ),
    ...["keepalive_timeout 75s;", "keepalive_requests 100000;"].map((line) => `  ${line}`),
    ...http.map((line) => `  ${line}`),
    "}",
    "",
  ].join("\n");
}

/** The peers: an answer with the address that was reached, and 256 bytes more. */
export function peersConfiguration(options: StaticOptions): string {
  return configuration(options, [
    "server {",
    ...allAddresses().map((address) => `  listen ${address}:${options.port} backlog=4096;`),
    `  location / { return 200 "$server_addr ${BODY}"; }`,
    "}",
  ]);
}

/** The headers that ours sends. */
const PROXY_LINES = [
  "proxy_http_version 1.1;",
  "proxy_set_header Host $http_host;",
  "proxy_set_header Connection '';",
  "proxy_set_header X-Request-ID $request_id;",
  "proxy_set_header X-Real-IP $remote_addr;",
  "proxy_set_header X-Forwarded-For $remote_addr;",
  "proxy_set_header X-Forwarded-Proto $scheme;",
  "proxy_set_header X-Forwarded-Host $http_host;",
  "proxy_set_header X-Forwarded-Port $server_port;",
];

function proxying(options: StaticOptions, peerPort: number, servers: readonly string[]): string {
  const upstreams = Array.from({ length: SERVICES }, (_, service) => [
    `upstream service_${service} {`,
    ...addressesOf(service).map((address) => `  server ${address}:${peerPort};`),
    ...["  keepalive 320;", "  keepalive_time 1h;", "  keepalive_timeout 120s;", "  keepalive_requests 10000;", "}"],
  ]).flat();
  return configuration(options, [
    "server_names_hash_max_size 131072;",
    "server_names_hash_bucket_size 128;",
    ...PROXY_LINES,
    ...upstreams,
    ...servers,
  ]);
}

/** Options of a port may stand in one `server` only. */
const listen = ({ port }: StaticOptions, first = true) => `  listen 127.0.0.1:${port}${first ? " backlog=4096" : ""};`;

/** `services`: another choice for some hosts. */
export function sitesConfiguration(
  options: StaticOptions,
  peerPort: number,
  hosts: number,
  services: (index: number) => [number, number] = servicesOf,
): string {
  const servers = Array.from({ length: hosts }, (_, index) => {
    const [root, cart] = services(index);
    return [
      "server {",
      listen(options, index === 0),
      `  server_name ${hostOf(index)};`,
      `  location / { proxy_pass http://service_${root}; }`,
      `  location /cart { proxy_pass http://service_${cart}; }`,
      "}",
    ];
  });
  return proxying(options, peerPort, servers.flat());
}

export function regexConfiguration(options: StaticOptions, peerPort: number): string {
  const locations = Array.from(
    { length: SEARCHED },
    (_, i) => `  location ~ "^${regexOf(i)}" { proxy_pass http://service_${serviceOf(i)}; }`,
  );
  return proxying(options, peerPort, [
    "server {",
    listen(options),
    `  server_name ${SEARCHED_HOST};`,
    ...locations,
    "}",
  ]);
}

export function conditionConfiguration(options: StaticOptions, peerPort: number): string {
  const header = `$http_${CONDITION_HEADER.toLowerCase().replaceAll("-", "_")}`;
  const conditions = Array.from(
    { length: SEARCHED },
    (_, i) => `    if (${header} = ${tenantOf(i)}) { set $service service_${serviceOf(i)}; }`,
  );
  return proxying(options, peerPort, [
    "server {",
    listen(options),
    `  server_name ${SEARCHED_HOST};`,
    "  location / {",
    "    set $service service_0;",
    ...conditions,
    "    proxy_pass http://$service;",
    "  }",
    "}",
  ]);
}
