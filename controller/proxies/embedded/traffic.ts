import { Buckets, Histogram } from "../../observability/histogram.js";
import { RecentTimes } from "./recent-times.js";

/** Seconds; those that the VTS module's documentation gives as an example, in its spelling. */
export const REQUEST_BUCKETS = new Buckets([0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10], 3);

/** Where a request counts that no host of ours has decided: an unknown host, or a path without any rule. */
export const NO_HOST = "_";

/** One request that has ended. Times in milliseconds. */
export interface FinishedRequest {
  status: number;
  /** Bytes from the client and to it, heads included. */
  received: number;
  sent: number;
  duration: number;
  now: number;
}

/** What is counted for a set of requests. */
export class Counts {
  received = 0;
  sent = 0;
  /** By the first digit of the status, from 1 on. */
  readonly codes = new Float64Array(6);
  readonly durations = new Histogram(REQUEST_BUCKETS);
  readonly recent = new RecentTimes();

  record(request: FinishedRequest): void {
    this.received += request.received;
    this.sent += request.sent;
    this.code(request.status);
    this.durations.observe(request.duration / 1000);
    this.recent.add(request.duration, request.now);
  }

  code(status: number): void {
    const digit = Math.trunc(status / 100);
    if (digit >= 1 && digit <= 5) this.codes[digit]++;
  }

  /** Adds sums of other requests; recent times are left as they are. */
  add(other: Counts): void {
    this.received += other.received;
    this.sent += other.sent;
    for (let i = 1; i < this.codes.length; i++) this.codes[i] += other.codes[i];
    this.durations.add(other.durations);
  }
}

/**
 * What one peer of one upstream has done. Every attempt counts with its status and its own response time; the request as
 * a whole (bytes, duration) counts for the peer that was tried last, as in the VTS module.
 */
export class PeerCounts extends Counts {
  readonly responses = new Histogram(REQUEST_BUCKETS);
  readonly recentResponses = new RecentTimes();

  /** `duration` of the attempt, in milliseconds. */
  response(duration: number, now: number): void {
    this.responses.observe(duration / 1000);
    this.recentResponses.add(duration, now);
  }
}

/**
 * Requests by host. A host is counted by the pattern that its rules stand under, never by what a client writes: there
 * are at most as many as there are hosts in the objects, and what is counted for one goes when its rules go.
 */
export class Traffic {
  /** Requests begun. */
  requests = 0;
  private readonly hosts = new Map<string, Counts>([[NO_HOST, new Counts()]]);
  /** By host, the patterns (`*.x`, `**.x`) that stand for it. */
  private readonly patterns = new Map<string, Set<string>>();
  /** Sums of hosts that are gone, and of all requests' recent times: totals never go down. */
  private readonly gone = new Counts();
  private readonly recent = new RecentTimes();

  addHost(pattern: string): void {
    const host = hostOfPattern(pattern);
    const patterns = this.patterns.get(host);
    if (patterns === undefined) this.patterns.set(host, new Set([pattern]));
    else patterns.add(pattern);
  }

  removeHost(pattern: string): void {
    const host = hostOfPattern(pattern);
    const patterns = this.patterns.get(host);
    if (patterns?.delete(pattern) !== true || patterns.size > 0) return;
    this.patterns.delete(host);
    const counts = this.hosts.get(host);
    if (counts === undefined || host === NO_HOST) return;
    this.gone.add(counts);
    this.hosts.delete(host);
  }

  /** `host` as decisions name it: undefined or empty where no host's rules have decided. */
  record(host: string | undefined, request: FinishedRequest): void {
    this.countsOf(host).record(request);
    this.recent.add(request.duration, request.now);
  }

  /** Counts by host, in the order in which they were first seen. */
  byHost(): ReadonlyMap<string, Counts> {
    return this.hosts;
  }

  /** Everything counted so far. `average` is the mean duration of the last requests, in milliseconds. */
  total(now: number): { counts: Counts; average: number } {
    const counts = new Counts();
    counts.add(this.gone);
    for (const host of this.hosts.values()) counts.add(host);
    return { counts, average: this.recent.average(now) };
  }

  private countsOf(host: string | undefined): Counts {
    const name = host === undefined || host === "" ? NO_HOST : host;
    const known = this.hosts.get(name);
    if (known !== undefined) return known;
    // Rules may have gone while the request was under way.
    if (!this.patterns.has(name)) return this.gone;
    const counts = new Counts();
    this.hosts.set(name, counts);
    return counts;
  }
}

/** The host as decisions name it, of the text of a pattern. Rules without a host and the default count under `_`. */
function hostOfPattern(pattern: string): string {
  if (pattern === "" || pattern === "(default)") return NO_HOST;
  return pattern.startsWith("**.") ? pattern.slice(1) : pattern;
}
