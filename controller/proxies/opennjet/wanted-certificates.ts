/** Which hosts are to have a certificate, and which of them wait for room. Pure. */
import type { PlanStep } from "../../reconcile/plan.js";
import { failureOf } from "../plan-step.js";
import type { ApplyFailure } from "../proxy.js";
import type { CertificatePair } from "./certificate-files.js";

export type SetCertificate = Extract<PlanStep, { step: "set-certificate" }>;

/** There are as many hosts as there may be. */
class CertificateLimitError extends Error {
  readonly code = "PROXY_CERTIFICATES_FULL";

  constructor(most: number) {
    super(
      `${most} hosts have a certificate already, which are all that --carrier locations has room for; use the carrier core`,
    );
  }
}

/** What came of the steps of a plan. */
export interface TakenCertificates {
  failures: ApplyFailure[];
  /** Steps that were refused before, for which there is room now. */
  retried: SetCertificate[];
}

export class WantedCertificates {
  readonly #hosts = new Map<string, CertificatePair>();
  /** The last step of each host that there was no room for, those first that have waited longest. */
  readonly #waiting = new Map<string, SetCertificate>();

  /** `most`: hosts that there may be; Infinity where there may be any number. */
  constructor(private readonly most: number) {}

  get hosts(): ReadonlyMap<string, CertificatePair> {
    return this.#hosts;
  }

  /** Takes steps in, others than those of certificates too. `full`: what they do not name goes. */
  take(steps: readonly PlanStep[], full: boolean): TakenCertificates {
    if (full) for (const map of [this.#hosts, this.#waiting]) map.clear();
    for (const step of steps) {
      if (step.step === "remove-certificate") for (const map of [this.#hosts, this.#waiting]) map.delete(step.host);
    }
    const failures: ApplyFailure[] = [];
    const refused: SetCertificate[] = [];
    for (const step of steps) {
      if (step.step !== "set-certificate") continue;
      this.#waiting.delete(step.certificate.host);
      if (this.#set(step)) continue;
      failures.push(failureOf(step, new CertificateLimitError(this.most)));
      refused.push(step);
    }
    // After what the plan names: a host that takes the place of another one is not to lose it to one that waits.
    const retried = [...this.#waiting.values()].filter((step) => this.#set(step));
    for (const { certificate } of retried) this.#waiting.delete(certificate.host);
    for (const step of refused) this.#waiting.set(step.certificate.host, step);
    return { failures, retried };
  }

  /** False where there is no room. */
  #set({ certificate }: SetCertificate): boolean {
    if (this.#hosts.size >= this.most && !this.#hosts.has(certificate.host)) return false;
    this.#hosts.set(certificate.host, certificate);
    return true;
  }
}

/** Steps but for the certificates that are refused. */
export function withoutRefused(failures: readonly ApplyFailure[], steps: readonly PlanStep[]): PlanStep[] {
  const refused = new Set(failures.filter(({ kind }) => kind === "certificate").map(({ piece }) => piece));
  return steps.filter((step) => step.step !== "set-certificate" || !refused.has(step.certificate.host));
}
