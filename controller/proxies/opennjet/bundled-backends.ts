/**
 * The dynamic upstream API of the Lua balancer that OpenNJet itself brings. It answers 201 to whatever it gets, and each worker looks
 * once a second whether the time of the last post is later than that of the one it has. So:
 *
 * - Nothing is sent that was not checked whole: one wrong entry would keep workers from all that follow, for ever.
 * - A post comes a while after the one before: of two within the resolution of the clock workers may never see the later.
 * - A post is done when it can be read back and workers have it. To tell, each carries a backend of its own as the last entry, the mark:
 *   who has it has all before it. It is posted again where a worker does not come to have it.
 */
import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { InvalidAnswerError, RequestRefusedError, ServerFailureError } from "./api/errors.js";
import type { Backend, BackendsApi, PostResult } from "./api/index.js";
import { checkBackends } from "./bundled-schema.js";

/** What a worker says. */
export interface WorkerAnswer {
  pid: number;
  /** Whether it has the backend that it was asked for. */
  has: boolean;
}

export interface BundledWorkers {
  /** Asks some worker, which one is the system's choice. Rejects where none answers. */
  ask(backend: string): Promise<WorkerAnswer>;
  /** How many there are; at least 1. */
  count(): number;
}

export interface BundledBackendsParts {
  api: Pick<BackendsApi, "post" | "list" | "close">;
  workers: BundledWorkers;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
  wait(milliseconds: number): Promise<void>;
}

/** The clock of workers has milliseconds, as of their last turn. */
const SPACE = 50;
/** Workers look each second. */
const POLL = 1_000;
/** Who was never asked in this time, of a second more than a poll, is not waited for: which worker answers is the system's choice. */
const SURE = POLL + 1_000;
/** A worker that has not come to have a post by then has missed it. */
const MISSED = 3 * POLL;
const ASK_AGAIN = 100;
/** Questions at once for each worker. */
const AT_ONCE = 4;
const TRIES = 3;
const MARK = "njet-kic.mark.";
/** Nobody is ever sent there: no location names a mark. */
const NOWHERE = [{ address: "127.0.0.1", port: "1" }];
const PATH = "/configuration/backends";

export class BundledBackends {
  private turn: Promise<unknown> = Promise.resolve();
  private posted = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: BundledBackendsParts) {}

  /**
   * Sets all backends; resolves when workers have them. Throws RequestRefusedError for an entry that would do harm, with nothing sent,
   * and ServerFailureError where they do not come into force.
   */
  post(backends: readonly Backend[]): Promise<PostResult> {
    const result = this.turn.then(() => this.send(backends));
    this.turn = result.catch(() => undefined);
    return result;
  }

  /**
   * The backends that were posted last, but for those that would do harm if they were posted again: somebody else's, such as our balancer's
   * before it. None before the first post.
   */
  async list(): Promise<Backend[]> {
    const stored = await this.stored();
    return stored.filter((one) => !one.name.startsWith(MARK) && checkBackends([one]) === undefined);
  }

  close(): Promise<void> {
    return this.parts.api.close();
  }

  private async send(backends: readonly Backend[]): Promise<PostResult> {
    const wrong = checkBackends(backends);
    if (wrong !== undefined) throw new RequestRefusedError(wrong, { method: "POST", path: PATH, status: 400 });
    const { api, now, wait } = this.parts;
    for (let tries = 0; tries < TRIES; tries++) {
      const mark: Backend = { name: `${MARK}${randomBytes(8).toString("hex")}`, endpoints: NOWHERE };
      const all = [...backends, mark];
      await wait(Math.max(0, this.posted + SPACE - now()));
      try {
        await api.post(all);
      } finally {
        this.posted = now();
      }
      if (!isDeepStrictEqual(await this.stored(), all)) continue;
      if (await this.isWithWorkers(mark.name)) return { late: [], failures: [] };
    }
    throw new ServerFailureError("workers do not take what was posted", { method: "POST", path: PATH, status: 201 });
  }

  private async stored(): Promise<Backend[]> {
    try {
      return await this.parts.api.list();
    } catch (error) {
      // Before the first post it answers `nil`, which is no JSON.
      if (error instanceof InvalidAnswerError) return [];
      throw error;
    }
  }

  /** False where a worker was asked that does not come to have the mark. */
  private async isWithWorkers(mark: string): Promise<boolean> {
    const { workers, now, wait } = this.parts;
    const begun = now();
    const having = new Set<number>();
    for (;;) {
      const count = workers.count();
      const questions = Array.from({ length: AT_ONCE * count }, () => workers.ask(mark));
      const answers = await Promise.allSettled(questions);
      let lacks = false;
      for (const answer of answers) {
        // Of a worker that ends while it is asked nothing is to be expected.
        if (answer.status === "rejected") continue;
        if (answer.value.has) having.add(answer.value.pid);
        else lacks = true;
      }
      const passed = now() - begun;
      if (!lacks && having.size > 0 && (having.size >= count || passed >= SURE)) return true;
      if (passed >= MISSED) return false;
      await wait(ASK_AGAIN);
    }
  }
}
