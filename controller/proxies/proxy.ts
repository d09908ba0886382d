import type { Plan } from "../reconcile/plan.js";

/** A step that a proxy refused; the proxy keeps the last good state of that piece and goes on with the others. */
export interface ApplyFailure {
  /** Pattern text, upstream key or certificate host. */
  piece: string;
  code: string;
  message: string;
}

/** A running proxy that is kept in step with the model. */
export interface Proxy {
  /** Applies a plan and resolves with the generation that is in force for new requests. */
  apply(plan: Plan): Promise<{ generation: string; failures: ApplyFailure[] }>;
  /** The generation in force, and whether the proxy serves. */
  state(): { generation: string; serving: boolean };
  /** Stops taking new requests, lets those under way end (at most `graceMs`), then stops. */
  close(graceMs: number): Promise<void>;
}
