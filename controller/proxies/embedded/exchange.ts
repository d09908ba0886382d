import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Decision, DecisionOrigin, FilledErrorPage } from "../../../core-wasm/binding/decision.js";
import { errorAnswer, type OwnAnswer } from "../../../core-wasm/hosts/node/error-answer.js";
import { refuseHead } from "../../../core-wasm/hosts/node/head-checks.js";
import { headerValue } from "../../../core-wasm/hosts/node/header-names.js";
import { ERROR_PAGE_TYPE, errorPage } from "../../../core-wasm/hosts/node/own-answers.js";
import { saneRequestId } from "../../../core-wasm/hosts/node/request-headers.js";
import { RequestView, rawHeader } from "../../../core-wasm/hosts/node/request-view.js";
import { addResponseHeaders } from "../../../core-wasm/hosts/node/response-headers.js";
import { errorCode } from "../../observability/logger.js";
import type { AttemptRecord } from "./access-record.js";
import { plainAddress } from "./client-address.js";
import { type ExchangeOutcome, reportExchange } from "./exchange-report.js";
import type { Waiting } from "./peer-queues.js";
import { PeerTries } from "./peer-tries.js";
import type { ProxyShared } from "./proxy-shared.js";
import { Proxying } from "./proxying.js";
import { joinTunnel } from "./tunnel.js";

type ProxyDecision = Extract<Decision, { action: "proxy" }>;

/** One request of a client and its answer, from the parsed head to the access log. */
export class Exchange implements Waiting, ExchangeOutcome {
  readonly requestId: string;
  /** Address of the client; behind a trusted proxy not that of the connection. */
  readonly client: string;
  readonly peerAddress: string;
  readonly scheme: "http" | "https";
  readonly socket: Socket;
  readonly attempts: AttemptRecord[] = [];
  bytes = 0;
  readonly view: RequestView;
  readonly time: number;
  readonly started = performance.now();
  status: number | undefined;
  origin: DecisionOrigin | undefined;
  upstream: string | undefined;
  private proxying: Proxying | undefined;
  private tries: PeerTries | undefined;
  /** Upstream in whose queue the request waits. */
  private waitsFor: string | undefined;
  private random = 0;
  /** Of the route that decided. */
  private errorPages: readonly FilledErrorPage[] | undefined;
  private lingerTimer: NodeJS.Timeout | undefined;
  private tailTimer: NodeJS.Timeout | undefined;
  private headSent = false;
  private tunnelled = false;
  private over = false;
  private inputOver = false;
  /** The answer is out, its end is held back while the rest of the body is read. */
  private heldOpen = false;
  private broken = false;

  constructor(
    readonly shared: ProxyShared,
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    /** The client waits for `100 Continue` before it sends the body. */
    public expectsContinue: boolean,
    /** Value of the Upgrade header where the connection is to become a tunnel. */
    readonly upgrade: string | undefined,
  ) {
    const { settings, trusted } = shared;
    this.socket = request.socket;
    this.time = settings.now();
    this.scheme = this.socket instanceof TLSSocket ? "https" : "http";
    this.peerAddress = plainAddress(this.socket.remoteAddress ?? "");
    this.client = trusted.clientOf(this.peerAddress, rawHeader(request.rawHeaders, "x-forwarded-for"));
    this.requestId = saneRequestId(rawHeader(request.rawHeaders, "x-request-id")) ?? settings.requestId();
    this.view = new RequestView(request, this.scheme, this.client, settings.allowUnderscoreHeaders);
  }

  /**
   * Decides and acts; with `refusal`, a status that is already known, only answers. Whatever goes wrong ends in an
   * answer to this request alone.
   */
  start(refusal?: number): void {
    const { traffic } = this.shared;
    if (traffic !== undefined) traffic.requests++;
    this.shared.exchanges.add(this);
    this.shared.connections.begin(this);
    this.response.on("close", () => this.finish());
    // A write that crosses the end of the connection; "close" says the same.
    this.response.on("error", ignore);
    try {
      const status = refusal ?? refuseHead(this.request, this.shared.settings.limits.maxTargetLength)?.status;
      if (status !== undefined) {
        this.refuse(status);
        return;
      }
      this.random = this.shared.settings.random();
      this.act(this.shared.balancing.decide(this.view, this.random));
    } catch (error) {
      this.broke(error);
    }
  }

