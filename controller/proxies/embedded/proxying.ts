import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import type { Decision } from "../../../core-wasm/binding/decision.js";
import type { AttemptRecord } from "./access-record.js";
import type { Exchange } from "./exchange.js";
import { anotherPeerAllowed, type RetryReason, repeatIsHarmless, retryReason } from "./next-upstream.js";
import { RequestBody } from "./request-body.js";
import { upstreamHeaders } from "./request-headers.js";
import { rawHeader } from "./request-view.js";
import { clientHeaders, clientTrailers } from "./response-headers.js";
import { SendTimeoutError, upstreamFailure } from "./upstream-failure.js";
import { DEFAULT_TIMEOUT, INNER_SERVER_NAME, type RegisteredUpstream } from "./upstream-registry.js";

type ProxyDecision = Extract<Decision, { action: "proxy" }>;
type Peer = ProxyDecision["peer"];
/** undici takes a server name with each request, though its types do not say so. */
interface PeerRequest extends Dispatcher.DispatchOptions {
  servername: string;
}

/** Broken pooled connections that one request may meet before the peer itself counts as failed. */
const MAX_STALE = 2;

/** Carries one request to a peer, to another one where that is allowed, and the answer back to the client. */
export class Proxying implements Dispatcher.DispatchHandler {
  private readonly body: RequestBody | undefined;
  private readonly headers: string[];
  private readonly failedPeers: Peer[] = [];
  private readonly started = performance.now();
  private peer: Peer;
  private attempt: AttemptRecord;
  private controller: Dispatcher.DispatchController | undefined;
  private nextPeer: Peer | undefined;
  /** The peer that the core counts this request for. */
  private held: Peer | undefined;
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
    bodyLimit: number,
  ) {
    const { request, shared } = exchange;
    const { limits, allowUnderscoreHeaders } = shared.settings;
    this.peer = decision.peer;
    this.held = decision.peer;
    this.attempt = newAttempt(this.peer);
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
    this.send(this.peer);
  }

  /** The client is gone or has its answer: whatever a peer still does for this request is stopped. */
  abandon(): void {
    if (this.abandoned) return;
    this.abandoned = true;
    if (!this.finished) this.controller?.abort(new Error("abandoned"));
    this.release();
  }

  /** Lets go of the peer, of timers and of the client's body. */
  release(): void {
    this.letGo(false);
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
    if (retry !== undefined) {
      const next = this.peerAfter(retry);
      if (next !== undefined) {
        this.nextPeer = next;
        controller.abort(new Error("another peer is tried"));
        return;
      }
    }
    const { exchange } = this;
    const head = clientHeaders(rawList(controller.rawHeaders), status, this.decision.headers);
    const own = { date: head?.hasDate === false, server: head?.hasServer === false };
    if (head === undefined || !exchange.sendHead(status, reason, head.headers, own)) {
      this.attempt.error = "BAD_ANSWER";
      exchange.fail(502);
      return;
    }
    this.relaying = true;
    // Most heads come with the first part of the body and leave with it; one that comes alone is not held back.
    process.nextTick(flushHead, exchange);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
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
    if (this.nextPeer !== undefined) {
      this.send(this.nextPeer);
      return;
    }
    const failure = upstreamFailure(error);
    this.attempt.error = failure.code;
    this.attempt.status = failure.status;
    const stale = failure.stale && this.staleMet < MAX_STALE && this.mayRepeat();
    if (stale) this.staleMet++;
    const next = stale ? this.peer : failure.repeatable ? this.peerAfter(failure.kind) : undefined;
    if (next !== undefined) this.send(next);
    else this.exchange.fail(failure.status);
  }

  private send(peer: Peer): void {
    const { exchange } = this;
    this.peer = peer;
    this.attempt = newAttempt(peer);
    exchange.attempts.push(this.attempt);
    this.controller = undefined;
    this.nextPeer = undefined;
    this.finished = false;
    // Asked anew for each try: the peers may have changed since the decision.
    const upstream = exchange.shared.upstreams.get(this.decision.upstreamKey);
    const pool = upstream && exchange.shared.upstreams.pool(upstream, peer.address, peer.port);
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

  /** The peer to try after this one failed for `reason`; undefined where the failure is the client's to see. */
  private peerAfter(reason: RetryReason): Peer | undefined {
    const { attempts, shared } = this.exchange;
    const state = { attempts: attempts.length, elapsed: performance.now() - this.started };
    if (!this.mayRepeat() || !anotherPeerAllowed(this.upstream.transport, reason, state)) return undefined;
    this.failedPeers.push(this.peer);
    this.letGo(true);
    const { table, random } = shared.settings;
    const request = { hash: this.decision.hash, tried: this.failedPeers };
    const next = table.pickPeer(this.decision.upstreamKey, request, random(), peerClock());
    this.held = next === "busy" ? undefined : next;
    return this.held;
  }

  /** Tells the core that the try with the peer at hand is over. */
  private letGo(failed: boolean): void {
    if (this.held === undefined) return;
    this.exchange.shared.settings.table.peerDone(this.held, failed, peerClock());
    this.held = undefined;
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

/** The time that the core counts with, in whole milliseconds. */
export function peerClock(): number {
  return Math.floor(performance.now());
}

function newAttempt(peer: Peer): AttemptRecord {
  const address = peer.address.includes(":") ? `[${peer.address}]` : peer.address;
  return { peer: `${address}:${peer.port}`, startedAt: performance.now() };
}

function flushHead(exchange: Exchange): void {
  const { response } = exchange;
  if (!exchange.isOver && !response.writableEnded && response.socket !== null) response.flushHeaders();
}

/** undici gives raw headers as a flat list for HTTP/1; its type allows other forms. */
function rawList(raw: Dispatcher.DispatchController["rawHeaders"]): readonly (Buffer | string)[] {
  return Array.isArray(raw) ? raw : [];
}

function upgradeOf(raw: readonly (Buffer | string)[]): string | undefined {
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i].toString("latin1").toLowerCase() === "upgrade") return raw[i + 1].toString("latin1");
  }
  return undefined;
}
