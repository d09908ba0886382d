import { pieceOf } from "../model/pieces.js";
import { errorCode } from "../observability/logger.js";
import type { PlanStep } from "../reconcile/plan.js";
import type { ApplyFailure } from "./proxy.js";

/** A proxy can't do what a step asks for. */
export class UnsupportedError extends Error {
  readonly code = "PROXY_UNSUPPORTED";
}

/** The failure of a step that threw. */
export function failureOf(step: PlanStep, error: unknown): ApplyFailure {
  const known = errorCode(error);
  const certificate = step.step === "set-certificate" && known?.startsWith("PROXY_") !== true;
  const code = certificate ? "PROXY_CERTIFICATE_INVALID" : (known ?? "PROXY_STEP_FAILED");
  return { ...pieceOf(step), code, message: error instanceof Error ? error.message : "unknown failure" };
}
