/**
 * What the workers of NGINX have counted, as `GET /counters` of the control endpoint gives it (balancer/counters.lua):
 *
 *     connections  {active, reading, writing, waiting}
 *     workers      of each {pid, requests, gone, hosts: {<host>: counts}, peers: {<upstream key>: {<ip:port>: counts}},
 *                  queues: [{upstream, length, timeouts, overflows}]}
 *     counts       {received, sent (bytes), codes: [1xx .. 5xx], requests: times, responses: times (of attempts; peers only)}
 *     times        {buckets: of REQUEST_BUCKETS, each alone, seconds: their sum, recent, recentCount: of the last minute}
 */
import { Histogram } from "../../observability/histogram.js";
import type { QueueCounts } from "../balancing-metrics.js";
import { NO_HOST, type PeerCountsReading, REQUEST_BUCKETS, type TrafficReading } from "../request-counts.js";
import type { ConnectionCounts } from "../vts-metrics.js";

const CODES = 5;

/** Durations that several workers have counted. */
class Times {
  readonly histogram = new Histogram(REQUEST_BUCKETS);
  private recent = 0;
  private recentCount = 0;

  /** Milliseconds. */
  get average(): number {
    return this.recentCount === 0 ? 0 : (this.recent * 1000) / this.recentCount;
  }

  add(content: unknown): void {
    const { buckets, seconds, recent, recentCount } = members(content);
    this.histogram.add(Histogram.of(REQUEST_BUCKETS, numbers(buckets, REQUEST_BUCKETS.count), count(seconds)));
    this.recent += count(recent);
    this.recentCount += count(recentCount);
  }
}

/** Sums over workers. */
class Sums implements PeerCountsReading {
  received = 0;
  sent = 0;
  readonly codes = new Array<number>(CODES + 1).fill(0);
  private readonly times = new Times();
  private readonly responseTimes = new Times();

  get durations(): Histogram {
    return this.times.histogram;
  }

  get responses(): Histogram {
    return this.responseTimes.histogram;
  }

  add(content: unknown): void {
    const { received, sent, codes, requests, responses } = members(content);
    this.received += count(received);
    this.sent += count(sent);
    for (const [i, value] of numbers(codes, CODES).entries()) this.codes[i + 1] += value;
    this.times.add(requests);
    this.responseTimes.add(responses);
  }

  average(): number {
    return this.times.average;
  }

  responseAverage(): number {
    return this.responseTimes.average;
  }
}

/** Sums over some workers, of which nothing in their JSON is taken for granted. */
export class Counters implements TrafficReading {
  requests = 0;
  readonly connections: ConnectionCounts;
  private readonly hosts = new Map<string, Sums>();
  private readonly upstreams = new Map<string, Map<string, Sums>>();
  private readonly waiting = new Map<string, QueueCounts>();
  private readonly sum = new Sums();

  constructor(workers: Iterable<unknown>, connections: unknown) {
    const { active, reading, writing } = members(connections);
    this.connections = { active: count(active), reading: count(reading), writing: count(writing) };
    this.hosts.set(NO_HOST, new Sums());
    for (const worker of workers) this.add(members(worker));
  }

  byHost(): Iterable<readonly [string, Sums]> {
    return this.hosts;
  }

  total(): { counts: Sums; average: number } {
    return { counts: this.sum, average: this.sum.average() };
  }

  *peers(): Iterable<{ upstream: string; backend: string; counts: Sums }> {
    for (const [upstream, peers] of this.upstreams) {
      for (const [backend, counts] of peers) yield { upstream, backend, counts };
    }
  }

  queues(): ({ upstream: string } & QueueCounts)[] {
    return [...this.waiting].map(([upstream, counts]) => ({ upstream, ...counts }));
  }

  private add({ requests, gone, hosts, peers, queues }: Record<string, unknown>): void {
    this.requests += count(requests);
    this.sum.add(gone);
    for (const [host, content] of Object.entries(members(hosts))) {
      madeIn(this.hosts, host, () => new Sums()).add(content);
      this.sum.add(content);
    }
    for (const [key, of] of Object.entries(members(peers))) {
      const sums = madeIn(this.upstreams, key, () => new Map<string, Sums>());
      for (const [peer, content] of Object.entries(members(of))) madeIn(sums, peer, () => new Sums()).add(content);
    }
    for (const queue of Array.isArray(queues) ? queues : []) {
      const { upstream, length, timeouts, overflows } = members(queue);
      if (typeof upstream !== "string") continue;
      const counts = madeIn(this.waiting, upstream, () => ({ length: 0, timeouts: 0, overflows: 0 }));
      counts.length += count(length);
      counts.timeouts += count(timeouts);
      counts.overflows += count(overflows);
    }
  }
}

/** Answers of one NGINX after another: what workers have counted that are gone stays in the sums, so that none goes down. */
export class CounterHistory {
  /** By process number, the last that was heard of a worker. */
  private readonly workers = new Map<number, Record<string, unknown>>();
  /** What workers have counted that are gone. */
  private past: unknown;

  /** Takes an answer in, and gives all sums. */
  take(content: unknown): Counters {
    const { connections, workers } = members(content);
    const seen = new Set<number>();
    for (const worker of Array.isArray(workers) ? workers : []) {
      const of = members(worker);
      const pid = count(of.pid);
      seen.add(pid);
      this.workers.set(pid, of);
    }
    for (const [pid, worker] of this.workers) {
      if (seen.has(pid)) continue;
      this.workers.delete(pid);
      this.past = added(this.past ?? {}, worker);
    }
    return new Counters([this.past, ...this.workers.values()], connections);
  }
}

/** Of now, and gone with their worker. */
const PASSING = ["pid", "queues", "recent", "recentCount"];

/** Two JSON values of one form, number by number. */
function added(a: unknown, b: unknown): unknown {
  if (a === undefined || b === undefined) return a === undefined ? b : a;
  if (typeof a === "number" || typeof b === "number") return count(a) + count(b);
  if (Array.isArray(a) && Array.isArray(b)) return a.map((value, i) => added(value, b[i]));
  const [left, right] = [members(a), members(b)];
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return Object.fromEntries(
    [...names].filter((name) => !PASSING.includes(name)).map((name) => [name, added(left[name], right[name])]),
  );
}

function madeIn<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function members(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;
}

function numbers(value: unknown, length: number): number[] {
  const list: unknown[] = Array.isArray(value) ? value : [];
  return Array.from({ length }, (_, i) => count(list[i]));
}
