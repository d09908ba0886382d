/** Rounds of questions for a marker, until each worker has shown it. */
import type { CarriedLocation } from "./location-set.js";
import { askForMarker, type DataPlane } from "./marker.js";

/**
 * Rounds until workers count as late: after a change; and until the first whole set is told as served, since a worker that starts is told of
 * everything twice, and answers nobody meanwhile.
 */
const ROUNDS = { change: 40, look: 40, start: 200 };
/** Rounds of a look that finds nobody late: an idle OpenNJet has most connections taken by one worker, and who was not asked is asked at the next. */
const LOOK_ROUNDS = 2;
/** Milliseconds between rounds. */
const ASK_AGAIN = 25;
/**
 * Questions of a round, for each worker: they are asked at once, since of connections that come one by one the system gives all to the same
 * worker.
 */
const AT_ONCE = 8;
const MOST_AT_ONCE = 256;

export interface MarkerQuestion {
  marker: CarriedLocation;
  /** The marker of the set before: where a set comes back, a worker that is behind may have its marker from the first time. */
  before: CarriedLocation | undefined;
  patience: keyof typeof ROUNDS;
  /** True where the answer counts no more. */
  gaveUp(): boolean;
}

/**
 * False if a worker shows no sign of this marker in a while, or still has the one before. Which worker takes a connection is the system's
 * choice, so one that could not be asked in all that while is no reason to doubt.
 */
export async function areWithWorkers(
  { plane, wait }: { plane: DataPlane; wait(milliseconds: number): Promise<void> },
  { marker, before, patience, gaveUp }: MarkerQuestion,
): Promise<boolean> {
  const seen = new Set<string>();
  const workers = plane.workers();
  const enough = patience === "look" ? LOOK_ROUNDS : Infinity;
  let late = false;
  for (let round = 0; round < ROUNDS[patience] && !gaveUp(); round++) {
    if (round > 0) await wait(ASK_AGAIN);
    const length = Math.min(AT_ONCE * workers, MOST_AT_ONCE);
    const questions = Array.from({ length }, () => askForMarker(plane, marker, before));
    const answers = await Promise.allSettled(questions);
    const pids = answers.map((answer) => (answer.status === "fulfilled" ? answer.value : undefined));
    late = pids.includes(undefined);
    for (const pid of pids) if (pid !== undefined) seen.add(pid);
    if (!late && (seen.size >= workers || round + 1 >= enough)) break;
  }
  return !late;
}
