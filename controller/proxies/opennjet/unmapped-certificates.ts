/** Certificates that OpenNJet's map does not name yet, where workers have nothing but the map; and what is told of them. Pure. */
import type { PlanStep } from "../../reconcile/plan.js";
import { failureOf } from "../plan-step.js";
import { PartlyAppliedError, RefusalError } from "./api/errors.js";
import { canStand } from "./certificate-table.js";
import type { SetCertificate, TakenCertificates } from "./wanted-certificates.js";

class CertificateMapRefusedError extends Error {
  readonly code = "PROXY_CERTIFICATE_MAP_REFUSED";
}

export class UnmappedCertificates {
  /** By host. What the map has already is in force by its file. */
  readonly #unmapped = new Map<string, SetCertificate>();
  /** Hosts of which a failure was told. */
  readonly #told = new Set<string>();
  #mapped: ReadonlySet<string> = new Set();

  /** Steps that are wanted. `full`: what they do not name is not. */
  take(steps: readonly PlanStep[], full: boolean): void {
    if (full) for (const collection of [this.#unmapped, this.#told]) collection.clear();
    for (const step of steps) {
      if (step.step !== "set-certificate" && step.step !== "remove-certificate") continue;
      const host = step.step === "set-certificate" ? step.certificate.host : step.host;
      this.#told.delete(host);
      if (step.step === "remove-certificate") this.#unmapped.delete(host);
      else if (!this.#mapped.has(host) && canStand(host)) this.#unmapped.set(host, step);
    }
  }

  /** The map has these hosts. */
  reached(hosts: Iterable<string>): void {
    this.#mapped = new Set(hosts);
  }

  /** What is to be told of earlier steps with this plan, and of its own. `error`: why the map is not in step, if it is not. */
  toTell(steps: readonly PlanStep[], error: unknown): TakenCertificates {
    const own = new Set(steps);
    const unmapped = [...this.#unmapped];
    if (error === undefined) {
      const retried = unmapped.filter(([host]) => this.#told.has(host)).map(([, step]) => step);
      this.#unmapped.clear();
      this.#told.clear();
      return { failures: [], retried };
    }
    // One of two maps was taken: the other was refused.
    const refused = error instanceof RefusalError || error instanceof PartlyAppliedError;
    if (!refused) return { failures: [], retried: [] };
    const refusal = new CertificateMapRefusedError(`opennjet refuses the map of certificates: ${error.message}`);
    for (const [host] of unmapped) this.#told.add(host);
    const all = unmapped.map(([, step]) => step);
    return { failures: all.map((step) => failureOf(step, refusal)), retried: all.filter((step) => !own.has(step)) };
  }
}
