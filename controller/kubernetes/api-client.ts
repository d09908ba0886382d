import { Pool } from "undici";
import { ApiError } from "./api-error.js";
import type { ClusterAccess, Credentials } from "./credentials.js";
import { splitLines } from "./lines.js";

/** Time to get a connection, and to get the head of an answer. */
const CONNECT_TIMEOUT = 10_000;
const HEAD_TIMEOUT = 30_000;
/** A projected token is renewed by its file; client-go looks as often. */
const TOKEN_AGE = 60_000;
/** The largest object that a watch may deliver: above etcd's limit of 1.5 MiB for one, with room for its text form. */
const MAX_LINE = 16 * 1024 * 1024;
const USER_AGENT = "njet-kic";

export interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query. */
  path: string;
  body?: unknown;
  /** JSON by default; for PATCH a JSON merge patch (RFC 7386). */
  contentType?: string;
  signal?: AbortSignal;
}

/**
 * Talks to the API server over one pool of keep-alive connections. Credentials are read anew once a minute, and at once
 * after a 401 or a failed TLS handshake, which is then tried a second time.
 */
export class ApiClient {
  readonly #credentials: Credentials;
  readonly #now: () => number;
  #access: Promise<ClusterAccess> | undefined;
  #loadedAt = 0;
  #pool: Pool | undefined;
  #poolKey = "";
  /** Pools that take no new requests, but whose requests have not ended. */
  readonly #retired = new Set<Pool>();

  /** `now` gives milliseconds. */
  constructor(credentials: Credentials, now: () => number) {
    this.#credentials = credentials;
    this.#now = now;
  }

  /** The access in use; read if it is not known yet. */
  access(): Promise<ClusterAccess> {
    if (this.#access === undefined || this.#now() - this.#loadedAt >= TOKEN_AGE) {
      this.#loadedAt = this.#now();
      const loading = this.#credentials.load();
      loading.catch(() => {
        if (this.#access === loading) this.#access = undefined;
      });
      this.#access = loading;
    }
    return this.#access;
  }

  /** Sends a request and returns the parsed answer. Rejects with an ApiError for any status but 2xx. */
  async request(request: ApiRequest): Promise<unknown> {
    const { body } = await this.#send(request, HEAD_TIMEOUT);
    return body.json();
  }

  /**
   * Lines of an answer that does not end by itself, one parsed JSON value each. Ends when the server ends it; rejects
   * when nothing came for `silence` milliseconds, when the connection breaks, and for a line that is no JSON.
   */
  async *stream(path: string, silence: number, signal: AbortSignal): AsyncGenerator<unknown, void, undefined> {
    const { body } = await this.#send({ method: "GET", path, signal }, silence);
    try {
      for await (const line of splitLines(body as AsyncIterable<Buffer>, MAX_LINE)) yield JSON.parse(line);
    } catch (error) {
      this.#doubt(error);
      throw error;
    }
  }

  /** Closes every connection; requests under way fail. */
  async close(): Promise<void> {
    this.#retire();
    await Promise.all([...this.#retired].map((pool) => pool.destroy()));
  }

  async #send(request: ApiRequest, bodyTimeout: number) {
    try {
      return await this.#sendOnce(request, bodyTimeout);
    } catch (error) {
      this.#doubt(error);
      if (request.signal?.aborted || !mayBeCredentials(error)) throw error;
      this.#access = undefined;
      return this.#sendOnce(request, bodyTimeout);
    }
  }

  async #sendOnce(request: ApiRequest, bodyTimeout: number) {
    const access = await this.access();
    const pool = this.#poolFor(access);
    const type =
      request.contentType ?? (request.method === "PATCH" ? "application/merge-patch+json" : "application/json");
    const answer = await pool.request({
      method: request.method,
      path: `${new URL(access.server).pathname.replace(/\/$/, "")}${request.path}`,
      headers: {
        accept: "application/json",
        "user-agent": USER_AGENT,
        ...(access.authorization === undefined ? {} : { authorization: access.authorization }),
        ...(request.body === undefined ? {} : { "content-type": type }),
      },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      ...(request.signal === undefined ? {} : { signal: request.signal }),
      headersTimeout: Math.min(HEAD_TIMEOUT, bodyTimeout),
      bodyTimeout,
    });
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
    const text = await answer.body.text();
    const seconds = Number(answer.headers["retry-after"]);
    throw ApiError.of(answer.statusCode, parsed(text), Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0);
  }

  /** A new pool where certificates or the server are others than before; the old one ends when its requests have. */
  #poolFor(access: ClusterAccess): Pool {
    const { server, ca, cert, key, servername, verify } = access;
    const poolKey = JSON.stringify([server, ...[ca, cert, key].map((pem) => pem?.toString()), servername, verify]);
    if (this.#pool !== undefined && poolKey === this.#poolKey) return this.#pool;
    this.#retire();
    this.#poolKey = poolKey;
    this.#pool = new Pool(new URL(server).origin, {
      connections: null,
      keepAliveTimeout: 30_000,
      connect: {
        timeout: CONNECT_TIMEOUT,
        rejectUnauthorized: verify,
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
        ...(servername === undefined ? {} : { servername }),
      },
    });
    return this.#pool;
  }

  /** After a silence no idle connection is trusted any more: a network that drops packets drops those of all of them. */
  #doubt(error: unknown): void {
    const code = (error as { code?: unknown } | undefined)?.code;
    if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") this.#retire();
  }

  #retire(): void {
    const pool = this.#pool;
    this.#pool = undefined;
    if (pool === undefined) return;
    this.#retired.add(pool);
    pool
      .close()
      .catch(() => undefined)
      .finally(() => this.#retired.delete(pool));
  }
}

/** Codes with which Node refuses a certificate, and the alerts with which a server refuses ours. */
const TLS_CODE = /^(CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_TLS|ERR_SSL)/;

function mayBeCredentials(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 401;
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" && TLS_CODE.test(code);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
