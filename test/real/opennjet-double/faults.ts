import type { Message } from "./messages.js";

/** What goes wrong between the control server, the agent and the workers. Each can be set at any time. */
export interface Faults {
  /** So many of the next changes are answered `rpc timeout`; they come into force by `applyLate()`. */
  timeouts: number;
  /** The changes that `timeouts` counts never come into force. */
  timeoutsAreLost: boolean;
  /** So many of the next connections end without an answer, after the change was applied. */
  brokenConnections: number;
  /** Workers get nothing until `deliver()`. */
  workersWait: boolean;
  /** What deletes at full speed lose; see `DeliveryPace`. */
  loseDeletes: boolean;
  /** So many of the next changes are taken by the agent and never reach a worker. */
  lostDeliveries: number;
  /** Whether a change does not reach a worker (its number), which gets later ones. */
  loses?(change: Message, worker: number): boolean;
  /** Every answer is this instead, HTTP 200. */
  answer?: string;
}

export function noFaults(): Faults {
  return {
    timeouts: 0,
    timeoutsAreLost: false,
    brokenConnections: 0,
    workersWait: false,
    loseDeletes: true,
    lostDeliveries: 0,
  };
}

/** Deletes that workers keep up with before they need a pause. */
const DELETES_AT_ONCE = 100;
/** The same with every declarative module loaded: each delete republishes their documents. */
const DELETES_WITH_MODULES = 96;
/** Milliseconds without a delete after which workers have caught up; a pause of 10 ms is never measured as less than this. */
const PAUSE = 5;
/** Modules beyond which the loss is that of all of them. */
const FEW_MODULES = 4;

/**
 * Which deletes reach which worker. Measured: 1,000 at full speed were all accepted, and 439 stayed in both workers and 191
 * in one; with batches of 100 and pauses of 10 ms, none. With all modules loaded, about 96 of 360 were applied.
 */
export class DeliveryPace {
  private burst = 0;
  private last = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly now: () => number,
    private readonly modules: number,
  ) {}

  /** Numbers of the workers, of `workers`, that get the delete that comes now. */
  delete(workers: number): number[] {
    const now = this.now();
    if (now - this.last >= PAUSE) this.burst = 0;
    this.last = now;
    this.burst++;
    const all = Array.from({ length: workers }, (_, i) => i);
    const many = this.modules > FEW_MODULES;
    if (this.burst <= (many ? DELETES_WITH_MODULES : DELETES_AT_ONCE)) return all;
    if (many) return [];
    // Of each 100 that are too much: 49 to nobody, 21 not to the first worker.
    const share = this.burst % 100;
    if (share < 49) return [];
    return share < 70 ? all.slice(1) : all;
  }
}
