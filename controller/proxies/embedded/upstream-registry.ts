import { buildConnector, Pool } from "undici";
import type { SessionCookie, Upstream, UpstreamTransport } from "../../model/types.js";
import type { PeerCounts } from "../request-counts.js";

/**
 * NGINX's defaults: proxy_connect_timeout, proxy_read_timeout, proxy_send_timeout. undici's clock for the first two is
 * coarse: they end up to a second late, never early.
 */
export const DEFAULT_TIMEOUT = 60_000;

/**
 * Server name that every request carries inside undici, which otherwise takes it from the Host header and drops the
 * connection whenever that changes. It never reaches a peer: the connector sends no server name, as NGINX.
 */
export const INNER_SERVER_NAME = "peer";

/** Pools that are open at most; those with requests under way are ended softly, and opened anew by the next request. */
const MOST_POOLS = 512;

/** Connections to one origin with one set of connection settings; shared by the upstreams that use it. */
interface Origin {
  url: string;
  transport: UpstreamTransport;
  /** How many peers of registered upstreams point here. */
  users: number;
  pool: Pool | undefined;
}

/** A peer of one upstream. */
export interface RegisteredPeer {
  /** `address:port`, IPv6 in brackets. */
  name: string;
  origin: Origin;
  /** Made by its first request; it stays as long as the peer is one of the upstream. */
  counts: PeerCounts | undefined;
}

export interface RegisteredUpstream {
  key: string;
  display: string;
  transport: UpstreamTransport;
  sessionCookie: SessionCookie | undefined;
  /** By name. */
  peers: ReadonlyMap<string, RegisteredPeer>;
}

/**
 * The upstreams in force and the connection pools of their peers. A pool is made by the first request to its peer
 * and closed when the last upstream that names the peer lets it go; requests under way on it end first. It also goes with
 * its last connection, and where many are open the one that was used least recently goes: what idle connections cost is
 * bounded, as with NGINX's `keepalive`.
 */
export class UpstreamRegistry {
  private readonly upstreams = new Map<string, RegisteredUpstream>();
  private readonly origins = new Map<string, Origin>();
  private readonly closing = new Set<Pool>();
  /** Origins with an open pool, the one that was used least recently first. */
  private readonly used = new Set<Origin>();

  set(upstream: Upstream): void {
    const before = this.upstreams.get(upstream.peers.key);
    const peers = new Map<string, RegisteredPeer>();
    for (const { address, port } of upstream.peers.peers) {
      const name = peerName(address, port);
      if (peers.has(name)) continue;
      const origin = this.acquire(name, upstream.transport);
      peers.set(name, { name, origin, counts: before?.peers.get(name)?.counts });
    }
    const { key, display } = upstream.peers;
    const { transport, sessionCookie } = upstream;
    this.upstreams.set(key, { key, display, transport, sessionCookie, peers });
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

  /** Peers that requests were counted for. */
  *counted(): Iterable<{ upstream: string; backend: string; counts: PeerCounts }> {
    for (const { key, peers } of this.upstreams.values()) {
      for (const { name, counts } of peers.values()) {
        if (counts !== undefined) yield { upstream: key, backend: name, counts };
      }
    }
  }

  /** The pool for a peer of an upstream; undefined where nothing leads to that peer any more. */
  pool({ origin }: RegisteredPeer): Pool | undefined {
    // Without users it was let go of while a request still held the upstream: a new pool would never be closed.
    if (origin.users === 0) return undefined;
    origin.pool ??= this.open(origin);
    this.used.delete(origin);
    this.used.add(origin);
    if (this.used.size > MOST_POOLS) this.closePool(this.used.values().next().value as Origin);
    return origin.pool;
  }

  /** Closes idle connections to a peer; requests under way on it end first. The next request to it opens a new one. */
  closeIdle(key: string, address: string, port: number): void {
    const peer = this.upstreams.get(key)?.peers.get(peerName(address, port));
    if (peer !== undefined) this.closePool(peer.origin);
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
    this.used.clear();
    await Promise.allSettled(pools.map((pool) => pool.destroy()));
  }

  private open(origin: Origin): Pool {
    const pool = openPool(origin);
    const closeUnused = () => {
      const { connected, size } = pool.stats;
      if (origin.pool === pool && connected === 0 && size === 0) this.closePool(origin);
    };
    return pool.on("disconnect", closeUnused).on("connectionError", closeUnused);
  }

  private acquire(peer: string, transport: UpstreamTransport): Origin {
    const url = `${transport.tls ? "https" : "http"}://${peer}`;
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
    for (const { origin } of upstream.peers.values()) {
      if (--origin.users > 0) continue;
      this.origins.delete(originName(origin.url, origin.transport));
      this.closePool(origin);
    }
  }

  private closePool(origin: Origin): void {
    const { pool } = origin;
    if (pool === undefined) return;
    origin.pool = undefined;
    this.used.delete(origin);
    this.closing.add(pool);
    pool
      .close()
      .catch(() => undefined)
      .finally(() => this.closing.delete(pool));
  }
}

/** `address:port`, IPv6 in brackets. */
export function peerName(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
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
    connect: (options, callback) => {
      connect({ ...options, servername: undefined }, (...result) => {
        // Ahead of undici's own listener.
        result[1]?.on("error", renameReset);
        callback(...result);
      });
    },
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

/**
 * undici takes ECONNRESET for the regular end of a body that lasts until the connection ends, and a client could not
 * tell the part that it got from the whole. Under another code it is the failure that it is.
 */
function renameReset(error: NodeJS.ErrnoException): void {
  if (error.code === "ECONNRESET") error.code = "PEER_RESET";
}
