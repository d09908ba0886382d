/**
 * The text of the configurations of an OpenNJet: njet.conf for the data plane, njet_ctrl.conf for its control server. They
 * follow from start options alone, never from objects.
 */
import { join } from "node:path";
import { nginxConfiguration, OWN_PAGES } from "../nginx/configuration.js";
import { DEFAULT_CONFIGURATION, type NginxConfigurationOptions } from "../nginx/configuration-options.js";
import { listen, type NginxListener, quoted, unixPath } from "../nginx/configured-values.js";
import { BUNDLED_SERVER, bundledLua } from "./bundled-lua.js";
import { CERTIFICATE_MAPS } from "./certificate-table.js";
import {
  BUNDLED_HTTP_DIRECTIVES,
  BUNDLED_SERVER_DIRECTIVES,
  LOCATIONS_HTTP_DIRECTIVES,
  LOCATIONS_SERVER_DIRECTIVES,
} from "./locations/directives.js";
import { questionMaps, withoutLocation } from "./locations/questions.js";
import { type BalancerName, type Carrier, moduleFiles } from "./parts.js";

export interface OpenNjetConfigurationOptions extends Omit<NginxConfigurationOptions, "modules" | "family"> {
  carrier: Carrier;
  /** `own` without. */
  balancer?: BalancerName;
  /** Folder with the dynamic modules. */
  modulesFolder: string;
  /** Where the control API listens: a unix socket, or a port of loopback. It asks nobody who they are. */
  api: { socket: string } | { port: number };
  /**
   * With the carrier locations: where questions are asked (see questionFolder), which stand in no access log. Undefined: no request is a
   * question.
   */
  questions?: string;
  /** Port of `/stats`, metrics in the text of Prometheus; undefined: none. */
  stats?: NginxListener;
}

export interface OpenNjetConfiguration {
  /** njet.conf. */
  data: string;
  /** njet_ctrl.conf. */
  control: string;
}

/** What deploy/opennjet is made of: an OpenNJet in a container of its own. */
export const DEFAULT_OPENNJET_CONFIGURATION: OpenNjetConfigurationOptions = {
  ...DEFAULT_CONFIGURATION,
  carrier: "core",
  modulesFolder: "/usr/local/njet/modules",
  luaPath: "/usr/local/njet/lualib/lib/?.lua;/usr/local/njet/lualib/lib/?/init.lua",
  luaCPath: "/usr/local/njet/lualib/clib/?.so",
  api: { port: 8081 },
  stats: { port: 12001 },
};

/** What deploy/opennjet/bundled is made of: the same with dynamic locations and the balancer that OpenNJet brings. */
export const DEFAULT_BUNDLED_CONFIGURATION: OpenNjetConfigurationOptions = {
  ...DEFAULT_OPENNJET_CONFIGURATION,
  carrier: "locations",
  balancer: "bundled",
};

/** Names under which an OpenNJet registers with its own broker. */
const CLUSTER = "njet_kic";
const NODE = "node1";
/** Topics of the broker that a plane listens to besides its own: none. */
const NO_TOPICS = "/dev/null";
const CONTROL_FILE = "njet_ctrl.conf";
/** Where the data plane keeps what it counts for `/stats`. */
const STATS_ZONE = "vhost_traffic_status_zone shared:njet_kic_stats:8m;";
/**
 * Before all maps. OpenNJet refuses a map as a whole for one name that does not fit in a bucket, which are those of more than 46
 * bytes without this; a name of 253 takes 272 bytes.
 */
const MAP_HASH = ["map_hash_bucket_size 512;", "map_hash_max_size 4096;"];
/** A map of 10,000 hosts has 3 MB; the modules themselves read 5 MiB. */
const MOST_API_BODY = "client_max_body_size 5m;";

/** Path of njet_ctrl.conf in a run folder. */
export function controlFile(runDirectory: string): string {
  return join(runDirectory, CONTROL_FILE);
}

/** Throws a RangeError for an option that can't stand in a configuration, and for a balancer that the carrier does not have. */
export function openNjetConfiguration(options: OpenNjetConfigurationOptions): OpenNjetConfiguration {
  if (options.balancer === "bundled" && options.carrier !== "locations")
    throw new RangeError("the bundled balancer can't route: it goes with the carrier locations only");
  return { data: dataPlane(options), control: controlServer(options) };
}

