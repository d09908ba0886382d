/** An answer of the API server that is no success, as its Status object tells it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** Status of HTTP; also the `code` of an ERROR event of a watch. */
  readonly status: number;
  /** Reason of the Status object, such as `Expired`; empty if it gives none. */
  readonly reason: string;
  /** Milliseconds after which the server wants to be asked again; 0 if it does not say. */
  readonly retryAfter: number;

  constructor(status: number, reason: string, message: string, retryAfter = 0) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfter = retryAfter;
  }

  /** From the body of an answer, whatever it is. */
  static of(status: number, body: unknown, retryAfter = 0): ApiError {
    const { reason, message } = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
    return new ApiError(
      status,
      typeof reason === "string" ? reason : "",
      typeof message === "string" ? message.slice(0, 300) : `the API server answered ${status}`,
      retryAfter,
    );
  }
}

/** Status of an answer, or 0 for an error that is none: a connection that failed, a body that ended early. */
export function statusOf(error: unknown): number {
  return error instanceof ApiError ? error.status : 0;
}
