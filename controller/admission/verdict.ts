import { isDeepStrictEqual } from "node:util";
import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { ObjectState } from "../model/object-state.js";
import type { ObjectChange, Probe } from "../model/routing-model.js";
import { actsOnRouting } from "../resources/annotations.js";
import type { Kind, ObjectRef } from "../resources/object-ref.js";
import { type Problem, quote } from "../resources/problem.js";
import { type AdmissionRequest, isRecord, refOf } from "./admission-review.js";
import { causeText, messageOf, warningsOf } from "./answer-text.js";
import { PatternBudget } from "./pattern-budget.js";

/** What is said about a request. */
export interface Verdict {
  /** `passed`: none of our business, not looked at. `warned`: allowed, with something to say. */
  answer: "passed" | "allowed" | "warned" | "refused";
  /** Printable ASCII; few and short enough for the API server to pass on whole. */
  warnings: string[];
  refusal?: Refusal;
}

export interface Refusal {
  /** 422: the object is wrong by itself. 403: it is good, but takes what another object has. */
  code: 422 | 403;
  reason: "Invalid" | "Forbidden";
  message: string;
  /** `reason` is a code of ERRORS.md. */
  causes: { reason: string; field: string; message: string }[];
}

/** The model, as far as it is asked. */
export interface AskedModel {
  probe(change: ObjectChange, checker: PatternChecker): Probe;
  problems(ref: ObjectRef): ObjectState | undefined;
}

export interface JudgeOptions {
  model: AskedModel;
  /** Whether objects of a namespace are followed at all. */
  follows: (namespace: string) => boolean;
  checker: PatternChecker;
  /** Milliseconds since 1970. */
  now: number;
  /** Milliseconds of any origin. */
  clock: () => number;
}

/** Time for the patterns of one object, in milliseconds: enough for hundreds of the usual kind. */
const PATTERNS_MS = 50;

const PASSED: Verdict = { answer: "passed", warnings: [] };
const JUDGED: ReadonlySet<Kind> = new Set(["Ingress", "VirtualServer", "VirtualServerRoute"]);
/** Problems of an object that is good, but has lost something to another one. */
const COLLISIONS: ReadonlySet<string> = new Set(["HOST_TAKEN", "PATH_TAKEN", "DEFAULT_TAKEN"]);

/**
 * Judges one request by what the model says would become of the object:
 *
 * - Errors of the object are refused.
 * - So is what another object has: a host or path that the object would not get, and one that it would take away since it
 *   is the older one. What it has lost before is a warning, or nobody could repair the rest of such an object.
 * - All else that is wrong is a warning: Services, Secrets and routes may come later.
 *
 * Allowed without a look are deletions, objects that are being deleted, changes that leave alone what is read (so that
 * finalizers, labels and foreign annotations of an Invalid object can change), subresources, and objects that are not
 * served here.
 */
export function judge(request: AdmissionRequest, options: JudgeOptions): Verdict {
  const { model, now } = options;
  if (!isJudged(request) || !options.follows(request.namespace)) return PASSED;
  const { operation, object, oldObject } = request;
  if (operation === "UPDATE" && (isBeingDeleted(object) || sameContent(object, oldObject))) return PASSED;
  const ref = refOf(request);
  const budget = new PatternBudget(options.checker, PATTERNS_MS, options.clock);
  const content = operation === "CREATE" ? dated(object, now) : object;
  const { state, displaced } = model.probe({ ...ref, object: content }, budget);
  if (state === undefined || state.reason === "Ignored") return PASSED;
  const lost = operation === "UPDATE" ? (model.problems(ref)?.problems ?? []) : [];
  const inUse = displaced.map(({ object: owner, host }): Problem => {
    const message = `${owner} has the host ${quote(host)} and would lose it, or a path of it, to this object, which counts as older`;
    return { path: "spec", code: "HOST_IN_USE", message, severity: "error" };
  });
  const errors = state.problems.filter(({ severity }) => severity === "error");
  const collisions = [
    ...newOnes(
      state.problems.filter(({ code }) => COLLISIONS.has(code)),
      lost,
    ),
    ...inUse,
  ];
  const refused = new Set([...errors, ...collisions]);
  const warnings = warningsOf([...unchecked(budget), ...state.problems.filter((problem) => !refused.has(problem))]);
  if (refused.size > 0) return { answer: "refused", warnings, refusal: refusalOf(ref, errors, collisions) };
  return { answer: warnings.length > 0 ? "warned" : "allowed", warnings };
}

/** What is left to say where the time did not suffice; the model itself checks everything. */
function unchecked({ skipped }: PatternBudget): Problem[] {
  if (skipped === 0) return [];
  const message = `${skipped} patterns are not checked here, since the others took ${PATTERNS_MS} ms; status tells of them`;
  return [{ path: "", code: "LIMIT_EXCEEDED", message, severity: "warning" }];
}

function refusalOf(ref: ObjectRef, errors: readonly Problem[], collisions: readonly Problem[]): Refusal {
  const problems = [...errors, ...collisions];
  const causes = problems.map((problem) => ({
    reason: problem.code,
    field: problem.path,
    message: causeText(problem),
  }));
  const { message, shown } = messageOf(ref, problems);
  const kind =
    errors.length > 0 ? ({ code: 422, reason: "Invalid" } as const) : ({ code: 403, reason: "Forbidden" } as const);
  return { ...kind, message, causes: causes.slice(0, shown) };
}

function isJudged(request: AdmissionRequest): request is AdmissionRequest & { kind: Kind } {
  const { kind, operation, subResource } = request;
  if (operation !== "CREATE" && operation !== "UPDATE") return false;
  return kind !== undefined && JUDGED.has(kind) && subResource === "";
}

/** The problems that are not among those of before. The same loss may be there several times. */
function newOnes(problems: readonly Problem[], before: readonly Problem[]): Problem[] {
  const left = before.map(lossKey);
  return problems.filter((problem) => {
    const index = left.indexOf(lossKey(problem));
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

/** Without the field: its number changes when something else of the object does. */
function lossKey({ code, message }: Problem): string {
  return `${code} ${message}`;
}

/** An object that is not stored yet is the newest of all. */
function dated(object: unknown, now: number): unknown {
  if (!isRecord(object)) return object;
  const metadata = isRecord(object.metadata) ? object.metadata : {};
  if (metadata.creationTimestamp !== undefined && metadata.creationTimestamp !== null) return object;
  return { ...object, metadata: { ...metadata, creationTimestamp: new Date(now).toISOString() } };
}

function isBeingDeleted(object: unknown): boolean {
  return isRecord(object) && isRecord(object.metadata) && typeof object.metadata.deletionTimestamp === "string";
}

/** Whether nothing that is read differs. */
function sameContent(object: unknown, before: unknown): boolean {
  if (!isRecord(object) || !isRecord(before)) return false;
  return isDeepStrictEqual(object.spec, before.spec) && isDeepStrictEqual(annotationsOf(object), annotationsOf(before));
}

function annotationsOf({ metadata }: Record<string, unknown>): [string, unknown][] {
  if (!isRecord(metadata) || !isRecord(metadata.annotations)) return [];
  return Object.entries(metadata.annotations)
    .filter(([name]) => actsOnRouting(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
