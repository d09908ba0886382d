import type { Socket } from "node:net";
import type { DecisionOrigin } from "../../../core-wasm/binding/decision.js";
import type { RequestView } from "../../../core-wasm/hosts/node/request-view.js";
import { type AttemptRecord, accessLine } from "./access-record.js";
import type { ProxyShared } from "./proxy-shared.js";

/** Status of a request whose client left before an answer, as in NGINX. */
const NO_ANSWER = 499;

/** What is known of an exchange once it is over. */
export interface ExchangeOutcome {
  readonly requestId: string;
  readonly client: string;
  readonly scheme: "http" | "https";
  readonly socket: Socket;
  readonly view: RequestView;
  /** When it began: milliseconds since the epoch, and by the clock of `performance`. */
  readonly time: number;
  readonly started: number;
  /** Undefined where the client left before an answer. */
  readonly status: number | undefined;
  readonly bytes: number;
  readonly origin: DecisionOrigin | undefined;
  readonly upstream: string | undefined;
  readonly attempts: readonly AttemptRecord[];
}

/** Counts an exchange that is over, and writes it into the access log. `aborted`: the answer broke off. */
export function reportExchange(shared: ProxyShared, exchange: ExchangeOutcome, aborted: boolean): void {
  const now = performance.now();
  const status = exchange.status ?? NO_ANSWER;
  count(shared, exchange, status, now);
  const sink = shared.settings.accessLog;
  if (sink === undefined) return;
  const { view } = exchange;
  sink.write(
    accessLine({
      time: exchange.time,
      requestId: exchange.requestId,
      client: exchange.client,
      scheme: exchange.scheme,
      method: view.method,
      host: view.host,
      target: view.target,
      protocol: view.protocol,
      status,
      bytes: exchange.bytes,
      durationMs: Math.round((now - exchange.started) * 1000) / 1000,
      origin: exchange.origin,
      upstream: exchange.upstream,
      attempts: exchange.attempts,
      aborted,
    }),
  );
}

function count(shared: ProxyShared, exchange: ExchangeOutcome, status: number, now: number): void {
  const { traffic, connections } = shared;
  if (traffic === undefined) return;
  const { received, sent } = connections.takeTraffic(exchange.socket);
  const request = { status, received, sent, duration: now - exchange.started, now };
  traffic.record(exchange.origin?.host, request);
  const last = exchange.attempts.length - 1;
  for (let i = 0; i <= last; i++) {
    const attempt = exchange.attempts[i];
    attempt.counts?.response(attempt.response ?? now - attempt.startedAt, now);
    if (i === last) attempt.counts?.record(request);
    else attempt.counts?.code(attempt.status ?? 0);
  }
}
