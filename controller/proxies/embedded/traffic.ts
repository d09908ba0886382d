import { RecentTimes } from "../recent-times.js";
import { Counts, type FinishedRequest, NO_HOST, type TrafficReading } from "../request-counts.js";

/**
 * Requests by host. A host is counted by the pattern that its rules stand under, never by what a client writes: there
 * are at most as many as there are hosts in the objects, and what is counted for one goes when its rules go.
 */
export class Traffic implements TrafficReading {
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
