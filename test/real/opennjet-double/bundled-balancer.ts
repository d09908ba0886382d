/**
 * The Lua balancer that OpenNJet brings, as far as posts go (modules/configuration.lua, modules/balancer.lua), with a clock that is
 * turned by hand: it stores whatever comes, and each worker looks once a second whether the time of the post is later than what it has.
 */
import { type Backend, InvalidAnswerError, type PostResult } from "../../../controller/proxies/opennjet/api/index.js";
import type { BundledWorkers, WorkerAnswer } from "../../../controller/proxies/opennjet/bundled-backends.js";

const POLL = 1000;

interface Worker {
  pid: number;
  poll: number;
  /** Time of the post that it has. */
  last: number;
  backends: Map<string, Backend>;
}

export interface BundledDoubleOptions {
  /** For each worker, at which millisecond of a second it looks. */
  polls: readonly number[];
  /** The workers that connections come to, in turn; all of them where absent. */
  asked?: readonly number[];
}

export class BundledDouble implements BundledWorkers {
  /** Milliseconds since the start. */
  time = 0;
  readonly posts: Backend[][] = [];
  /** When each post came, also those that were refused. */
  readonly tried: number[] = [];
  /** So many posts from now on are refused. */
  refuse = 0;
  /** So many posts from now on have the time of the one before. */
  still = 0;
  /** So many milliseconds the clock was set back. */
  back = 0;
  /** What somebody else posts after each of the next posts. */
  overwrite: Backend[][] = [];
  private stored: string | undefined;
  private stamp = 1;
  private readonly workers: Worker[];
  private readonly asked: readonly number[];
  private next = 0;

  constructor({ polls, asked = polls.map((_, i) => i) }: BundledDoubleOptions) {
    this.workers = polls.map((poll, i) => ({ pid: 100 + i, poll, last: 0, backends: new Map() }));
    this.asked = asked;
  }

  advance(milliseconds: number): void {
    for (const end = this.time + Math.ceil(milliseconds); this.time < end; ) {
      this.time++;
      for (const worker of this.workers) if (this.time % POLL === worker.poll) this.sync(worker);
    }
  }

  async post(backends: readonly Backend[]): Promise<PostResult> {
    this.tried.push(this.time);
    if (this.refuse > 0) {
      this.refuse--;
      throw new Error("refused");
    }
    this.posts.push([...backends]);
    this.store(this.overwrite.shift() ?? backends);
    return { late: [], failures: [] };
  }

  async list(): Promise<Backend[]> {
    if (this.stored === undefined) {
      throw new InvalidAnswerError("nil", { method: "GET", path: "/configuration/backends", status: 200 });
    }
    return JSON.parse(this.stored) as Backend[];
  }

  async close(): Promise<void> {}

  count(): number {
    return this.workers.length;
  }

  async ask(backend: string): Promise<WorkerAnswer> {
    const { pid, backends } = this.workers[this.asked[this.next++ % this.asked.length]];
    return { pid, has: backends.has(backend) };
  }

  /** How many workers have a backend with an endpoint of this port. */
  workersWith(name: string, port: string): number {
    return this.workers.filter(({ backends }) => backends.get(name)?.endpoints.some((one) => one.port === port)).length;
  }

  private store(backends: readonly Backend[]): void {
    this.stored = JSON.stringify(backends);
    // It has no earlier time than its own start.
    if (this.still > 0) this.still--;
    else this.stamp = 10 + this.time - this.back;
  }

  private sync(worker: Worker): void {
    if (this.stored === undefined || this.stamp <= worker.last) return;
    const backends = JSON.parse(this.stored) as Backend[];
    worker.backends = new Map(backends.filter(({ endpoints }) => endpoints.length > 0).map((one) => [one.name, one]));
    worker.last = this.stamp;
  }
}
