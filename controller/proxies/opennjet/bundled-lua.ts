/** The Lua balancer that OpenNJet itself brings, in the static configuration. Nothing of ours is loaded beside it. */
import { join } from "node:path";
import type { NginxConfigurationOptions, OtherLua } from "../nginx/configuration-options.js";
import { quotedPaths } from "../nginx/configured-values.js";

/** Path of the question whether a worker has a backend; the name is the argument `name`. */
export const WORKER_PATH = "/worker";
/** The balancer reads no body that is longer, and no dict has room for twice as much. */
const MOST_BODY = 64;

type Options = Pick<NginxConfigurationOptions, "luaPath" | "stateSize"> & { modulesFolder: string };

/**
 * Its endpoint asks nobody for a token: so it is on the control socket alone, in a folder of mode 0700, and of its paths only the one
 * for backends. That for certificates would give private keys away, and serves none.
 */
export function bundledLua({ luaPath, modulesFolder, stateSize }: Options): OtherLua {
  return {
    path: quotedPaths([luaPath, join(modulesFolder, "?.lua")].join(";")),
    http: [`lua_shared_dict configuration_data ${stateSize}m;`],
    init: [
      'balancer = require "balancer"',
      'configuration = require "configuration"',
      'process = require "njt.process"',
    ],
    control: [
      `client_max_body_size ${MOST_BODY}m;`,
      // A disk that is full must not keep posts away.
      `client_body_buffer_size ${MOST_BODY}m;`,
      "default_type application/json;",
      "location = /configuration/backends { content_by_lua_block { configuration.call() } }",
      `location = /state { content_by_lua_block { njt.print('{"master":', process.get_master_pid(), '}') } }`,
      `location = ${WORKER_PATH} {`,
      `  content_by_lua_block { njt.print('{"pid":', njt.worker.pid(), ',"has":', tostring(balancer.get_balancer_by_upstream_name(njt.var.arg_name) ~= nil), '}') }`,
      "}",
      "location / { return 404; }",
    ],
  };
}

/** Lines of the server for requests. A backend that is not there is 503; answers of the proxy itself name none. */
export const BUNDLED_SERVER = [
  'rewrite_by_lua_block { if njt.var.proxy_upstream_name ~= "" then balancer.rewrite() end }',
  "error_page 494 =431 @njet_kic_431;",
  "location @njet_kic_431 { rewrite_by_lua_block { return } return 431; }",
];
