/** What the text of nginx.conf follows from. */
import type { NginxListener } from "./configured-values.js";

/** Lua in the place of ours. It has `balancer.init_worker` and `balancer.balance`, too. */
export interface OtherLua {
  /** `lua_package_path`. */
  path: string;
  /** Lines of `http`, such as its shared dicts. */
  http: readonly string[];
  /** Lua of `init_by_lua`. */
  init: readonly string[];
  /** Lines of the server on the control socket, in place of our control endpoint. */
  control: readonly string[];
}

/** Lines of a server of NGINX's family that has more than NGINX. */
export interface FamilyLines {
  main: readonly string[];
  http: readonly string[];
  /** Of the server with the TLS listener: HTTP/2, and where certificates come from. */
  tls: readonly string[];
  /** More fields for `balancer.init`, as Lua. */
  init: string;
  /** The lines of the one server of both listeners, where something else than the core decides on routes. */
  routes?: readonly string[];
  /** A variable that is empty, or 0, for requests that the access log does not have. */
  logged?: string;
  /** Undefined: our Lua. */
  lua?: OtherLua;
}

export interface NginxConfigurationOptions {
  /** Paths for `load_module`. */
  modules: readonly string[];
  luaPath: string;
  luaCPath: string;
  /** Folder that has `balancer/`. */
  packageRoot: string;
  /** The native core. */
  library: string;
  /** Absolute. Holds the configuration, the control socket and secrets; of mode 0700. */
  runDirectory: string;
  /** Absolute. Holds bodies that are too large for memory; workers must be able to get into it. The run directory by default. */
  tempDirectory?: string;
  /** Unix socket of the control endpoint. */
  controlSocket: string;
  tokenFile: string;
  journalFile: string;
  /** Undefined: no plain listener. */
  http?: NginxListener;
  /** Undefined: no TLS listener. */
  https?: NginxListener;
  /** PEM files for handshakes that no certificate of the state fits; needed with `https`. */
  defaultCertificate?: { chain: string; key: string };
  /** 0: one for each core. */
  workers: number;
  connections: number;
  /** User of the workers, and its group; undefined: whoever starts NGINX. Master and files stay root's. */
  user?: { name: string; group: string };
  /** Networks whose X-Forwarded-* headers, or PROXY protocol, are believed. */
  trustedProxies: readonly string[];
  proxyProtocol: boolean;
  allowUnderscoreHeaders: boolean;
  /** File or `stderr`; undefined: none. */
  accessLog?: string;
  errorLog: string;
  errorLevel: "debug" | "info" | "notice" | "warn" | "error";
  /** Bytes of a request body where an upstream sets none; 0: any number. */
  bodyLimit: number;
  /** MiB of the shared dict with the state. */
  stateSize: number;
  /** Milliseconds that old workers have after a reload or a quit. */
  shutdownTimeout: number;
  /** Undefined: NGINX itself. */
  family?: FamilyLines;
}

/** What deploy/nginx/nginx.conf is made of: an NGINX in a container of its own, for a controller that attaches to it. */
export const DEFAULT_CONFIGURATION: NginxConfigurationOptions = {
  modules: ["/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so"],
  luaPath: "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua",
  luaCPath: "/usr/lib/x86_64-linux-gnu/lua/5.1/?.so",
  packageRoot: "/usr/lib/njet-kic",
  library: "/usr/lib/njet-kic/njet-kic-core.so",
  runDirectory: "/run/njet-kic",
  controlSocket: "/run/njet-kic/control.sock",
  tokenFile: "/run/njet-kic/token",
  journalFile: "/run/njet-kic/state.journal",
  http: { port: 80 },
  https: { port: 443 },
  defaultCertificate: { chain: "/run/njet-kic/default.pem", key: "/run/njet-kic/default.key" },
  workers: 0,
  connections: 16_384,
  trustedProxies: [],
  proxyProtocol: false,
  allowUnderscoreHeaders: false,
  accessLog: undefined,
  errorLog: "stderr",
  errorLevel: "warn",
  bodyLimit: 0,
  stateSize: 256,
  shutdownTimeout: 240_000,
};
