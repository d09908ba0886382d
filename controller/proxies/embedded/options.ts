import { randomUUID } from "node:crypto";
import type { RoutingTable } from "../../../core-wasm/binding/api.js";
import type { LineSink } from "../../observability/line-sink.js";
import type { Logger } from "../../observability/logger.js";

export interface ListenAddress {
  /** Address to bind; `::` (all, IPv4 too) by default. */
  address?: string;
  /** 0 means any free port. */
  port: number;
}

/** What one client may take. Times in milliseconds, sizes in bytes. */
export interface ClientLimits {
  /** From the first byte of a request to the end of its head. NGINX: client_header_timeout. */
  headerTimeout: number;
  /** Between two reads of a request body. NGINX: client_body_timeout. */
  bodyTimeout: number;
  /** While a client does not take what is sent to it. NGINX: send_timeout. */
  sendTimeout: number;
  /** How long an idle connection is kept. NGINX: keepalive_timeout. */
  keepAliveTimeout: number;
  /** Request line and headers together; more is 431. */
  maxHeadSize: number;
  /** Characters of the request target; more is 414. NGINX: large_client_header_buffers. */
  maxTargetLength: number;
  /**
   * Body size where an upstream sets none; 0 means without limit. Upstreams that follow NGINX's default of 1 MiB say so
   * themselves: a proxy that streams has no buffer to protect.
   */
  maxBodySize: number;
  /** Connections on each listener; further ones are closed at once. */
  maxConnections: number;
  /** How long the rest of a body is read and thrown away after an early answer, so that the answer arrives. */
  lingerTimeout: number;
  /** Body bytes kept so that a request can be repeated towards another peer. */
  replaySize: number;
}

export interface EmbeddedProxyOptions {
  table: RoutingTable;
  logger: Logger;
  /** Undefined: no plain listener. */
  http?: ListenAddress;
  /** Undefined: no TLS listener. */
  https?: ListenAddress;
  /** PEM; for handshakes without a name or with an unknown one. A self-signed one is made where none is given. */
  defaultCertificate?: { chain: string; key: string };
  /** Networks whose X-Forwarded-* headers are believed: addresses or CIDR. None by default. */
  trustedProxies?: readonly string[];
  /** Passes header names with `_` on and shows them to the core; they are dropped by default, as in NGINX. */
  allowUnderscoreHeaders?: boolean;
  /** Value of the Server header; empty for none. */
  serverName?: string;
  limits?: Partial<ClientLimits>;
  /** Undefined: no access log. */
  accessLog?: LineSink;
  /** Counts requests for `EmbeddedProxy.metrics`; true by default. */
  metrics?: boolean;
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** Milliseconds of any origin, never going back; for fail timeouts and slow starts of peers. */
  clock?: () => number;
  /** A number from [0, 2^32), for splits. */
  random?: () => number;
  /** A new request id, at most 128 printable characters. */
  requestId?: () => string;
}

export const DEFAULT_LIMITS: ClientLimits = {
  headerTimeout: 60_000,
  bodyTimeout: 60_000,
  sendTimeout: 60_000,
  keepAliveTimeout: 75_000,
  maxHeadSize: 32 * 1024,
  maxTargetLength: 8 * 1024,
  maxBodySize: 0,
  maxConnections: 16_384,
  lingerTimeout: 5_000,
  replaySize: 64 * 1024,
};

/** Options with every default filled in. */
export interface Settings extends Required<Omit<EmbeddedProxyOptions, OptionalPart | "limits">> {
  http: ListenAddress | undefined;
  https: ListenAddress | undefined;
  defaultCertificate: { chain: string; key: string } | undefined;
  accessLog: LineSink | undefined;
  limits: ClientLimits;
}

type OptionalPart = "http" | "https" | "defaultCertificate" | "accessLog";

export function settingsOf(options: EmbeddedProxyOptions): Settings {
  return {
    table: options.table,
    logger: options.logger,
    http: options.http,
    https: options.https,
    defaultCertificate: options.defaultCertificate,
    trustedProxies: options.trustedProxies ?? [],
    allowUnderscoreHeaders: options.allowUnderscoreHeaders ?? false,
    serverName: options.serverName ?? "njet-kic",
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    accessLog: options.accessLog,
    metrics: options.metrics ?? true,
    now: options.now ?? Date.now,
    clock: options.clock ?? (() => Math.floor(performance.now())),
    random: options.random ?? (() => Math.floor(Math.random() * 0x1_0000_0000)),
    requestId: options.requestId ?? (() => randomUUID().replaceAll("-", "")),
  };
}
