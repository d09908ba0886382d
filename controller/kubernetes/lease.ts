import { isRecord } from "./api-object.js";

/** Times of leader election, milliseconds. */
export interface LeaseTimes {
  /** A lease that nobody renewed for so long is free. */
  duration: number;
  /** A leader that could not renew for so long stops leading, well before the lease is free. */
  renewDeadline: number;
  /** Time between attempts. */
  retryPeriod: number;
}

/**
 * Another replica leads at most retryPeriod x 1.2 + duration after the last renewal of one that died, 14.4 s, and the time
 * of two requests; less than the 15, 10 and 2 s of Kubernetes components, so that it is below 20 s on a busy machine too.
 * An API server that is away for longer than renewDeadline costs nothing but the lead: every replica goes on serving.
 */
export const LEASE_TIMES: LeaseTimes = { duration: 12_000, renewDeadline: 8_000, retryPeriod: 2_000 };

/** `spec` of a Lease (coordination.k8s.io/v1). */
export interface LeaseSpec {
  holderIdentity: string;
  leaseDurationSeconds: number;
  acquireTime: string;
  renewTime: string;
  leaseTransitions: number;
}

/**
 * Who may lead, without I/O. Times of the lease itself are never compared with the local clock: what counts is for how
 * long, by the local clock, the lease has not changed. So clocks of replicas may differ as they like.
 */
export class LeaseMachine {
  readonly #identity: string;
  readonly #times: LeaseTimes;
  #seen = "";
  #seenAt = 0;
  #spec: Partial<LeaseSpec> = {};
  #renewedAt: number | undefined;

  constructor(identity: string, times: LeaseTimes) {
    this.#identity = identity;
    this.#times = times;
  }

  /** Whether we lead at `now`, milliseconds of a clock that never goes back. */
  leads(now: number): boolean {
    return this.#renewedAt !== undefined && now - this.#renewedAt < this.#times.renewDeadline;
  }

  /** Takes in what the lease says now; `spec` is undefined if there is none. */
  observe(spec: unknown, now: number): void {
    const text = JSON.stringify(spec ?? null);
    if (text !== this.#seen) {
      this.#seen = text;
      this.#seenAt = now;
    }
    this.#spec = isRecord(spec) ? (spec as Partial<LeaseSpec>) : {};
    if (this.#holder !== this.#identity) this.#renewedAt = undefined;
  }

  /** Milliseconds from `now` until a lease of another replica is free, unless it is renewed; 0 if nobody else holds it. */
  freeIn(now: number): number {
    if (this.#holder === "" || this.#holder === this.#identity) return 0;
    const duration = Math.max(this.#times.duration, 1000 * (this.#spec.leaseDurationSeconds ?? 0));
    return Math.max(0, this.#seenAt + duration - now);
  }

  /** The spec to write, or undefined while another replica holds the lease. `wallClock`: milliseconds since 1970. */
  attempt(now: number, wallClock: number): LeaseSpec | undefined {
    const mine = this.#holder === this.#identity;
    if (this.freeIn(now) > 0) return undefined;
    const time = microTime(wallClock);
    const transitions = this.#spec.leaseTransitions ?? 0;
    return {
      holderIdentity: this.#identity,
      leaseDurationSeconds: Math.ceil(this.#times.duration / 1000),
      acquireTime: mine ? (this.#spec.acquireTime ?? time) : time,
      renewTime: time,
      leaseTransitions: mine || this.#holder === "" ? transitions : transitions + 1,
    };
  }

  /** The attempt was accepted; it was begun at `now`, so that a slow answer counts against us. */
  renewed(now: number): void {
    this.#renewedAt = now;
  }

  /** The spec that gives the lease away; undefined if it is not ours. */
  release(now: number, wallClock: number): LeaseSpec | undefined {
    if (!this.leads(now)) return undefined;
    this.#renewedAt = undefined;
    const time = microTime(wallClock);
    const leaseTransitions = this.#spec.leaseTransitions ?? 0;
    return { holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time, leaseTransitions };
  }

  get #holder(): string {
    return this.#spec.holderIdentity ?? "";
  }
}

/** MicroTime of the Kubernetes API. */
export function microTime(wallClock: number): string {
  return new Date(wallClock).toISOString().replace("Z", "000Z");
}
