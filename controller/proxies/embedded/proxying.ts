import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import type { Decision } from "../../../core-wasm/binding/decision.js";
import { findErrorPage } from "../../../core-wasm/hosts/node/error-answer.js";
import { upstreamHeaders } from "../../../core-wasm/hosts/node/request-headers.js";
import { rawHeader } from "../../../core-wasm/hosts/node/request-view.js";
import { clientHeaders, clientTrailers } from "../../../core-wasm/hosts/node/response-headers.js";
import { PeerCounts } from "../request-counts.js";
import type { AttemptRecord } from "./access-record.js";
import type { Exchange } from "./exchange.js";
import { anotherPeerAllowed, isListed, type RetryReason, repeatIsHarmless, retryReason } from "./next-upstream.js";
import type { PeerTries } from "./peer-tries.js";
import { rawList, upgradeOf } from "./raw-headers.js";
import { RequestBody } from "./request-body.js";
import { isRenewed, sessionCookieText } from "./session-cookie.js";
import { SendTimeoutError, upstreamFailure } from "./upstream-failure.js";
import { DEFAULT_TIMEOUT, INNER_SERVER_NAME, peerName, type RegisteredUpstream } from "./upstream-registry.js";

type ProxyDecision = Extract<Decision, { action: "proxy" }>;
/** undici takes a server name with each request, though its types do not say so. */
interface PeerRequest extends Dispatcher.DispatchOptions {
  servername: string;
}

/** Broken pooled connections that one request may meet before the peer itself counts as failed. */
const MAX_STALE = 2;
/** Bytes of a body that is rather read than cut off with its connection. */
const SHORT_BODY = 65_536;

/** Carries one request to a peer, to another one where that is allowed, and the answer back to the client. */
export class Proxying implements Dispatcher.DispatchHandler {
  private readonly body: RequestBody | undefined;
  private readonly headers: string[];
  private readonly started = performance.now();
  private attempt: AttemptRecord;
  private controller: Dispatcher.DispatchController | undefined;
  /** Another peer takes the place of the one at hand once that has let go. */
  private movesOn = false;
  /** The peer has answered with a status that next-upstream lists. */
  private answeredBadly = false;
  /** An error page stands for the peer's answer. A short one is read to its end, so that the connection can go on. */
  private replaced = false;
  private discarded = 0;
  private staleMet = 0;
  private relaying = false;
  private abandoned = false;
  private drainTimer: NodeJS.Timeout | undefined;
  private waitsForDrain = false;
  private listensForDrain = false;
  /** True when the peer's answer has come to its end. */
  finished = false;

  constructor(
    private readonly exchange: Exchange,
    private readonly decision: ProxyDecision,
    private readonly upstream: RegisteredUpstream,
    private readonly tries: PeerTries,
    bodyLimit: number,
  ) {
    const { request, shared } = exchange;
    const { limits, allowUnderscoreHeaders } = shared.settings;
    this.attempt = newAttempt(tries);
    this.headers = upstreamHeaders(
      request.rawHeaders,
      decision.headers,
      {
        requestId: exchange.requestId,
        peerAddress: exchange.peerAddress,
        clientAddress: exchange.client,
        scheme: exchange.scheme,
        host: request.headers.host ?? "",
        port: exchange.socket.localPort ?? 0,
        trusted: shared.trusted.covers(exchange.peerAddress),
      },
      allowUnderscoreHeaders,
    );
    if (exchange.hasBody) {
      this.body = new RequestBody(
        request,
        {
          limit: bodyLimit,
          replaySize: limits.replaySize,
          clientTimeout: limits.bodyTimeout,
          sendTimeout: upstream.transport.sendTimeout ?? DEFAULT_TIMEOUT,
        },
        {
          onFirstRead: () => this.sendContinue(),
          onTooLarge: () => exchange.refuse(413),
          onClientTimeout: () => exchange.inputFailed(408),
          onSendTimeout: () => this.controller?.abort(new SendTimeoutError("the peer takes no more of the body")),
        },
      );
    }
  }

