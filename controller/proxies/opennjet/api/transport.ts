import { errors, Pool } from "undici";
import {
  BodyTooLargeError,
  ConnectionLostError,
  type FailedCall,
  InvalidAnswerError,
  NotReachableError,
} from "./errors.js";
import { redact } from "./redact.js";

/** Bytes of a body that the modules of OpenNJet read; `LOCATION_MAX_BODY_LEN` and its like. */
export const MOST_BODY = 5_242_880;
/** Bytes of an answer. The states of 10,000 members have half of it. */
const MOST_ANSWER = 64 * 1024 * 1024;
/** Milliseconds. The control server itself gives up after 2 s. */
const ANSWER_TIME = 10_000;
const CONNECT_TIME = 2_000;
/** Milliseconds that a connection is kept; well below what servers of this family keep theirs. */
const KEPT = 4_000;
/** A single process answers; some connections let reads pass a change that takes long. */
const CONNECTIONS = 4;

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A request to a control server. */
export interface Call {
  method: Method;
  path: string;
  /** Query without `?`; not shown in errors. */
  query?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Texts of the request that no message may quote. */
  secrets?: readonly string[];
}

/** What was answered to a call. */
export interface Answer {
  call: Call;
  status: number;
  text: string;
}

export interface TransportOptions {
  /** `http://127.0.0.1:8081`. */
  origin: string;
  /** Instead of the host of `origin`. */
  socketPath?: string;
  /** Milliseconds for the whole of an answer; 10,000 without. */
  timeoutMs?: number;
  /** Sent with each request. Secret: never shown. */
  token?: string;
  /** Largest body in bytes; that of OpenNJet without. */
  mostBody?: number;
}

/** Kept connections to one control server. A request is sent once: whether to repeat it is the caller's decision. */
export class Transport {
  private readonly pool: Pool;
  private readonly mostBody: number;

  constructor(private readonly options: TransportOptions) {
    const time = options.timeoutMs ?? ANSWER_TIME;
    this.mostBody = options.mostBody ?? MOST_BODY;
    this.pool = new Pool(options.origin, {
      ...(options.socketPath !== undefined && { socketPath: options.socketPath }),
      connections: CONNECTIONS,
      pipelining: 1,
      headersTimeout: time,
      bodyTimeout: time,
      keepAliveTimeout: KEPT,
      maxResponseSize: MOST_ANSWER,
      connect: { timeout: CONNECT_TIME },
    });
  }

  /**
   * Sends a request. Throws BodyTooLargeError and NotReachableError where nothing was sent, ConnectionLostError where no
   * answer came, InvalidAnswerError where what came is no HTTP or has no end.
   */
  async send(call: Call): Promise<Answer> {
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    const size = body === null ? 0 : Buffer.byteLength(body);
    if (size > this.mostBody) {
      throw new BodyTooLargeError(`the body has ${size} bytes, more than ${this.mostBody}`, failed(call, 0));
    }
    try {
      const { statusCode, body: answer } = await this.pool.request({
        method: call.method,
        path: call.query === undefined ? call.path : `${call.path}?${call.query}`,
        headers: {
          ...(body !== null && { "content-type": "application/json" }),
          ...(this.options.token !== undefined && { authorization: `Bearer ${this.options.token}` }),
        },
        body,
      });
      return { call, status: statusCode, text: await answer.text() };
    } catch (error) {
      throw connectionError(error, call);
    }
  }

  /** Waits for the requests under way, then ends the connections. */
  async close(): Promise<void> {
    await this.pool.close();
  }
}

/** The facts of a call for its error. */
export function failed(call: Call, status: number, answerCode?: number | string): FailedCall {
  return { method: call.method, path: call.path, status, answerCode };
}

function connectionError(error: unknown, call: Call): Error {
  const reason = redact(error instanceof Error ? error.message || error.name : String(error), call.secrets);
  if (notConnected(error)) return new NotReachableError(reason, failed(call, 0), { cause: error });
  if (error instanceof errors.ResponseExceededMaxSizeError || error instanceof errors.HTTPParserError) {
    return new InvalidAnswerError(reason, failed(call, 0), { cause: error });
  }
  return new ConnectionLostError(reason, failed(call, 0), { cause: error });
}

/** Whether a request failed before any byte of it was sent. */
function notConnected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(notConnected);
  if (
    error instanceof errors.ConnectTimeoutError ||
    error instanceof errors.ClientClosedError ||
    // Only after `close`, which waits for what is under way.
    error instanceof errors.ClientDestroyedError ||
    error instanceof errors.InvalidArgumentError
  ) {
    return true;
  }
  const { syscall } = error as NodeJS.ErrnoException;
  return syscall === "connect" || syscall === "getaddrinfo";
}
