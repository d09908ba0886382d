import { randomUUID } from "node:crypto";
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import type { ChosenPeer, Decision } from "../../binding/index.js";
import type { BundleRouter } from "./bundle-router.js";
import { errorAnswer, findErrorPage } from "./error-answer.js";
import type { PeerAgents } from "./peer-agents.js";
import { saneRequestId, upstreamHeaders } from "./request-headers.js";
import { peerAddress, schemeOf } from "./request-input.js";
import { clientHeaders } from "./response-headers.js";
import { sendAnswer } from "./send-answer.js";

/** What the application says, and what it is told of. */
export interface ExchangeOptions {
  /**
   * Milliseconds that a client may send nothing of its body while the peer waits for it, or take nothing of its answer, whatever
   * the peer's own timeout; NGINX's default is 60,000, and this. Longer ones than 2^31 - 1 count as that.
   */
  clientTimeout?: number;
  /** No peer has answered a request; `error` is that of the last one, `peer`. Default: nobody is told. */
  onFailure?: (error: Error, peer: ChosenPeer, request: IncomingMessage) => void;
}

/** NGINX's default of how long a peer may be silent, in milliseconds. */
const READ_TIMEOUT = 60_000;
const CLIENT_TIMEOUT = 60_000;
/** A timer of Node that is to be longer ends at once. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;
const MOST_TRIES = 3;
/** Methods that may be sent again although a peer may have acted on them (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/** The peer has not been heard of for the read timeout. */
class SilentPeerError extends Error {}

/** One request on its way to a peer and back. */
export class Exchange {
  readonly #tried: ChosenPeer[] = [];
  readonly #headers: string[];
  readonly #hasBody: boolean;
  /** Whose place at a peer is taken: it is given back exactly once, whatever ends the try. */
  #taken: ChosenPeer | undefined;
  #sent: ClientRequest | undefined;
  /** Nothing of the body has been read as long as there is no connection. */
  #connected = false;
  #answered = false;
  /** Runs from when the client has last been heard of, or given something to do. */
  readonly #patience: NodeJS.Timeout;

  constructor(
    readonly router: BundleRouter,
    readonly agents: PeerAgents,
    readonly options: ExchangeOptions,
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly decision: Decision & { action: "proxy" },
  ) {
    const chunked = "transfer-encoding" in request.headers;
    this.#hasBody = chunked || "content-length" in request.headers;
    this.#headers = headersForPeer(request, decision);
    if (chunked) this.#headers.push("Transfer-Encoding", "chunked");
    const clientTimeout = Math.min(options.clientTimeout ?? CLIENT_TIMEOUT, LONGEST_TIMEOUT);
    this.#patience = setTimeout(() => {
      if (this.#waitsForClient()) this.#clientIsLate();
      else this.#patience.refresh();
    }, clientTimeout);
    response.once("close", () => {
      clearTimeout(this.#patience);
      if (this.#taken === undefined) return;
      // The client has left, which is no failure of the peer.
      this.#done(false);
      this.#sent?.destroy();
    });
  }

  begin(): void {
    this.#attempt(this.decision.peer);
  }

  #attempt(peer: ChosenPeer): void {
    this.#tried.push(peer);
    this.#taken = peer;
    this.#send(peer, true);
  }

  #done(failed: boolean): void {
    if (this.#taken) this.router.done(this.#taken, failed);
    this.#taken = undefined;
  }

