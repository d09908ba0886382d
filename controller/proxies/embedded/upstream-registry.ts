import { buildConnector, Pool } from "undici";
import type { Upstream, UpstreamTransport } from "../../model/types.js";

/** NGINX's defaults: proxy_connect_timeout, proxy_read_timeout, proxy_send_timeout. */
export const DEFAULT_TIMEOUT = 60_000;

/**
 * Server name that every request carries inside undici, which otherwise takes it from the Host header and drops the
 * connection whenever that changes. It never reaches a peer: the connector sends no server name, as NGINX.
 */
export const INNER_SERVER_NAME = "peer";

/** Connections to one origin with one set of connection settings; shared by the upstreams that use it. */
interface Origin {
  url: string;
  transport: UpstreamTransport;
  /** How many peers of registered upstreams point here. */
  users: number;
  pool: Pool | undefined;
}

export interface RegisteredUpstream {
  key: string;
  display: string;
  transport: UpstreamTransport;
  /** Origins by `address port`. */
  origins: ReadonlyMap<string, Origin>;
}

/**
 * The upstreams in force and the connection pools of their peers. A pool is made by the first request to its peer
 * and closed when the last upstream that names the peer lets it go; requests under way on it end first.
 */
export class UpstreamRegistry {
  private readonly upstreams = new Map<string, RegisteredUpstream>();
  private readonly origins = new Map<string, Origin>();
  private readonly closing = new Set<Pool>();

  set(upstream: Upstream): void {
    const before = this.upstreams.get(upstream.peers.key);
    const origins = new Map<string, Origin>();
    for (const peer of upstream.peers.peers) {
      const name = peerName(peer.address, peer.port);
      if (origins.has(name)) continue;
      origins.set(name, this.acquire(peer.address, peer.port, upstream.transport));
    }
    const { key, display } = upstream.peers;
    this.upstreams.set(key, { key, display, transport: upstream.transport, origins });
    // After the new ones are held: a peer that stays keeps its connections.
    if (before !== undefined) this.releaseAll(before);
  }

  remove(key: string): void {
    const before = this.upstreams.get(key);
    if (before === undefined) return;
    this.upstreams.delete(key);
    this.releaseAll(before);
  }

  get(key: string): RegisteredUpstream | undefined {
    return this.upstreams.get(key);
  }

  keys(): string[] {
    return [...this.upstreams.keys()];
  }

  /** The pool for a peer of an upstream; undefined if the peer is not one of it. */
  pool(upstream: RegisteredUpstream, address: string, port: number): Pool | undefined {
    const origin = upstream.origins.get(peerName(address, port));
    // Without users it was let go of while a request still held the upstream: a new pool would never be closed.
    if (origin === undefined || origin.users === 0) return undefined;
    origin.pool ??= openPool(origin);
    return origin.pool;
  }

  /** Pools that hold or may hold connections: open ones and those that still drain. */
  poolCount(): { open: number; draining: number } {
    let open = 0;
    for (const origin of this.origins.values()) if (origin.pool !== undefined) open++;
    return { open, draining: this.closing.size };
  }

  /** Ends every connection at once. */
  async destroy(): Promise<void> {
    const pools = [...this.closing];
    for (const origin of this.origins.values()) if (origin.pool !== undefined) pools.push(origin.pool);
    this.upstreams.clear();
    this.origins.clear();
    await Promise.allSettled(pools.map((pool) => pool.destroy()));
  }

  private acquire(address: string, port: number, transport: UpstreamTransport): Origin {
    const host = address.includes(":") ? `[${address}]` : address;
    const url = `${transport.tls ? "https" : "http"}://${host}:${port}`;
    const name = originName(url, transport);
    let origin = this.origins.get(name);
    if (origin === undefined) {
      origin = { url, transport, users: 0, pool: undefined };
      this.origins.set(name, origin);
    }
    origin.users++;
    return origin;
  }

  private releaseAll(upstream: RegisteredUpstream): void {
    for (const origin of upstream.origins.values()) {
      if (--origin.users > 0) continue;
      this.origins.delete(originName(origin.url, origin.transport));
      const pool = origin.pool;
      if (pool === undefined) continue;
      origin.pool = undefined;
      this.closing.add(pool);
      pool
        .close()
        .catch(() => undefined)
        .finally(() => this.closing.delete(pool));
    }
  }
}

function peerName(address: string, port: number): string {
  return `${address} ${port}`;
}

/** Only settings that belong to a connection tell origins apart; those of a request do not. */
function originName(url: string, transport: UpstreamTransport): string {
  return `${url} ${transport.connectTimeout ?? DEFAULT_TIMEOUT} ${transport.keepalive === 0 ? 0 : 1}`;
}

function openPool(origin: Origin): Pool {
  const connect = buildConnector({
    timeout: origin.transport.connectTimeout ?? DEFAULT_TIMEOUT,
    // Tunnels pass a half-closed connection on; undici itself still ends on the peer's FIN.
    allowHalfOpen: true,
    // As NGINX's default, proxy_ssl_verify off: peers are named by address and have certificates of their own making.
    rejectUnauthorized: false,
  });
  return new Pool(origin.url, {
    connect: (options, callback) => connect({ ...options, servername: undefined }, callback),
    // 0 means one request a connection; 1 means keep-alive without pipelining.
    pipelining: origin.transport.keepalive === 0 ? 0 : 1,
    // Shorter than the idle time of common servers, so that a request rarely meets a connection being closed.
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 60_000,
    // Both are given with each request.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 64 * 1024,
    strictContentLength: true,
  });
}
