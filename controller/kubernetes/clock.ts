import { setTimeout as delay } from "node:timers/promises";

/** Time, as this part sees it. */
export interface Clock {
  /** Milliseconds of a clock that never goes back. */
  now(): number;
  /** Resolves after `ms`, or as soon as `signal` is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  async sleep(ms, signal) {
    await delay(ms, undefined, { signal }).catch(() => undefined);
  },
};
