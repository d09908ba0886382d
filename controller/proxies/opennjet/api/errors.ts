/**
 * What can go wrong with a call of the APIs, a class for each kind. Nothing of a request's secrets is in a message: see
 * `redact.ts`.
 */
import type { OpenNjetErrorCode } from "../../../errors.js";

/** The request that an error is about, and what was answered. */
export interface FailedCall {
  method: string;
  /** Path of the request, without its query. */
  path: string;
  /** HTTP status; 0 where nothing was answered. */
  status: number;
  /** The code in the answer: a number, or a word of `/v1/upstream_api`. */
  answerCode?: number | string;
}

/** Any failure of a call. */
export abstract class OpenNjetApiError extends Error {
  /** Stable code of this project; ERRORS.md lists them. */
  abstract readonly code: OpenNjetErrorCode;
  /** Whether the change may be in force all the same, or come into force later: verify before it is sent again. */
  readonly mayHaveApplied: boolean = false;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly answerCode?: number | string;

  constructor(message: string, call: FailedCall, options?: ErrorOptions) {
    super(`${call.method} ${call.path}: ${message}`, options);
    this.name = new.target.name;
    this.method = call.method;
    this.path = call.path;
    this.status = call.status;
    this.answerCode = call.answerCode;
  }
}

/** OpenNJet, or this client before it, has refused the call: nothing has changed, and the same call would be refused again. */
export abstract class RefusalError extends OpenNjetApiError {}

/** Nothing answers at the address: the request was not sent. */
export class NotReachableError extends OpenNjetApiError {
  readonly code = "OPENNJET_NOT_REACHABLE";
}

/** The connection ended, or no answer came in time, after the request was sent. */
export class ConnectionLostError extends OpenNjetApiError {
  readonly code = "OPENNJET_CONNECTION_LOST";
  override readonly mayHaveApplied = this.method !== "GET";
}

/** The control server has waited 2 s for the privileged agent (`rpc timeout`). The change may come into force later. */
export class RpcTimeoutError extends OpenNjetApiError {
  readonly code = "OPENNJET_TIMEOUT";
  override readonly mayHaveApplied = this.method !== "GET";
}

/** HTTP 5xx without a known code. */
export class ServerFailureError extends OpenNjetApiError {
  readonly code = "OPENNJET_SERVER_FAILURE";
  override readonly mayHaveApplied = this.method !== "GET";
}

/** The answer is none that this API gives: no JSON, or of another form. */
export class InvalidAnswerError extends OpenNjetApiError {
  readonly code = "OPENNJET_ANSWER_INVALID";
  override readonly mayHaveApplied = this.method !== "GET";
}

/** Code 1: some parts of the change are in force, others are not. */
export class PartlyAppliedError extends OpenNjetApiError {
  readonly code = "OPENNJET_PARTLY_APPLIED";
  override readonly mayHaveApplied = true;
}

/** Code 2: no memory, at any point of the change. */
export class OutOfMemoryError extends OpenNjetApiError {
  readonly code = "OPENNJET_MEMORY";
  override readonly mayHaveApplied = this.method !== "GET";
}

/** Code 3, or an HTTP 400 that says so: the body was not read as JSON of the form that the module knows. */
export class JsonRefusedError extends RefusalError {
  readonly code = "OPENNJET_JSON_REFUSED";
}

/** Code 4, and codes of a module of its own: refused for the reason that the message gives. */
export class RefusedError extends RefusalError {
  readonly code = "OPENNJET_REFUSED";
}

/** A code that is not documented. Whether anything came into force can't be told from it. */
export class UnknownCodeError extends OpenNjetApiError {
  readonly code = "OPENNJET_CODE_UNKNOWN";
  override readonly mayHaveApplied = this.method !== "GET";
}

/** Code 5: not allowed on this object, such as the removal of a static server or of an upstream in use. */
export class NotAllowedError extends RefusalError {
  readonly code = "OPENNJET_NOT_ALLOWED";
}

/** Code 8, or a message that says so: an object of this name is there already. */
export class AlreadyExistsError extends RefusalError {
  readonly code = "OPENNJET_EXISTS";
}

/** Code 10, or a parameter that this client refuses to send. */
export class ParameterError extends RefusalError {
  readonly code = "OPENNJET_PARAMETER";
}

/** Code 11: a certificate that this server had before, which OpenNJet refuses for good. */
export class CertificateRepeatedError extends RefusalError {
  readonly code = "OPENNJET_CERTIFICATE_REPEATED";
}

/** Code 12, HTTP 404, or a message that says so: there is no such object. */
export class NotFoundError extends RefusalError {
  readonly code = "OPENNJET_NOT_FOUND";
}

/** Code -1: the module of this path is not loaded in the data plane, or not yet, where it starts. */
export class ModuleNotLoadedError extends OpenNjetApiError {
  readonly code = "OPENNJET_MODULE_NOT_LOADED";
}

/** Code -2: the data plane is ending, or being replaced after a reload. */
export class ShuttingDownError extends OpenNjetApiError {
  readonly code = "OPENNJET_SHUTTING_DOWN";
}

/** HTTP 4xx: the control server has refused the request before anybody saw it, such as for an unknown key or a wrong verb. */
export class RequestRefusedError extends RefusalError {
  readonly code = "OPENNJET_REQUEST_REFUSED";
}

/** The body is larger than the API takes: not sent, or HTTP 413. */
export class BodyTooLargeError extends RefusalError {
  readonly code = "OPENNJET_BODY_TOO_LARGE";
}

/** An error of `/v1/upstream_api`; `answerCode` is its word, such as `UpstreamNotFound`. */
export class UpstreamApiError extends RefusalError {
  readonly code = "OPENNJET_UPSTREAM_REFUSED";
}
