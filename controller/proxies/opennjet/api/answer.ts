import {
  AlreadyExistsError,
  BodyTooLargeError,
  CertificateRepeatedError,
  type FailedCall,
  InvalidAnswerError,
  JsonRefusedError,
  ModuleNotLoadedError,
  NotAllowedError,
  NotFoundError,
  type OpenNjetApiError,
  OutOfMemoryError,
  ParameterError,
  PartlyAppliedError,
  RefusedError,
  RequestRefusedError,
  RpcTimeoutError,
  ServerFailureError,
  ShuttingDownError,
  UnknownCodeError,
  UpstreamApiError,
} from "./errors.js";
import { redact } from "./redact.js";
import { type Reader, ShapeError } from "./shape.js";
import { type Answer, failed } from "./transport.js";

export type ErrorClass = new (message: string, call: FailedCall, options?: ErrorOptions) => OpenNjetApiError;

/** Kinds of errors by the code of an answer. */
export type ErrorKinds = ReadonlyMap<number, ErrorClass>;

/** `njt_rpc_result_util.h`; 8 and 12 are those of the health check, -1 and -2 of `njt_http_kv_module.c`. */
const KINDS: ErrorKinds = new Map<number, ErrorClass>([
  [1, PartlyAppliedError],
  [2, OutOfMemoryError],
  [3, JsonRefusedError],
  [4, RefusedError],
  [5, NotAllowedError],
  [8, AlreadyExistsError],
  [10, ParameterError],
  [11, CertificateRepeatedError],
  [12, NotFoundError],
  [-1, ModuleNotLoadedError],
  [-2, ShuttingDownError],
]);

const JSON_MESSAGE = "json parser error!";
const TIMEOUT_MESSAGE = "rpc timeout";
/** What `/v1/upstream_api` answers when the agent has not, with HTTP 404. */
const UPSTREAM_TIMEOUT = "UnknownError";

/** What a call knows of its answers beyond the codes. */
export interface Expected {
  kinds?: ErrorKinds;
  /** Messages, word by word, that say that the object is there already, or is not there. */
  exists?: string;
  missing?: string;
}

/** Returns if the answer says that the call was done; throws what it says otherwise. */
export function requireDone(answer: Answer, expected: Expected = {}): void {
  const value = parse(answer);
  throwStated(answer, value, expected);
  if (!isOk(answer) || !isResult(value)) throw unexpected(answer, "it has no code");
}

/** The value of an answer that brings one. */
export function readAnswer<T>(answer: Answer, reader: Reader<T>, expected: Expected = {}): T {
  const value = parse(answer);
  throwStated(answer, value, expected);
  if (!isOk(answer)) throw unexpected(answer, "it states no error");
  try {
    return reader(value, "");
  } catch (error) {
    if (error instanceof ShapeError) throw unexpected(answer, error.message);
    throw error;
  }
}

/** Whether the status is that of a success. */
export function isOk({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

/** The error that an answer stands for whose body says nothing. */
export function errorOfStatus(answer: Answer, options?: ErrorOptions): OpenNjetApiError {
  const { call, status, text } = answer;
  const Kind =
    status === 413
      ? BodyTooLargeError
      : status === 404
        ? NotFoundError
        : status >= 500
          ? ServerFailureError
          : status >= 400
            ? RequestRefusedError
            : InvalidAnswerError;
  return new Kind(`answered ${status}: ${redact(text, call.secrets)}`, failed(call, status), options);
}

function parse(answer: Answer): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    // The parser quotes what it can't read, which may be secret; so its error is no cause.
    throw errorOfStatus(answer);
  }
}

/** Throws the error that an answer states, in either of the two forms of this API. */
function throwStated(answer: Answer, value: unknown, { kinds = KINDS, exists, missing }: Expected): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return;
  const { data, error } = value as Record<string, unknown>;
  if (isResult(value)) {
    const { code, msg } = value;
    if (code === 0 && isOk(answer)) return;
    const Kind = kindOf(answer, code, msg, kinds, exists, missing);
    const details = Array.isArray(data) ? data.filter((one) => typeof one === "string") : [];
    const { call, status } = answer;
    throw new Kind(redact([msg.trim(), ...details].join(": "), call.secrets), failed(call, status, code));
  }
  if (typeof error === "object" && error !== null) throw upstreamError(answer, error);
}

function isResult(value: unknown): value is { code: number; msg: string } {
  if (typeof value !== "object" || value === null) return false;
  const { code, msg } = value as Record<string, unknown>;
  return Number.isInteger(code) && typeof msg === "string";
}

function kindOf(
  { status }: Answer,
  code: number,
  msg: string,
  kinds: ErrorKinds,
  exists: string | undefined,
  missing: string | undefined,
): ErrorClass {
  if (code === 0) return InvalidAnswerError;
  if (kinds !== KINDS) return kinds.get(code) ?? UnknownCodeError;
  if (status >= 500) return msg === TIMEOUT_MESSAGE ? RpcTimeoutError : (kinds.get(code) ?? ServerFailureError);
  if (exists !== undefined && msg === exists) return AlreadyExistsError;
  if (missing !== undefined && msg === missing) return NotFoundError;
  if (status === 413) return BodyTooLargeError;
  if (status === 404 && code === 404) return NotFoundError;
  // The control server's own refusals have code 4, which says nothing more.
  if (status >= 400 && (code === 4 || code === status)) {
    return msg === JSON_MESSAGE ? JsonRefusedError : RequestRefusedError;
  }
  return kinds.get(code) ?? UnknownCodeError;
}

function upstreamError(answer: Answer, error: object): OpenNjetApiError {
  const { text, code } = error as { text?: unknown; code?: unknown };
  if (typeof text !== "string" || typeof code !== "string") return unexpected(answer, "its error has no code");
  const { call, status } = answer;
  const Kind = code === UPSTREAM_TIMEOUT ? RpcTimeoutError : UpstreamApiError;
  return new Kind(`${redact(text, call.secrets)} (${redact(code, call.secrets)})`, failed(call, status, redact(code)));
}

function unexpected(answer: Answer, why: string): OpenNjetApiError {
  if (!isOk(answer)) return errorOfStatus(answer);
  return new InvalidAnswerError(`the answer is none of this API: ${why}`, failed(answer.call, answer.status));
}
