/**
 * `GET /counters` of the control endpoint: what all workers have counted since NGINX was started, as one JSON object. Whoever
 * is not there has counted nothing.
 *
 *     connections  {accepted, handled, active, reading, writing}: NGINX's own numbers
 *     requests     requests begun
 *     hosts        {<host>: Sums}, by the host that decisions name, or `_`
 *     gone         Sums of hosts that have no rules any more, so that totals never go down
 *     upstreams    {<upstream key>: {<address:port>: Sums with responses and responseSeconds}}
 *     queues       {<upstream key>: {length, timeouts, overflows}}, of upstreams that have a queue
 *     peers        {<upstream key>: {unchecked, up, down, draining, out}}: numbers of peers
 *
 * Sums: {received, sent (bytes), codes: [1xx, 2xx, 3xx, 4xx, 5xx], durations: numbers by bucket (REQUEST_BUCKETS, each alone,
 * the last one above every bound), seconds: sum of the durations}; responses and responseSeconds are those of attempts.
 */
import { Histogram } from "../../observability/histogram.js";
import type { PeerNumbers, QueueCounts } from "../balancing-metrics.js";
import { type CountsReading, type PeerCountsReading, REQUEST_BUCKETS, type TrafficReading } from "../request-counts.js";
import type { ConnectionCounts } from "../vts-metrics.js";

const CODES = 5;
const QUEUE = ["length", "timeouts", "overflows"] as const;
const PEERS = ["unchecked", "up", "down", "draining", "out"] as const;
const CONNECTIONS = ["accepted", "handled", "active", "reading", "writing"] as const;

/** Sums of an answer. Its average is that of what came since the answer before. */
class Sums implements PeerCountsReading {
  received = 0;
  sent = 0;
  codes: number[] = new Array<number>(CODES + 1).fill(0);
  durations: Histogram;
  responses: Histogram;
  private readonly mean: number;
  private readonly responseMean: number;

  constructor(content: unknown, before: Sums | undefined) {
    const { received, sent, codes, durations, seconds, responses, responseSeconds } = members(content);
    this.received = count(received);
    this.sent = count(sent);
    this.codes = [0, ...numbers(codes, CODES)];
    this.durations = Histogram.of(REQUEST_BUCKETS, numbers(durations, REQUEST_BUCKETS.count), count(seconds));
    this.responses = Histogram.of(REQUEST_BUCKETS, numbers(responses, REQUEST_BUCKETS.count), count(responseSeconds));
    this.mean = meanSince(this.durations, before?.durations);
    this.responseMean = meanSince(this.responses, before?.responses);
  }

  add(other: Sums): void {
    this.received += other.received;
    this.sent += other.sent;
    this.codes = this.codes.map((value, i) => value + other.codes[i]);
    this.durations.add(other.durations);
    this.responses.add(other.responses);
  }

  average(): number {
    return this.mean;
  }

  responseAverage(): number {
    return this.responseMean;
  }
}

/** One answer of `GET /counters`. */
export class Counters implements TrafficReading {
  readonly requests: number;
  readonly connections: ConnectionCounts;
  readonly queues: ReadonlyMap<string, QueueCounts>;
  readonly peerNumbers: ReadonlyMap<string, PeerNumbers>;
  private readonly hosts = new Map<string, Sums>();
  private readonly upstreams = new Map<string, Map<string, Sums>>();
  private readonly sum: Sums;
  private readonly mean: number;

  /** `content`: the JSON, of which nothing is taken for granted. `before`: the answer before this one. */
  constructor(content: unknown, before?: Counters) {
    const { connections, requests, hosts, gone, upstreams, queues, peers } = members(content);
    this.requests = count(requests);
    this.connections = counts(connections, CONNECTIONS);
    this.sum = new Sums(gone, undefined);
    for (const [host, sums] of Object.entries(members(hosts))) {
      const read = new Sums(sums, before?.hosts.get(host));
      this.hosts.set(host, read);
      this.sum.add(read);
    }
    this.mean = meanSince(this.sum.durations, before?.sum.durations);
    for (const [key, of] of Object.entries(members(upstreams))) {
      const known = before?.upstreams.get(key);
      const read = Object.entries(members(of)).map(([peer, sums]) => [peer, new Sums(sums, known?.get(peer))] as const);
      this.upstreams.set(key, new Map(read));
    }
    this.queues = new Map(Object.entries(members(queues)).map(([key, of]) => [key, counts(of, QUEUE)]));
    this.peerNumbers = new Map(Object.entries(members(peers)).map(([key, of]) => [key, counts(of, PEERS)]));
  }

  byHost(): Iterable<readonly [string, CountsReading]> {
    return this.hosts;
  }

  total(): { counts: CountsReading; average: number } {
    return { counts: this.sum, average: this.mean };
  }

  *peers(): Iterable<{ upstream: string; backend: string; counts: PeerCountsReading }> {
    for (const [upstream, peers] of this.upstreams) {
      for (const [backend, counts] of peers) yield { upstream, backend, counts };
    }
  }
}

/** Milliseconds; 0 where nothing came in between. Sums that have gone down are those of another NGINX. */
function meanSince(now: Histogram, before: Histogram | undefined): number {
  const fresh = before === undefined || before.count > now.count;
  const number = now.count - (fresh ? 0 : before.count);
  return number === 0 ? 0 : ((now.total - (fresh ? 0 : before.total)) * 1000) / number;
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

function counts<K extends string>(value: unknown, names: readonly K[]): Record<K, number> {
  const of = members(value);
  return Object.fromEntries(names.map((name) => [name, count(of[name])])) as Record<K, number>;
}
