import { errorCode } from "../../observability/logger.js";

/** What went wrong towards a peer, in the words of proxy_next_upstream, and the status that it means for the client. */
export interface UpstreamFailure {
  kind: "error" | "timeout";
  status: 502 | 504;
  /** Stable code for the log. */
  code: string;
  /** True where a connection from the pool broke that had carried requests before: it says nothing about the peer. */
  stale: boolean;
  /** False where the request itself can't be sent; another peer would not help. */
  repeatable: boolean;
}

const TIMEOUTS = new Set(["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ETIMEDOUT"]);

/** Thrown into an attempt when the peer takes no more of the body for the send timeout. */
export class SendTimeoutError extends Error {
  readonly code = "ETIMEDOUT";
}

/** Reads an error of undici or of the system. */
export function upstreamFailure(error: unknown): UpstreamFailure {
  const code = errorCode(error) ?? "UNKNOWN";
  const timeout = TIMEOUTS.has(code);
  return {
    kind: timeout ? "timeout" : "error",
    status: timeout ? 504 : 502,
    code,
    stale: code === "UND_ERR_SOCKET" && bytesRead(error) > 0,
    repeatable: code !== "UND_ERR_INVALID_ARG" && code !== "UND_ERR_NOT_SUPPORTED",
  };
}

/** Bytes that the broken connection had received in its life, as undici reports them. */
function bytesRead(error: unknown): number {
  if (typeof error !== "object" || error === null || !("socket" in error)) return 0;
  const socket = error.socket;
  if (typeof socket !== "object" || socket === null || !("bytesRead" in socket)) return 0;
  return typeof socket.bytesRead === "number" ? socket.bytesRead : 0;
}