  /** Decides once more for a request that waits, with rules and peers as they are now. */
  tryAgain(): boolean {
    try {
      const decision = this.shared.balancing.decide(this.view, this.random);
      const busy = decision.action === "return" && decision.busy === true;
      if (busy && decision.upstreamKey === this.waitsFor) return false;
      this.waitsFor = undefined;
      this.act(decision);
    } catch (error) {
      this.broke(error);
    }
    return true;
  }

  /** No peer had a place in time. */
  giveUp(): void {
    this.waitsFor = undefined;
    this.fail(502);
  }

  /** True while the client has not sent its whole body. */
  get awaitsBody(): boolean {
    return this.hasBody && !this.request.complete;
  }

  get hasBody(): boolean {
    const { headers } = this.request;
    const length = headers["content-length"];
    return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
  }

  get isOver(): boolean {
    return this.over;
  }

  /** Ends the request with a page of the proxy, or by breaking the connection if an answer has begun. */
  fail(status: number): void {
    this.leaveQueue();
    this.proxying?.abandon();
    if (this.over) return;
    if (this.headSent) this.reset();
    else this.answerWith(errorAnswer(status, this.errorPages));
  }

  /** As fail; nothing further is read from the connection. */
  refuse(status: number): void {
    this.shared.connections.refuse(this.socket);
    this.response.shouldKeepAlive = false;
    this.fail(status);
  }

  /** No further byte of the request's body can be made sense of, or none will come. */
  inputFailed(status: number): void {
    this.inputOver = true;
    if (this.heldOpen) this.endResponse();
    else this.refuse(status);
  }

  /** Breaks the connection so that the client can't take what it has for a whole answer. */
  reset(): void {
    this.broken = true;
    if (this.socket instanceof TLSSocket || this.socket.destroyed) this.socket.destroy();
    else this.socket.resetAndDestroy();
  }

  /** Writes the head of an answer. `headers` is a flat list; false if it can't be sent, with nothing written. */
  sendHead(
    status: number,
    reason: string | undefined,
    headers: string[],
    own: { date: boolean; server: boolean },
  ): boolean {
    const { response } = this;
    const { serverName } = this.shared.settings;
    if (own.server && serverName !== "") headers.push("Server", serverName);
    if (!own.date) response.sendDate = false;
    if (this.shared.draining) response.shouldKeepAlive = false;
    const phrase = reason === undefined ? "" : headerValue(reason);
    try {
      if (phrase === "") response.writeHead(status, headers);
      else response.writeHead(status, phrase, headers);
    } catch (error) {
      this.shared.settings.logger.warn("answer head refused", { requestId: this.requestId, code: errorCode(error) });
      return false;
    }
    this.status = status;
    this.headSent = true;
    return true;
  }

  /**
   * The answer is complete. A client that is still sending its body is read for a while, then cut off. Closing a
   * connection with unread bytes makes the kernel reset it, and the client may lose the answer: where the connection
   * is to close and the length told the client that it has everything, the end waits for the body instead.
   */
  endAnswer(): void {
    const { response, request } = this;
    if (!this.awaitsBody || this.inputOver) {
      this.endResponse();
      return;
    }
    if (response.shouldKeepAlive || response.chunkedEncoding) {
      this.linger(() => this.socket.destroy());
      this.endResponse();
      return;
    }
    this.heldOpen = true;
    response.flushHeaders();
    this.linger(() => this.endResponse());
    request.once("end", () => this.endResponse());
    request.resume();
  }

  /** A client that does not take what is left of its answer is given up: it would keep its connection, and the end of the proxy, waiting. */
  private endResponse(): void {
    this.response.end();
    if (this.over || this.socket.writableLength === 0) return;
    this.tailTimer ??= setTimeout(() => this.reset(), this.shared.settings.limits.sendTimeout);
  }

  /** The upstream switched protocols: the connection carries raw bytes from here on. */
  becomeTunnel(headers: string[], peer: Duplex, idleTimeout: number): void {
    this.tunnelled = true;
    this.headSent = true;
    this.status = 101;
    this.response.detachSocket(this.socket);
    let head = "HTTP/1.1 101 Switching Protocols\r\n";
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    this.socket.write(`${head}\r\n`, "latin1");
    joinTunnel(this.socket, peer, idleTimeout, (sent) => {
      this.bytes += sent;
      this.finish();
    });
  }

