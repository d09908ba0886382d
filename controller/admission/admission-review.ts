import { type Kind, type ObjectRef, recogniseKind } from "../resources/object-ref.js";
import type { Verdict } from "./verdict.js";

/** API version of AdmissionReview that is read and written (Kubernetes API, admission.k8s.io/v1). */
const API_VERSION = "admission.k8s.io/v1";
const OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const;
/** RFC 1123, as the API server asks of the names of every kind that is judged. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const MAX_UID = 128;

/** The part of an AdmissionRequest that is looked at; who asks is none of it. */
export interface AdmissionRequest {
  /** Goes back with the answer. */
  uid: string;
  operation: (typeof OPERATIONS)[number];
  /** Undefined for kinds that are not known here. */
  kind: Kind | undefined;
  /** API group of the kind, as sent. */
  group: string;
  namespace: string;
  name: string;
  /** Empty for the object itself, `status` and the like for a part of it. */
  subResource: string;
  object: unknown;
  oldObject: unknown;
}

/** A review that cannot be answered; the message is for the one who sent it. */
export class ReviewError extends Error {
  override readonly name = "ReviewError";
}

/** Reads any JSON value as an AdmissionReview. Throws a ReviewError for what is none. */
export function readReview(value: unknown): AdmissionRequest {
  const review = record(value, "the body");
  if (review.apiVersion !== API_VERSION || review.kind !== "AdmissionReview") {
    throw new ReviewError(`the body is no AdmissionReview of ${API_VERSION}`);
  }
  const request = record(review.request, "request");
  const { uid } = request;
  if (typeof uid !== "string" || uid === "" || uid.length > MAX_UID) throw new ReviewError("request.uid is no uid");
  const operation = OPERATIONS.find((known) => known === request.operation);
  if (operation === undefined) throw new ReviewError("request.operation is none of CREATE, UPDATE, DELETE, CONNECT");
  const { group, version, kind: kindName } = record(request.kind, "request.kind");
  const kind = recogniseKind(`${text(group)}${group === "" ? "" : "/"}${text(version)}`, text(kindName));
  return {
    uid,
    operation,
    kind,
    group: text(group),
    ...nameOf(request, kind !== undefined),
    subResource: text(request.subResource ?? ""),
    object: request.object ?? undefined,
    oldObject: request.oldObject ?? undefined,
  };
}

/** The answer to a request as an AdmissionReview. */
export function reviewOf(request: AdmissionRequest, verdict: Verdict): unknown {
  const { warnings, refusal } = verdict;
  return {
    apiVersion: API_VERSION,
    kind: "AdmissionReview",
    response: {
      uid: request.uid,
      allowed: refusal === undefined,
      ...(refusal && { status: statusOf(request, refusal) }),
      ...(warnings.length > 0 && { warnings }),
    },
  };
}

/** The object that is asked about. */
export function refOf(request: AdmissionRequest & { kind: Kind }): ObjectRef {
  const { kind, namespace, name } = request;
  return { kind, namespace, name };
}

/** A Status with the causes that kubectl prints one by one. */
function statusOf(request: AdmissionRequest, refusal: NonNullable<Verdict["refusal"]>): unknown {
  const { kind, group, name } = request;
  const { code, reason, message, causes } = refusal;
  return { status: "Failure", code, reason, message, details: { group, kind, name, causes } };
}

/** Namespace and name as sent; the name of the object where the API server made it up. Names become keys of the model. */
function nameOf(request: Record<string, unknown>, known: boolean): { namespace: string; name: string } {
  const namespace = text(request.namespace ?? "");
  const named = text(request.name ?? "");
  const name = named === "" ? nameInside(request.object) : named;
  if (!known) return { namespace, name };
  if (namespace !== "" && !NAMESPACE.test(namespace)) throw new ReviewError("request.namespace is no namespace");
  if (name !== "" && !NAME.test(name)) throw new ReviewError("the name of the object is none");
  return { namespace, name };
}

function nameInside(object: unknown): string {
  if (!isRecord(object) || !isRecord(object.metadata)) return "";
  return typeof object.metadata.name === "string" ? object.metadata.name : "";
}

function text(value: unknown): string {
  if (typeof value !== "string") throw new ReviewError("a field of request that is text holds something else");
  return value;
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (!isRecord(value)) throw new ReviewError(`${what} is no object`);
  return value;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
