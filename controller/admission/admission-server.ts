import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { AdmissionAnswer, AdmissionCounters } from "../observability/admission-counters.js";
import type { Logger } from "../observability/logger.js";
import { ReviewError, readReview, reviewOf } from "./admission-review.js";
import { ConnectionLimit } from "./connection-limit.js";
import { type AskedModel, judge } from "./verdict.js";

/** Path of the webhook, as the ValidatingWebhookConfiguration names it. */
export const ADMISSION_PATH = "/validate";

/** Times in milliseconds, sizes in bytes. */
const LIMITS = {
  handshake: 5_000,
  headerTimeout: 5_000,
  requestTimeout: 10_000,
  idle: 30_000,
  keepAlive: 65_000,
  headSize: 8 * 1024,
  connections: 64,
  /** An object has 1.5 MiB at most in the store; a change brings it twice. */
  bodySize: 4 * 1024 * 1024,
  /** Requests whose body is being read, or which wait for their turn: with their size, this bounds the memory. */
  underWay: 16,
  /** A body that takes longer has to make room for another request: that of an API server is there at once. */
  patience: 1_000,
  /** What is under way may take so long to end when the port is closed. */
  closing: 2_000,
};

export interface AdmissionServerOptions {
  model: AskedModel;
  checker: PatternChecker;
  /** Whether objects of a namespace are followed at all. */
  follows: (namespace: string) => boolean;
  /** Whether the model is a whole one: before, it would take the unknown for missing. */
  complete: () => boolean;
  /** Milliseconds since 1970. */
  now: () => number;
  counters: AdmissionCounters;
  logger: Logger;
  /** Only clients with a certificate of an authority of the context are let in. */
  clientCertificates: boolean;
  /** Milliseconds that a body may take where others wait; a second by default. */
  patience?: number;
}

/** A request whose body is being read. */
interface Reading {
  since: number;
  /** Ends it with a refusal. */
  giveUp(refusal: HttpRefusal): void;
}

/**
 * The port of the validating webhook: POST /validate with an AdmissionReview, over TLS. It asks the model and changes
 * nothing. Until `use` has been called there is no certificate, and no handshake succeeds.
 */
