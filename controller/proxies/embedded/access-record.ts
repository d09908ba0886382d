import type { DecisionOrigin } from "../../../core-wasm/binding/decision.js";
import type { PeerCounts } from "../request-counts.js";

/** One try at one peer. Times in milliseconds from the start of the try; undefined where it never came that far. */
export interface AttemptRecord {
  peer: string;
  /** The upstream's status, or what its failure meant. */
  status?: number;
  /** Code of the failure. */
  error?: string;
  startedAt: number;
  connect?: number;
  header?: number;
  response?: number;
  /** Where the attempt is counted; undefined where the peer had left its upstream. */
  counts?: PeerCounts;
}

/** What the access log says about one request. */
export interface AccessRecord {
  time: number;
  requestId: string;
  client: string;
  scheme: string;
  method: string;
  host: string;
  target: string;
  protocol: string;
  /** 499 where the client left before an answer. */
  status: number;
  bytes: number;
  durationMs: number;
  origin: DecisionOrigin | undefined;
  upstream: string | undefined;
  attempts: readonly AttemptRecord[];
  /** True where the answer broke off. */
  aborted: boolean;
}

/** One JSON line. All text is escaped by JSON; bytes above 127 appear as the characters of the same number. */
export function accessLine(record: AccessRecord): string {
  const last = record.attempts.at(-1);
  return JSON.stringify({
    time: new Date(record.time).toISOString(),
    requestId: record.requestId,
    client: record.client,
    scheme: record.scheme,
    method: record.method,
    host: record.host,
    target: record.target,
    protocol: record.protocol,
    status: record.status,
    bytes: record.bytes,
    durationMs: record.durationMs,
    resource: record.origin?.resource,
    path: record.origin?.path,
    upstream: record.upstream,
    peer: last?.peer,
    attempts: record.attempts.length,
    upstreamStatus: statuses(record.attempts),
    upstreamErrors: errors(record.attempts),
    upstreamConnectMs: last?.connect,
    upstreamHeaderMs: last?.header,
    upstreamResponseMs: last?.response,
    aborted: record.aborted ? true : undefined,
  });
}

function statuses(attempts: readonly AttemptRecord[]): number[] | undefined {
  if (attempts.length === 0) return undefined;
  return attempts.map((attempt) => attempt.status ?? 0);
}

function errors(attempts: readonly AttemptRecord[]): string[] | undefined {
  const found = attempts.flatMap((attempt) => (attempt.error === undefined ? [] : [attempt.error]));
  return found.length === 0 ? undefined : found;
}