  begin(): void {
    this.send();
  }

  /** The client is gone or has its answer: whatever a peer still does for this request is stopped. */
  abandon(): void {
    if (this.abandoned) return;
    this.abandoned = true;
    this.tries.done(this.answeredBadly);
    if (!this.finished && !this.replaced) this.controller?.abort(new Error("abandoned"));
    this.release();
  }

  /** Lets go of timers and of the client's body. */
  release(): void {
    clearTimeout(this.drainTimer);
    this.body?.close();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    this.attempt.connect = this.sinceStart();
    if (this.abandoned) controller.abort(new Error("abandoned"));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    reason: string | undefined,
  ): void {
    // Interim answers are between the peer and the proxy, as with NGINX.
    if (status < 200 || this.abandoned) return;
    this.attempt.status = status;
    this.attempt.header = this.sinceStart();
    const retry = retryReason(status);
    if (retry !== undefined && isListed(this.upstream.transport, retry)) {
      this.answeredBadly = true;
      if (this.nextPeer(retry)) {
        this.movesOn = true;
        controller.abort(new Error("another peer is tried"));
        return;
      }
    }
    const { exchange } = this;
    if (findErrorPage(this.decision.errorPages, status) !== undefined) {
      this.replaced = true;
      exchange.fail(status);
      return;
    }
    const head = clientHeaders(rawList(controller.rawHeaders), status, this.decision.headers);
    if (head !== undefined) this.addSessionCookie(head.headers);
    const own = { date: head?.hasDate === false, server: head?.hasServer === false };
    if (head === undefined || !exchange.sendHead(status, reason, head.headers, own)) {
      this.attempt.error = "BAD_ANSWER";
      this.tries.done(true);
      exchange.fail(502);
      return;
    }
    this.relaying = true;
    // Most heads come with the first part of the body and leave with it; one that comes alone is not held back.
    process.nextTick(flushHead, exchange);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.replaced) {
      this.discarded += chunk.length;
      if (this.discarded > SHORT_BODY) controller.abort(new Error("replaced"));
    }
    if (!this.relaying || this.abandoned) return;
    const { exchange } = this;
    exchange.bytes += chunk.length;
    if (exchange.response.write(chunk) || this.waitsForDrain) return;
    controller.pause();
    this.waitsForDrain = true;
    this.drainTimer = setTimeout(() => exchange.reset(), exchange.shared.settings.limits.sendTimeout);
    if (this.listensForDrain) return;
    this.listensForDrain = true;
    exchange.response.on("drain", () => {
      this.waitsForDrain = false;
      clearTimeout(this.drainTimer);
      this.controller?.resume();
    });
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.finished = true;
    this.tries.done(this.answeredBadly);
    this.attempt.response = this.sinceStart();
    if (!this.relaying || this.abandoned) return;
    const { response, request } = this.exchange;
    const trailers = rawList(controller.rawTrailers);
    if (
      trailers.length > 0 &&
      response.chunkedEncoding &&
      /trailers/i.test(rawHeader(request.rawHeaders, "te") ?? "")
    ) {
      response.addTrailers(clientTrailers(trailers));
    }
    this.body?.close();
    this.exchange.endAnswer();
  }

  onRequestUpgrade(controller: Dispatcher.DispatchController, status: number, _headers: unknown, socket: Duplex): void {
    this.finished = true;
    if (this.abandoned) {
      socket.destroy();
      return;
    }
    this.attempt.status = status;
    this.attempt.header = this.sinceStart();
    const raw = rawList(controller.rawHeaders);
    const headers = clientHeaders(raw, status, this.decision.headers)?.headers ?? [];
    this.addSessionCookie(headers);
    headers.push("Connection", "Upgrade", "Upgrade", upgradeOf(raw) ?? this.exchange.upgrade ?? "");
    this.exchange.becomeTunnel(headers, socket, this.upstream.transport.readTimeout ?? DEFAULT_TIMEOUT);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.finished = true;
    this.attempt.response = this.sinceStart();
    if (this.abandoned) return;
    if (this.relaying) {
      this.attempt.error = upstreamFailure(error).code;
      this.exchange.reset();
      return;
    }
    if (this.movesOn) {
      this.send();
      return;
    }
    const failure = upstreamFailure(error);
    this.attempt.error = failure.code;
    this.attempt.status = failure.status;
    const stale = failure.stale && this.staleMet < MAX_STALE && this.mayRepeat();
    if (stale) this.staleMet++;
    if (stale || (failure.repeatable && this.nextPeer(failure.kind))) {
      this.send();
      return;
    }
    this.tries.done(failure.repeatable);
    this.exchange.fail(failure.status);
  }

  private send(): void {
    const { exchange } = this;
    this.attempt = newAttempt(this.tries);
    exchange.attempts.push(this.attempt);
    this.controller = undefined;
    this.movesOn = false;
    this.answeredBadly = false;
    this.finished = false;
    // Asked anew for each try: the peers may have changed since the decision.
    const { upstreams, traffic } = exchange.shared;
    const registered = upstreams.get(this.decision.upstreamKey)?.peers.get(this.attempt.peer);
    if (registered !== undefined && traffic !== undefined) {
      registered.counts ??= new PeerCounts();
      this.attempt.counts = registered.counts;
    }
    const pool = registered && upstreams.pool(registered);
    if (pool === undefined) {
      this.onResponseError(undefined, new Error("the peer left its upstream"));
      return;
    }
    const readTimeout = this.upstream.transport.readTimeout ?? DEFAULT_TIMEOUT;
    const request: PeerRequest = {
      path: this.decision.target,
      method: exchange.request.method as Dispatcher.HttpMethod,
      headers: this.headers,
      body: this.body?.open() ?? null,
      upgrade: exchange.upgrade ?? null,
      headersTimeout: readTimeout,
      bodyTimeout: readTimeout,
      servername: INNER_SERVER_NAME,
    };
    pool.dispatch(request, this);
  }

  /** Takes another peer after this one failed for `reason`. False where the failure is the client's to see. */
  private nextPeer(reason: RetryReason): boolean {
    const state = { attempts: this.exchange.attempts.length, elapsed: performance.now() - this.started };
    if (!this.mayRepeat() || !anotherPeerAllowed(this.upstream.transport, reason, state)) return false;
    return this.tries.next();
  }

  /** For a client that has no cookie for this peer yet, or whose cookie's time begins anew. */
  private addSessionCookie(headers: string[]): void {
    const { sessionCookie } = this.upstream;
    const { session } = this.tries.peer;
    if (sessionCookie === undefined || session === undefined) return;
    if (this.decision.session?.isNew !== true && !this.tries.moved && !isRenewed(sessionCookie)) return;
    headers.push("Set-Cookie", sessionCookieText(sessionCookie, session, this.exchange.shared.settings.now()));
  }

  private mayRepeat(): boolean {
    if (this.body?.repeatable === false) return false;
    const sent = this.controller !== undefined;
    return !sent || repeatIsHarmless(this.upstream.transport, this.exchange.request.method as string);
  }

  private sendContinue(): void {
    if (!this.exchange.expectsContinue) return;
    this.exchange.expectsContinue = false;
    this.exchange.response.writeContinue();
  }

  private sinceStart(): number {
    return Math.round((performance.now() - this.attempt.startedAt) * 1000) / 1000;
  }
}

function newAttempt({ peer }: PeerTries): AttemptRecord {
  return { peer: peerName(peer.address, peer.port), startedAt: performance.now() };
}

function flushHead(exchange: Exchange): void {
  const { response } = exchange;
  if (!exchange.isOver && !response.writableEnded && response.socket !== null) response.flushHeaders();
}
