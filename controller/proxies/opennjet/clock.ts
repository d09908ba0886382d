/** Time, as this part sees it. */
export interface Clock {
  /** Milliseconds of a clock that never goes back. */
  now(): number;
  /** Does `task` once, `milliseconds` from now. What is returned takes that back. */
  after(milliseconds: number, task: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after(milliseconds, task) {
    const timer = setTimeout(task, milliseconds);
    return () => clearTimeout(timer);
  },
};
