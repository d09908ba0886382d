import { Buckets, Histogram } from "../observability/histogram.js";
import { RecentTimes } from "./recent-times.js";

/** Seconds; those that the VTS module's documentation gives as an example, in its spelling. */
export const REQUEST_BUCKETS = new Buckets([0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10], 3);

/** Where a request counts that no host of ours has decided: an unknown host, or a path without any rule. */
export const NO_HOST = "_";

/** What was counted for a set of requests, to be read. Bytes with heads; durations in seconds. */
export interface CountsReading {
  readonly received: number;
  readonly sent: number;
  /** By the first digit of the status, from 1 on. */
  readonly codes: ArrayLike<number>;
  readonly durations: Histogram;
  /** Mean duration of the last requests, in milliseconds. */
  average(now: number): number;
}

/** What one peer of one upstream has done, to be read. */
export interface PeerCountsReading extends CountsReading {
  /** Of attempts, in seconds. */
  readonly responses: Histogram;
  /** Mean time of the last attempts, in milliseconds. */
  responseAverage(now: number): number;
}

/** Requests by host, to be read. */
export interface TrafficReading {
  /** Requests begun. */
  readonly requests: number;
  /** In any order. */
  byHost(): Iterable<readonly [string, CountsReading]>;
  /** Everything counted so far. `average` is the mean duration of the last requests, in milliseconds. */
  total(now: number): { counts: CountsReading; average: number };
}

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
export class Counts implements CountsReading {
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

  average(now: number): number {
    return this.recent.average(now);
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
export class PeerCounts extends Counts implements PeerCountsReading {
  readonly responses = new Histogram(REQUEST_BUCKETS);
  readonly recentResponses = new RecentTimes();

  /** `duration` of the attempt, in milliseconds. */
  response(duration: number, now: number): void {
    this.responses.observe(duration / 1000);
    this.recentResponses.add(duration, now);
  }

  responseAverage(now: number): number {
    return this.recentResponses.average(now);
  }
}
