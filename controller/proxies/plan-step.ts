import { patternText } from "../../core-wasm/binding/source.js";
import { errorCode } from "../observability/logger.js";
import type { PlanStep } from "../reconcile/plan.js";
import type { ApplyFailure } from "./proxy.js";

/** A proxy can't do what a step asks for. */
export class UnsupportedError extends Error {
  readonly code = "PROXY_UNSUPPORTED";
}

/** What a step names: pattern text, upstream key or host of a certificate. */
export function pieceOf(step: PlanStep): string {
  switch (step.step) {
    case "set-certificate":
      return step.certificate.host;
    case "remove-certificate":
      return step.host;
    case "set-upstream":
      return step.upstream.peers.key;
    case "remove-upstream":
      return step.key;
    case "set-host":
      return patternText(step.rules.pattern);
    case "remove-host":
      return patternText(step.pattern);
  }
}

/** The failure of a step that threw. */
export function failureOf(step: PlanStep, error: unknown): ApplyFailure {
  const certificate = step.step === "set-certificate";
  const code = certificate ? "PROXY_CERTIFICATE_INVALID" : (errorCode(error) ?? "PROXY_STEP_FAILED");
  return { piece: pieceOf(step), code, message: error instanceof Error ? error.message : "unknown failure" };
}