  private act(decision: Decision): void {
    this.origin = decision.origin;
    const { headers } = decision;
    if (decision.action !== "redirect") this.errorPages = decision.errorPages;
    switch (decision.action) {
      case "proxy":
        this.proxy(decision);
        return;
      case "redirect": {
        const extra = ["Location", headerValue(decision.location)];
        addResponseHeaders(extra, decision.status, headers);
        this.answer(decision.status, extra, errorPage(decision.status), ERROR_PAGE_TYPE);
        return;
      }
      case "return": {
        this.upstream = decision.upstream;
        if (decision.busy === true && this.enterQueue(decision.upstreamKey)) return;
        // The core could make nothing of the request: as with every other refusal, the connection ends.
        if (decision.status === 400 && decision.origin === undefined) {
          this.refuse(400);
          return;
        }
        const own = errorAnswer(decision.status, this.errorPages);
        addResponseHeaders(own.headers, own.status, headers);
        if (decision.body !== undefined) {
          own.body = Buffer.from(decision.body, "latin1");
          own.type = headerValue(decision.contentType ?? "text/plain");
        }
        this.answerWith(own);
      }
    }
  }

  private enterQueue(upstream: string | undefined): boolean {
    if (upstream === undefined || !this.shared.queues.enter(upstream, this)) return false;
    this.waitsFor = upstream;
    return true;
  }

  private leaveQueue(): void {
    if (this.waitsFor === undefined) return;
    this.shared.queues.leave(this.waitsFor, this);
    this.waitsFor = undefined;
  }

  private broke(error: unknown): void {
    this.shared.settings.logger.error("request failed", { requestId: this.requestId, error });
    this.fail(500);
  }

  private proxy(decision: ProxyDecision): void {
    this.tries = new PeerTries(this.shared.balancing, decision);
    this.upstream = decision.upstream;
    const upstream = this.shared.upstreams.get(decision.upstreamKey);
    if (upstream === undefined) {
      this.fail(503);
      return;
    }
    const limit = upstream.transport.clientMaxBodySize ?? this.shared.settings.limits.maxBodySize;
    if (limit > 0 && Number(this.request.headers["content-length"] ?? 0) > limit) {
      this.refuse(413);
      return;
    }
    this.proxying = new Proxying(this, decision, upstream, this.tries, limit);
    this.proxying.begin();
  }

  private answerWith({ status, headers, body, type }: OwnAnswer): void {
    this.answer(status, headers, body, type);
  }

  /** An answer of the proxy itself. */
  private answer(status: number, headers: string[], body: string | Buffer, contentType: string): void {
    const { response } = this;
    const bodiless = status === 204 || status === 304 || status < 200;
    if (!bodiless) {
      headers.push("Content-Type", contentType, "Content-Length", String(Buffer.byteLength(body)));
    }
    if (this.expectsContinue && this.awaitsBody) {
      // The client may leave the body out now, and what comes next could be either.
      this.inputOver = true;
      this.shared.connections.refuse(this.socket);
      response.shouldKeepAlive = false;
    }
    if (!this.sendHead(status, undefined, headers, { date: true, server: true })) {
      this.reset();
      return;
    }
    if (!bodiless && this.request.method !== "HEAD") {
      this.bytes += Buffer.byteLength(body);
      response.write(body);
    }
    this.endAnswer();
  }

  private linger(then: () => void): void {
    this.lingerTimer ??= setTimeout(then, this.shared.settings.limits.lingerTimeout);
  }

  /** Runs once, when the answer was sent or the connection is gone. */
  private finish(): void {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.tailTimer);
    this.leaveQueue();
    const whole = this.tunnelled || (this.response.writableFinished && !this.broken);
    if (!whole || this.proxying?.finished === false) this.proxying?.abandon();
    this.proxying?.release();
    // Wherever it ended: the place at the peer is given back.
    this.tries?.done(false);
    if (this.lingerTimer !== undefined && !this.awaitsBody) clearTimeout(this.lingerTimer);
    else if (this.lingerTimer !== undefined) this.request.once("close", () => clearTimeout(this.lingerTimer));
    reportExchange(this.shared, this, !whole);
    this.shared.exchanges.delete(this);
    this.shared.connections.end(this);
  }
}

function ignore(): void {}
