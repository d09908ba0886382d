import { createSecureContext } from "node:tls";
import type { PlanStep } from "../../reconcile/plan.js";
import { failureOf } from "../plan-step.js";
import type { ApplyFailure } from "../proxy.js";

/** Steps after which other work gets its turn. */
const STEPS_PER_TURN = 32;

/** The steps whose certificate OpenSSL can read, and has no handshake use, such as one with a key that is too short. */
export async function unusableCertificates(steps: readonly PlanStep[]): Promise<ApplyFailure[]> {
  const failures: ApplyFailure[] = [];
  for (const [i, step] of steps.entries()) {
    if (i > 0 && i % STEPS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    if (step.step !== "set-certificate") continue;
    try {
      createSecureContext({ cert: step.certificate.chain, key: step.certificate.key });
    } catch (error) {
      failures.push(failureOf(step, error));
    }
  }
  return failures;
}
