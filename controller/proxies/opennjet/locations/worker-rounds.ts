/** Rounds of questions, until each worker has shown that it has a set of locations. */
import type { Expected } from "./held-locations.js";
import type { CarriedLocation } from "./location-set.js";
import { askWorker, type DataPlane, type PlaneConnection } from "./questions.js";

/**
 * Rounds until workers count as late, or what they say as wrong: after a change; and until the first whole set is told as served, since a
 * worker that starts is told of everything twice.
 */
const ROUNDS = { change: 40, look: 40, start: 200 };
/**
 * Rounds after which workers that were never met are waited for no longer: an idle OpenNJet has most connections taken by one worker, and
 * who was not asked is asked at the next look. A worker that starts may take no connection for two seconds, and knows of no location when
 * it takes the first: a start waits for it as long as for what workers say.
 */
const ENOUGH = { change: 40, look: 2, start: ROUNDS.start };
/** Milliseconds between rounds. */
const ASK_AGAIN = 25;
/**
 * Connections of a round, for each worker: they come at once, since of connections that come one by one the system gives all to the same
 * worker.
 */
const AT_ONCE = 8;
const MOST_AT_ONCE = 256;

export interface WorkersQuestion {
  marker: CarriedLocation;
  /** The marker of the set before: where a set comes back, a worker that is behind may have its marker from the first time. */
  before: CarriedLocation | undefined;
  patience: keyof typeof ROUNDS;
  /** What a worker is to say besides, once it shows the marker. Asked for once for each process. */
  expectedOf(process: string): readonly Expected[];
  /** True where the answer counts no more. */
  gaveUp(): boolean;
}

/** What workers have said. */
export interface Found {
  /** A worker shows no sign of the marker in a while, still has the one before, or does not answer. */
  isLate: boolean;
  /** What a worker that shows the marker said otherwise than expected, each once. */
  wrong: Expected[];
}

export function isRight({ isLate, wrong }: Found): boolean {
  return !isLate && wrong.length === 0;
}

/**
 * Asks until all workers have said what is expected of them, or have had their time. Which worker takes a connection is the system's
 * choice, so one that could not be asked in all that while is no reason to doubt.
 */
export async function askWorkers(
  { plane, wait }: { plane: DataPlane; wait(milliseconds: number): Promise<void> },
  question: WorkersQuestion,
): Promise<Found> {
  const { patience, gaveUp } = question;
  const workers = plane.workers();
  const asked = new Asked(question);
  let isLate = false;
  for (let round = 0; round < ROUNDS[patience] && !gaveUp(); round++) {
    if (round > 0) await wait(ASK_AGAIN);
    const length = Math.min(AT_ONCE * workers, MOST_AT_ONCE);
    const answers = await Promise.allSettled(Array.from({ length }, () => asked.over(plane)));
    isLate = answers.some((answer) => answer.status === "rejected" || !answer.value);
    if (!isLate && asked.isDone && (asked.workers >= workers || round + 1 >= ENOUGH[patience])) break;
  }
  return { isLate, wrong: asked.wrong };
}

/** What is left to be asked of each worker. */
class Asked {
  /** By process: what it has not said as expected yet; and what it has said otherwise. */
  readonly #left = new Map<string, readonly Expected[]>();
  readonly #wrong = new Map<string, readonly Expected[]>();
  readonly #busy = new Set<string>();

  constructor(private readonly question: WorkersQuestion) {}

  /** Workers that have shown the marker. */
  get workers(): number {
    return this.#left.size;
  }

  get isDone(): boolean {
    return [...this.#left.values()].every(({ length }) => length === 0);
  }

  get wrong(): Expected[] {
    return [...new Set([...this.#wrong.values()].flat())];
  }

  /** Asks whoever takes a connection. False where it has not the marker, or ends before it has said all. Rejects where nobody answers. */
  async over(plane: DataPlane): Promise<boolean> {
    const connection = plane.connect();
    try {
      const process = await this.#marked(connection);
      if (process === undefined) return false;
      // One pass for each worker, not one for each connection.
      if (this.#busy.has(process)) return true;
      const left = this.#left.get(process) ?? this.question.expectedOf(process);
      this.#left.set(process, left);
      if (left.length === 0) return true;
      this.#busy.add(process);
      return await this.#compare(connection, process, left).finally(() => this.#busy.delete(process));
    } finally {
      connection.close();
    }
  }

  /** The process of a worker that has the marker, and not the one of before. */
  async #marked(connection: PlaneConnection): Promise<string | undefined> {
    const { marker, before } = this.question;
    const said = await askWorker(connection, marker.question);
    if (said?.isThere !== true) return undefined;
    const old = before && (await askWorker(connection, before.question));
    return old?.isThere === true ? undefined : said.process;
  }

  async #compare(connection: PlaneConnection, process: string, expected: readonly Expected[]): Promise<boolean> {
    const wrong: Expected[] = [];
    for (const one of expected) {
      const said = await askWorker(connection, one.location.question);
      if (said?.process !== process) return false;
      if (said.isThere !== one.isThere) wrong.push(one);
    }
    this.#left.set(process, wrong);
    this.#wrong.set(process, wrong);
    return true;
  }
}