function dataPlane(options: OpenNjetConfigurationOptions): string {
  const { modulesFolder, runDirectory, carrier, defaultCertificate, stats } = options;
  const questions = carrier === "locations" ? options.questions : undefined;
  const { helpers, data } = moduleFiles(carrier);
  const module = (file: string) => quoted(join(modulesFolder, file));
  const bundled = options.balancer === "bundled";
  const withMaps = options.https !== undefined && defaultCertificate !== undefined;
  return nginxConfiguration({
    ...options,
    modules: data
      .filter((file) => stats !== undefined || !file.includes("_vts"))
      .map((file) => join(modulesFolder, file)),
    family: {
      main: [
        `cluster_name ${CLUSTER};`,
        `node_name ${NODE};`,
        `helper broker ${module(helpers.broker)};`,
        `helper ctrl ${module(helpers.control)} ${quoted(controlFile(runDirectory))};`,
      ],
      http: [
        "variables_hash_max_size 2048;",
        ...MAP_HASH,
        `dyn_kv_conf ${NO_TOPICS};`,
        ...(stats === undefined ? [] : [STATS_ZONE]),
        ...(withMaps ? certificateMaps(defaultCertificate) : []),
        ...(carrier === "locations" ? [...LOCATIONS_HTTP_DIRECTIVES, ...questionMaps(questions, LOGGED)] : []),
        ...(bundled ? BUNDLED_HTTP_DIRECTIVES : []),
      ],
      tls: [
        "http2 on;",
        `ssl_certificate $${CERTIFICATE_MAPS.certificate};`,
        `ssl_certificate_key $${CERTIFICATE_MAPS.key};`,
        ...(carrier === "core" ? ["ssl_client_hello_by_lua_block { balancer.client_hello() }"] : []),
      ],
      init: withMaps && carrier === "core" ? ", maps = true" : "",
      ...(carrier === "locations" && {
        routes: [
          ...locationsServer(bundled ? [...BUNDLED_SERVER_DIRECTIVES, ...BUNDLED_SERVER] : OWN_SERVER),
          ...(questions === undefined ? [] : withoutLocation(questions)),
        ],
      }),
      ...(questions !== undefined && { logged: LOGGED }),
      ...(bundled && { lua: bundledLua(options) }),
    },
  });
}

/** The one server of the carrier locations: what no dynamic location takes is answered here. */
export const LOCATIONS_SERVER_NAME = "_";
/**
 * The controller asks workers all the time: that is nothing for the access log. Questions are known by a path that no client can name,
 * and which reaches no peer: a default backend, which takes any host, would learn it.
 */
const LOGGED = "njet_kic_logged";

/**
 * Statuses of requests of which NGINX may not know the path yet: it can't lead those to a named location, and would answer 500. They
 * have NGINX's own pages.
 */
const WITHOUT_A_PATH = ["400", "408", "414", "505"];
const PAGES = OWN_PAGES.split(" ").filter((status) => !WITHOUT_A_PATH.includes(status));
const OWN_SERVER = [
  `error_page ${PAGES.join(" ")} @njet_kic_page;`,
  "error_page 494 =431 @njet_kic_page;",
  "log_by_lua_block { balancer.log() }",
  "header_filter_by_lua_block { balancer.respond() }",
  "location @njet_kic_page { content_by_lua_block { balancer.page() } }",
];

function locationsServer(balancing: readonly string[]): string[] {
  return [
    `server_name ${LOCATIONS_SERVER_NAME};`,
    "client_max_body_size 0;",
    ...balancing,
    ...LOCATIONS_SERVER_DIRECTIVES,
    "location / { return 404; }",
  ];
}

/** Declared here, since OpenNJet can't add a map that is like these; what they say comes by the dynamic map API. */
function certificateMaps({ chain, key }: { chain: string; key: string }): string[] {
  const map = (name: string, value: string) => `map $ssl_server_name $${name} { default ${value}; }`;
  return [
    map(CERTIFICATE_MAPS.certificate, quoted(chain)),
    map(CERTIFICATE_MAPS.key, quoted(key)),
    map(CERTIFICATE_MAPS.version, '""'),
  ];
}

function controlServer(options: OpenNjetConfigurationOptions): string {
  const { modulesFolder, runDirectory: run, carrier, api, stats, user, errorLog, errorLevel } = options;
  const modules = moduleFiles(carrier).control.filter((file) => stats !== undefined || !file.includes("_vts"));
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const where = "socket" in api ? `unix:${unixPath(api.socket)}` : `127.0.0.1:${portText(api.port)}`;
  return [
    ...(user === undefined ? [] : [`user ${quoted(user.name)} ${quoted(user.group)};`]),
    ...modules.map((file) => `load_module ${quoted(join(modulesFolder, file))};`),
    `error_log ${errorLog === "stderr" ? "stderr" : quoted(errorLog)} ${errorLevel};`,
    "events {",
    "  worker_connections 1024;",
    "}",
    "http {",
    `  dyn_kv_conf ${NO_TOPICS};`,
    ...temp.map((name) => `  ${name}_temp_path ${quoted(join(run, `control_${name}`))};`),
    "  access_log off;",
    "  server_tokens off;",
    "  server {",
    `    listen ${where};`,
    `    ${MOST_API_BODY}`,
    "    client_body_buffer_size 5m;",
    "    location /api { dyn_module_api; }",
    "    location / { return 404; }",
    "  }",
    ...(stats === undefined ? [] : statsServer(stats)),
    "}",
    "",
  ].join("\n");
}

/** The exact path alone: below it VTS has one with which counters can be reset. */
function statsServer(stats: NginxListener): string[] {
  return [
    "  server {",
    ...listen(stats, "").map((line) => `    ${line.replace(" ;", ";")}`),
    "    location = /stats { vhost_traffic_status_display; vhost_traffic_status_display_format prometheus; }",
    "    location / { return 404; }",
    "  }",
  ];
}

function portText(port: number): string {
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new RangeError(`not a port: ${port}`);
  return String(port);
}