  #send(peer: ChosenPeer, kept: boolean): void {
    const sent = this.#open(peer, kept);
    if (sent === undefined) return;
    this.#sent = sent;
    this.#connected = false;
    const begin = () => {
      this.#connected = true;
      if (this.#hasBody) this.#passBody(sent);
      else sent.end();
    };
    sent.once("socket", (socket) => {
      const quiet = () => {
        // No client is to take a peer out: the timer of the client is another one.
        if (this.#waitsForClient()) socket.setTimeout(socket.timeout ?? READ_TIMEOUT);
        else sent.destroy(new SilentPeerError("the peer is silent"));
      };
      // The request's own event comes once only.
      socket.on("timeout", quiet);
      sent.once("close", () => socket.off("timeout", quiet));
      if (socket.connecting) socket.once("connect", begin);
      else begin();
    });
    sent.on("response", (received) => this.#pass(received, peer));
    sent.on("error", (error) => {
      // An answer that came before all of the body was sent is the answer; how that ends, it tells by itself.
      if (this.#taken === undefined || this.#answered) return;
      const repeatable = !this.#hasBody && IDEMPOTENT.has(this.request.method ?? "");
      // A kept connection that the peer had closed is nobody's failure: the request goes to the same peer once more.
      if (kept && sent.reusedSocket && repeatable) this.#send(peer, false);
      else this.#failed(error, peer, !this.#connected || repeatable);
    });
    // Without an error: of a peer that speaks another protocol Node says no more.
    sent.on("close", () => {
      if (this.#sent !== sent || this.#taken === undefined || this.#answered) return;
      this.#failed(new Error("the peer did not answer in HTTP"), peer, false);
    });
  }

  #passBody(sent: ClientRequest): void {
    pipeline(this.request, sent, () => {});
    this.request.on("data", () => this.#patience.refresh());
    // The peer has taken what there was: from now on it waits for the client.
    sent.on("drain", () => this.#patience.refresh());
    this.#patience.refresh();
  }

  /** True if the peer has all that has come of the body, or the client has not taken what has come of the answer. */
  #waitsForClient(): boolean {
    // A peer may answer while it reads.
    const owesBody = this.#hasBody && !this.request.complete && this.#connected && this.#sent?.writableLength === 0;
    const { socket, writableNeedDrain, writableEnded } = this.response;
    // Without a socket it stands behind the answer to an earlier request of the client.
    return owesBody || (socket !== null && (writableNeedDrain || writableEnded));
  }

  #clientIsLate(): void {
    this.#done(false);
    if (this.response.headersSent) this.response.destroy();
    else {
      this.#answer(408);
      this.#patience.refresh();
    }
    this.#sent?.destroy();
  }

  #open(peer: ChosenPeer, kept: boolean): ClientRequest | undefined {
    const { method } = this.request;
    const { tls, readTimeout } = this.router.upstream(this.decision.upstreamKey)?.transport ?? {};
    const options = {
      host: peer.address,
      port: peer.port,
      method,
      path: this.decision.target,
      headers: this.#headers,
      timeout: typeof readTimeout === "number" ? readTimeout : READ_TIMEOUT,
    };
    try {
      return this.agents.request(options, tls === true, kept);
    } catch {
      // Only a lenient parser lets such a request come so far.
      this.#done(false);
      this.#answer(400);
      return undefined;
    }
  }

  /** There is no answer of the peer. `again`: nothing of the request is lost, and it may be sent to another one. */
  #failed(error: Error, peer: ChosenPeer, again: boolean): void {
    // The request to the peer also ends where the client leaves while its body is on the way.
    const left = this.response.socket === null || this.response.socket.destroyed;
    this.#done(!left);
    if (left) return;
    const next = again && this.#tried.length < MOST_TRIES ? this.router.next(this.decision, this.#tried) : undefined;
    if (next) {
      this.#attempt(next);
      return;
    }
    this.options.onFailure?.(error, peer, this.request);
    this.#answer(error instanceof SilentPeerError ? 504 : 502);
  }

  /** A page of ours, or of the object. */
  #answer(status: number): void {
    this.#leaveBody();
    sendAnswer(this.response, errorAnswer(status, this.decision.errorPages));
  }

  /** Where a part of the body has not come yet, nothing can follow it on the client's connection. */
  #leaveBody(): void {
    if (this.#hasBody && !this.request.complete) this.response.shouldKeepAlive = false;
  }

  #pass(received: IncomingMessage, peer: ChosenPeer): void {
    this.#answered = true;
    received.once("error", () => this.#done(true));
    const status = received.statusCode ?? 0;
    if (findErrorPage(this.decision.errorPages, status)) {
      this.#done(false);
      received.destroy();
      this.#answer(status);
      return;
    }
    const head = status < 200 ? undefined : clientHeaders(received.rawHeaders, status, this.decision.headers);
    try {
      if (head === undefined) throw new Error("the peer's answer can't be passed on");
      this.#leaveBody();
      this.response.writeHead(status, received.statusMessage, head.headers);
    } catch (error) {
      received.destroy();
      this.#failed(error as Error, peer, false);
      return;
    }
    pipeline(received, this.response, () => this.#done(false));
    received.on("data", () => this.#patience.refresh());
  }
}

function headersForPeer(request: IncomingMessage, { headers }: Decision): string[] {
  const facts = {
    requestId: saneRequestId(request.headersDistinct["x-request-id"]?.[0]) ?? randomUUID(),
    peerAddress: peerAddress(request),
    clientAddress: peerAddress(request),
    scheme: schemeOf(request),
    host: request.headers.host ?? "",
    port: request.socket.localPort ?? 0,
    trusted: false,
  };
  return upstreamHeaders(request.rawHeaders, headers, facts, false);
}
