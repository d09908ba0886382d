import { errorCode } from "../observability/logger.js";
import type { Outcome, Target } from "./target.js";

/** Probes a target and calls `done` once, later. What it returns ends the probe without an outcome. Never throws. */
export type Probe = (target: Target, done: (outcome: Outcome) => void) => () => void;

const REASONS: Record<string, string> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the peer broke the connection off",
  EPIPE: "the peer broke the connection off",
  EHOSTUNREACH: "the peer cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  EMFILE: "this process has too many open files",
  ETIMEDOUT: "the connection timed out",
  HPE_HEADER_OVERFLOW: "the head of the answer is too large",
};

/** What an error says, in our own words: nothing that a peer sent. */
export function reasonOf(error: unknown): string {
  const code = errorCode(error) ?? "";
  if (REASONS[code] !== undefined) return REASONS[code];
  if (code.startsWith("HPE_")) return "the answer is no HTTP";
  if (code.startsWith("ERR_SSL") || code.startsWith("EPROTO")) return "the TLS handshake failed";
  return code === "" ? "the probe failed" : `the probe failed (${code.slice(0, 60)})`;
}

/** One probe on its way: a time limit for the step that it is at, and one outcome, whatever happens after. */
export class Attempt {
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  /** `release` gives back what the probe holds; it runs once, before the outcome is told. */
  constructor(
    private readonly done: (outcome: Outcome) => void,
    private readonly release: () => void,
  ) {}

  get over(): boolean {
    return this.#over;
  }

  /** The probe is at a step that may take `ms`. A time-out is a failure. */
  step(what: string, ms: number): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.fail(`timed out ${what}`), ms);
  }

  pass(reason: string): void {
    this.#end({ passed: true, reason });
  }

  fail(reason: string): void {
    this.#end({ passed: false, reason });
  }

  /** Ends the probe; nothing is told. */
  cancel(): void {
    this.#end(undefined);
  }

  #end(outcome: Outcome | undefined): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.release();
    if (outcome !== undefined) this.done(outcome);
  }
}
