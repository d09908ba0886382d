import { Client } from "undici";
import type { Piece } from "./piece.js";
import { decodeRecords, encodeRecord } from "./record.js";

/** Milliseconds that NGINX has to answer; it waits 5 s for a writer and 5 s for its workers itself. */
const ANSWER_TIME = 30_000;
const MOST_ANSWER = 256 * 1024 * 1024;
const NOT_FOUND = 404;
const CONFLICT = 409;
const FULL = 507;
/** Statuses that a second try would not change. */
const FINAL = [400, 413, FULL];

/** A worker of NGINX, and what it has in force. */
export interface WorkerState {
  id: number;
  pid: number;
  /** Number of the last batch that it has acknowledged, and when (seconds since the epoch). */
  seq: number;
  time: number;
  /** Checksum and number of its pieces, as of `DigestIndex`. */
  sum: string;
  count: number;
}

/** The state of NGINX in short. */
export interface StateSummary {
  generation: string;
  /** Number of the last batch; it begins anew when NGINX does. */
  seq: number;
  sum: string;
  count: number;
  /** When the state began, in milliseconds since the epoch. */
  since: number;
  /** Batches that others than the controller have posted since then. */
  posts: number;
  /** Process number of the master. */
  master: number;
  workers: WorkerState[];
}

/** A piece that NGINX refused; what it held stays in force. */
export interface RefusedPiece {
  kind: number;
  key: string;
  code: string;
  message: string;
}

/** What came of a batch. */
export interface BatchAnswer extends StateSummary {
  /** Ids of workers that have not acknowledged it in time. */
  late: number[];
  failures: RefusedPiece[];
}

/** NGINX refused a request as a whole. `code` is that of its control endpoint. */
export class ControlError extends Error {
  override readonly name = "ControlError";

  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
  ) {
    super(message);
  }

  /** What a piece is refused with, where a second try would not change that; undefined where it might. */
  get refusal(): "PROXY_STATE_FULL" | "PROXY_STEP_FAILED" | undefined {
    if (!FINAL.includes(this.status)) return undefined;
    return this.status === FULL ? "PROXY_STATE_FULL" : "PROXY_STEP_FAILED";
  }
}

/** There is no NGINX that answers; the message says why. */
export class NotAnswering extends Error {
  override readonly name = "NotAnswering";
  readonly code = "NGINX_NOT_ANSWERING";
}

/** Speaks with the control endpoint of an NGINX over its unix socket. Requests fail with the system's errors, or a ControlError. */
export class ControlClient {
  private readonly client: Client;

  /** `token` is secret: it is sent, and never told. */
  constructor(
    socketPath: string,
    private readonly token: string,
  ) {
    this.client = new Client("http://njet-kic", {
      socketPath,
      pipelining: 1,
      headersTimeout: ANSWER_TIME,
      bodyTimeout: ANSWER_TIME,
      keepAliveTimeout: 4_000,
      connect: { timeout: 2_000 },
    });
  }

  async state(): Promise<StateSummary> {
    return (await this.ask("GET", "/state")) as StateSummary;
  }

  /** The state with the digest of each piece, by name. */
  async pieces(): Promise<StateSummary & { pieces: Record<string, string> }> {
    return (await this.ask("GET", "/state?pieces")) as StateSummary & { pieces: Record<string, string> };
  }

  /**
   * Hands pieces in as one batch; resolves when all workers have what was taken, or have had time for it. `everything` has
   * each worker compare all that it holds with the shared state.
   */
  async post(
    pieces: readonly Piece[],
    options: { generation?: string; everything?: boolean } = {},
  ): Promise<BatchAnswer> {
    const path = options.everything ? "/state?everything" : "/state";
    return (await this.ask("POST", path, Buffer.concat(pieces.map(encodeRecord)), options.generation)) as BatchAnswer;
  }

  /** What others have posted and is to be kept; undefined where NGINX takes no posts. */
  async kept(): Promise<Piece[] | undefined> {
    const { status, body } = await this.exchange("GET", "/configuration/kept");
    if (status === NOT_FOUND) return undefined;
    const pieces = status === 200 ? decodeRecords(body) : undefined;
    if (pieces === undefined) throw refusal(status, parse(body));
    return pieces;
  }

  /**
   * Puts back what others have posted to an earlier NGINX. Resolves with what was refused; undefined where somebody has posted to
   * this one, which is newer: nothing is changed then.
   */
  async putBack(pieces: readonly Piece[]): Promise<RefusedPiece[] | undefined> {
    const bytes = Buffer.concat(pieces.map(encodeRecord));
    const { status, body } = await this.exchange("POST", "/configuration/kept", bytes);
    if (status === CONFLICT) return undefined;
    const answer = parse(body);
    if (status !== 200) throw refusal(status, answer);
    return (answer as { failures: RefusedPiece[] }).failures;
  }

  /** What the workers have counted; its form is that of `counters.ts`. */
  counters(): Promise<unknown> {
    return this.ask("GET", "/counters");
  }

  /** Ends the connection; requests under way fail. */
  async close(): Promise<void> {
    await this.client.destroy();
  }

  private async ask(method: "GET" | "POST", path: string, bytes?: Buffer, generation?: string): Promise<unknown> {
    const { status, body } = await this.exchange(method, path, bytes, generation);
    const answer = parse(body);
    if (status === 200 && typeof answer === "object" && answer !== null) return answer;
    throw refusal(status, answer);
  }

  private async exchange(
    method: "GET" | "POST",
    path: string,
    bytes?: Buffer,
    generation?: string,
  ): Promise<{ status: number; body: Buffer }> {
    const response = await this.client.request({
      method,
      path,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(bytes && { "content-type": "application/octet-stream" }),
        ...(generation !== undefined && { "x-njet-generation": generation }),
      },
      body: bytes ?? null,
    });
    return { status: response.statusCode, body: await readAll(response.body) };
  }
}

async function readAll(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > MOST_ANSWER) throw new ControlError("STATE_ANSWER", 0, "the control endpoint answers without end");
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function refusal(status: number, answer: unknown): ControlError {
  const { code, message } = (answer ?? {}) as { code?: unknown; message?: unknown };
  return new ControlError(
    typeof code === "string" ? code : "STATE_ANSWER",
    status,
    typeof message === "string" ? message : `the control endpoint answered ${status}`,
  );
}
