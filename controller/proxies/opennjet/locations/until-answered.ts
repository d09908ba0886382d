import type { Logger } from "../../../observability/logger.js";
import { RequestRefusedError } from "../api/errors.js";

/** Milliseconds between tries to reach an OpenNJet that does not answer. */
const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;

export interface Patience {
  logger: Logger;
  wait(milliseconds: number): Promise<void>;
  /** True where we are to stop. */
  gaveUp(): boolean;
}

/** Does something until OpenNJet has answered, or we are to stop: then it rejects with what was in the way. */
export async function untilAnswered<T>({ logger, wait, gaveUp }: Patience, work: () => Promise<T>): Promise<T> {
  for (let pause = FIRST_WAIT; ; pause = Math.min(LONGEST_WAIT, pause * 2)) {
    try {
      return await work();
    } catch (error) {
      // The same will be refused again.
      if (gaveUp() || (error instanceof RequestRefusedError && error.status === 400)) throw error;
      if (pause >= LONGEST_WAIT / 2) logger.warn("opennjet does not take a change yet; it is tried again", { error });
      await wait(pause);
    }
  }
}
