/** When a request is given to another peer: NGINX's proxy_next_upstream, its tries and its time-out. */
import type { UpstreamTransport } from "../../model/types.js";

export type RetryReason = "error" | "timeout" | "http_502" | "http_503" | "http_504";

const DEFAULT_REASONS: readonly string[] = ["error", "timeout"];
/** NGINX repeats these only where `non_idempotent` is listed. */
const NON_IDEMPOTENT = new Set(["POST", "LOCK", "PATCH"]);

/** The reason that a peer's status stands for, if any. */
export function retryReason(status: number): RetryReason | undefined {
  return status === 502 ? "http_502" : status === 503 ? "http_503" : status === 504 ? "http_504" : undefined;
}

/** True where a peer may get the request although another one may have acted on it. */
export function repeatIsHarmless(transport: UpstreamTransport, method: string): boolean {
  return !NON_IDEMPOTENT.has(method) || transport.nextUpstream?.includes("non_idempotent") === true;
}

/** True where failures for `reason` are listed: the others are the client's to see, and do not count against the peer. */
export function isListed(transport: UpstreamTransport, reason: RetryReason): boolean {
  const reasons: readonly string[] = transport.nextUpstream ?? DEFAULT_REASONS;
  return reasons.includes(reason);
}

/** True where a failure for `reason` is listed and neither tries nor time (milliseconds) are used up. */
export function anotherPeerAllowed(
  transport: UpstreamTransport,
  reason: RetryReason,
  state: { attempts: number; elapsed: number },
): boolean {
  const { nextUpstreamTries = 0, nextUpstreamTimeout = 0 } = transport;
  if (!isListed(transport, reason)) return false;
  if (nextUpstreamTries > 0 && state.attempts >= nextUpstreamTries) return false;
  return nextUpstreamTimeout === 0 || state.elapsed < nextUpstreamTimeout;
}
