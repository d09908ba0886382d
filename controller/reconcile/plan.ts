/** The ordered steps that bring a proxy from one state of the model to the next, make before break. */
import type { HostPattern, HostRules } from "../../core-wasm/binding/source.js";
import type { Certificate, ModelChange, Upstream } from "../model/types.js";

/** One step. A proxy applies steps in order; each is idempotent. */
export type PlanStep =
  | { step: "set-certificate"; certificate: Certificate }
  | { step: "set-upstream"; upstream: Upstream }
  | { step: "set-host"; rules: HostRules }
  | { step: "remove-host"; pattern: HostPattern }
  | { step: "remove-upstream"; key: string }
  | { step: "remove-certificate"; host: string };

/** A plan and the generation (`counter-contenthash`) that the proxy has once all steps are applied. */
export interface Plan {
  generation: string;
  /** True if the steps describe the whole state: what the proxy holds besides them is to be removed. */
  full: boolean;
  steps: PlanStep[];
}

export type { ModelChange };