export class AdmissionServer {
  readonly #options: AdmissionServerOptions;
  readonly #server: Server;
  readonly #connections = new ConnectionLimit(LIMITS.connections);
  /** Oldest first. */
  readonly #reading = new Set<Reading>();
  /** Those whose body is there, and which are not answered yet. */
  readonly #read = new Set<Reading>();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: AdmissionServerOptions) {
    this.#options = options;
    const { clientCertificates } = options;
    this.#server = createServer(
      {
        maxHeaderSize: LIMITS.headSize,
        insecureHTTPParser: false,
        connectionsCheckingInterval: 1_000,
        handshakeTimeout: LIMITS.handshake,
        requestCert: clientCertificates,
        rejectUnauthorized: clientCertificates,
      },
      (request, response) => this.#take(request, response),
    );
    this.#server.headersTimeout = LIMITS.headerTimeout;
    this.#server.requestTimeout = LIMITS.requestTimeout;
    this.#server.timeout = LIMITS.idle;
    this.#server.keepAliveTimeout = LIMITS.keepAlive;
    this.#server.on("connection", (socket: Socket) => this.#connections.opened(socket));
    // Neither is served; without a listener Node would hand the connection to nobody and leave it open.
    this.#server.on("upgrade", (_request, socket) => socket.destroy());
    this.#server.on("connect", (_request, socket) => socket.destroy());
  }

  /** Sets the certificate that new connections are shown. Throws where it can't be used. */
  use(context: SecureContextOptions): void {
    this.#server.setSecureContext(context);
  }

  /** Opens the port (0: any free one). Rejects with the system's error, such as EADDRINUSE. */
  listen(address: string, port: number): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: address, port }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => this.#options.logger.error("admission listener failed", { error }));
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Closes the port; requests under way are answered first, for two seconds at most. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const timer = setTimeout(() => this.#server.closeAllConnections(), LIMITS.closing);
    await closed;
    clearTimeout(timer);
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) {
      this.#refuse(response, refusal);
      return;
    }
    const reading: Reading = {
      since: performance.now(),
      giveUp: (why) => {
        response.once("finish", () => request.destroy());
        this.#refuse(response, why);
      },
    };
    this.#reading.add(reading);
    response.once("close", () => {
      this.#reading.delete(reading);
      this.#read.delete(reading);
    });
    const parts: Buffer[] = [];
    let size = 0;
    request.on("data", (part: Buffer) => {
      size += part.length;
      if (size <= LIMITS.bodySize) parts.push(part);
      else if (!response.headersSent) this.#refuse(response, TOO_LARGE);
    });
    request.on("end", () => {
      if (response.headersSent) return;
      this.#reading.delete(reading);
      this.#read.add(reading);
      this.#inTurn(() => this.#answer(Buffer.concat(parts), response));
    });
    // A client that leaves ends its request; there is nobody to tell.
    request.on("error", () => undefined);
  }

  /** Why a request is turned away before its body is read. */
  #refusalOf(request: IncomingMessage): HttpRefusal | undefined {
    if (pathOf(request.url ?? "") !== ADMISSION_PATH) return NOT_FOUND;
    if (request.method !== "POST") return WRONG_METHOD;
    if (!/^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "")) return WRONG_TYPE;
    if (Number(request.headers["content-length"] ?? 0) > LIMITS.bodySize) return TOO_LARGE;
    if (!this.#options.complete()) return INCOMPLETE;
    if (this.#reading.size + this.#read.size < LIMITS.underWay) return undefined;
    const [oldest] = this.#reading;
    const patience = this.#options.patience ?? LIMITS.patience;
    if (oldest === undefined || performance.now() - oldest.since <= patience) return BUSY;
    this.#reading.delete(oldest);
    oldest.giveUp(SLOW);
    return undefined;
  }

  /** One answer after another, and as much time for everything else as each has taken: the proxy may run in this process. */
  #inTurn(answer: () => void): void {
    this.#turn = this.#turn.then(async () => {
      const begun = performance.now();
      answer();
      await new Promise((resolve) => setTimeout(resolve, performance.now() - begun));
    });
  }

  #answer(body: Buffer, response: ServerResponse): void {
    // The client has left, or had to make room.
    if (response.headersSent || response.destroyed) return;
    const { counters, logger, model, checker, follows, now } = this.#options;
    const begun = performance.now();
    try {
      const request = readReview(JSON.parse(body.toString("utf8")));
      const verdict = judge(request, { model, checker, follows, now: now(), clock: () => performance.now() });
      const text = JSON.stringify(reviewOf(request, verdict));
      counters.answered(verdict.answer);
      counters.took((performance.now() - begun) / 1000);
      if (response.socket !== null) this.#connections.wasOfUse(response.socket);
      send(response, 200, "application/json", text);
    } catch (error) {
      if (error instanceof ReviewError || error instanceof SyntaxError) {
        const message = error instanceof ReviewError ? error.message : "the body is no JSON";
        this.#refuse(response, { status: 400, message, answer: "bad" });
      } else {
        logger.error("admission failed", { error });
        this.#refuse(response, FAILED);
      }
    }
  }

  /** The connection ends with it: the rest of a body is not waited for. */
  #refuse(response: ServerResponse, { status, message, answer, headers }: HttpRefusal): void {
    this.#options.counters.answered(answer);
    response.shouldKeepAlive = false;
    for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
    send(response, status, "text/plain; charset=utf-8", `${message}\n`);
  }
}

interface HttpRefusal {
  status: number;
  message: string;
  answer: AdmissionAnswer;
  headers?: Record<string, string>;
}

const NOT_FOUND: HttpRefusal = { status: 404, message: "not found", answer: "bad" };
const WRONG_METHOD: HttpRefusal = {
  status: 405,
  message: "method not allowed",
  answer: "bad",
  headers: { Allow: "POST" },
};
const WRONG_TYPE: HttpRefusal = { status: 415, message: "the body has to be application/json", answer: "bad" };
const TOO_LARGE: HttpRefusal = { status: 413, message: `more than ${LIMITS.bodySize} bytes`, answer: "bad" };
const FAILED: HttpRefusal = { status: 500, message: "the review failed", answer: "failed" };
/** The API server then does what failurePolicy says. */
const INCOMPLETE: HttpRefusal = {
  status: 503,
  message: "the objects of the cluster are still being read",
  answer: "unavailable",
};
const SLOW: HttpRefusal = { status: 408, message: "others wait for their turn", answer: "busy" };
/** The API server asks again where it is told when to. */
const BUSY: HttpRefusal = {
  status: 429,
  message: "too many requests",
  answer: "busy",
  headers: { "Retry-After": "1" },
};

/** The API server adds its time-out as a query. */
function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}
