import { hostname } from "node:os";
import type { Histogram } from "../observability/histogram.js";
import { labelText, type MetricsSource, type MetricsText, type MetricType } from "../observability/metrics-text.js";
import { type CountsReading, type PeerCountsReading, REQUEST_BUCKETS, type TrafficReading } from "./request-counts.js";

/** Version of the VTS module whose families these are. */
const VTS_VERSION = "v0.2.7";
/** Label of the sum over all hosts. */
const ALL_HOSTS = "*";
const CODES = ["1xx", "2xx", "3xx", "4xx", "5xx"].map((code) => labelText("code", code));
const DIRECTION_IN = labelText("direction", "in");
const DIRECTION_OUT = labelText("direction", "out");
/** Two directions, five codes, two times, and the histogram. */
const SERVER_SERIES = 9 + REQUEST_BUCKETS.series;
const UPSTREAM_SERIES = 11 + 2 * REQUEST_BUCKETS.series;

/** Client connections, as NGINX counts them. */
export interface ConnectionCounts {
  /** Since the start; undefined where that is not known. */
  accepted?: number;
  handled?: number;
  active: number;
  /** Those that have sent a part of a request head. */
  reading: number;
  /** Those with a request under way. */
  writing: number;
}

/** What the page is made from. */
export interface VtsSubject {
  /** `njet` or `nginx`: families are called `<prefix>_vts_*`. */
  prefix: string;
  version: string;
  /** Start of the proxy, in milliseconds since the epoch. */
  started: number;
  /** A clock as that of the requests, in milliseconds. */
  now(): number;
  traffic: TrafficReading;
  connections(): ConnectionCounts;
  /** Peers with counts, by upstream and address. Upstreams by key: several objects may balance one service differently. */
  peers(): Iterable<{ upstream: string; backend: string; counts: PeerCountsReading }>;
}

interface Row<C> {
  labels: string;
  counts: C;
  /** Mean of the last request durations, in milliseconds. */
  average: number;
}

/**
 * The families of nginx-module-vts: names, labels, types and units are its own, so that its dashboards work. Families
 * stand together, as the text format asks. Left out is what this proxy has not: caches, shared memory, filters.
 */
export class VtsMetrics implements MetricsSource {
  constructor(private readonly subject: VtsSubject) {}

  *write(page: MetricsText): Iterable<void> {
    this.writeMain(page);
    yield;
    yield* this.writeServers(page);
    yield* this.writeUpstreams(page);
  }

  private writeMain(page: MetricsText): void {
    const { version, started, traffic } = this.subject;
    const info = this.name("info");
    const labels = [["hostname", hostname()] as const, ["module_version", VTS_VERSION] as const];
    page.family(info, "gauge", "The proxy and its version");
    page.sample(info, [...labels, ["version", version] as const].map(([k, v]) => labelText(k, v)).join(","), 1);
    page.single(this.name("start_time_seconds"), "gauge", "When the proxy was started", started / 1000);
    const connections = this.subject.connections();
    const { accepted, active, handled, reading, writing } = connections;
    const waiting = Math.max(0, active - reading - writing);
    const name = this.name("main_connections");
    page.family(name, "gauge", "Client connections by status; accepted, handled and requests since the start");
    const values = { accepted, active, handled, reading, requests: traffic.requests, waiting, writing };
    for (const [status, value] of Object.entries(values)) {
      if (value !== undefined) page.sample(name, labelText("status", status), value);
    }
  }

  private *writeServers(page: MetricsText): Iterable<void> {
    const { traffic } = this.subject;
    const now = this.subject.now();
    const rows: Row<CountsReading>[] = [];
    for (const [host, counts] of traffic.byHost()) {
      if (!page.reserve(SERVER_SERIES)) continue;
      rows.push({ labels: labelText("host", host), counts, average: counts.average(now) });
      yield;
    }
    rows.push({ labels: labelText("host", ALL_HOSTS), ...traffic.total(now) });
    yield;
    yield* this.writeCounts(page, "server", "Requests of clients", rows);
  }

  private *writeUpstreams(page: MetricsText): Iterable<void> {
    const now = this.subject.now();
    const rows: (Row<PeerCountsReading> & { responseAverage: number })[] = [];
    for (const { upstream, backend, counts } of this.subject.peers()) {
      if (!page.reserve(UPSTREAM_SERIES)) continue;
      const labels = `${labelText("upstream", upstream)},${labelText("backend", backend)}`;
      const responseAverage = counts.responseAverage(now);
      rows.push({ labels, counts, average: counts.average(now), responseAverage });
      yield;
    }
    if (rows.length === 0) return;
    yield* this.writeCounts(page, "upstream", "Requests towards peers", rows);
    yield* this.histograms(page, "upstream_response", "Time in seconds that attempts at peers took", rows, (counts) => {
      return counts.responses;
    });
    const average = "upstream_response_seconds";
    yield* this.each(page, average, "gauge", "Mean time in seconds of the last attempts", rows, (name, row) => {
      page.sample(name, row.labels, milliseconds(row.responseAverage));
    });
  }

  /** What hosts and peers have in common. */
  private *writeCounts<R extends Row<CountsReading>>(
    page: MetricsText,
    of: string,
    what: string,
    rows: readonly R[],
  ): Iterable<void> {
    yield* this.each(page, `${of}_bytes_total`, "counter", `${what}: bytes`, rows, (name, { labels, counts }) => {
      page.sample(name, `${labels},${DIRECTION_IN}`, counts.received);
      page.sample(name, `${labels},${DIRECTION_OUT}`, counts.sent);
    });
    yield* this.each(page, `${of}_requests_total`, "counter", `${what}: number`, rows, (name, { labels, counts }) => {
      for (const [i, code] of CODES.entries()) page.sample(name, `${labels},${code}`, counts.codes[i + 1]);
    });
    const mean = `${of}_request_seconds`;
    yield* this.each(page, mean, "gauge", `${what}: mean time in seconds of the last ones`, rows, (name, row) => {
      page.sample(name, row.labels, milliseconds(row.average));
    });
    yield* this.histograms(page, `${of}_request`, `${what}: time in seconds`, rows, (counts) => counts.durations);
  }

  /** `<of>_seconds_total` and the histogram `<of>_duration_seconds`. */
  private *histograms<C>(
    page: MetricsText,
    of: string,
    help: string,
    rows: readonly Row<C>[],
    histogramOf: (counts: C) => Histogram,
  ): Iterable<void> {
    yield* this.each(page, `${of}_seconds_total`, "counter", help, rows, (name, { labels, counts }) => {
      page.sample(name, labels, histogramOf(counts).total);
    });
    yield* this.each(page, `${of}_duration_seconds`, "histogram", help, rows, (name, { labels, counts }) => {
      histogramOf(counts).write(page, name, labels);
    });
  }

  private *each<R>(
    page: MetricsText,
    family: string,
    type: MetricType,
    help: string,
    rows: readonly R[],
    write: (name: string, row: R) => void,
  ): Iterable<void> {
    const name = this.name(family);
    page.family(name, type, help);
    for (const row of rows) {
      write(name, row);
      yield;
    }
  }

  private name(family: string): string {
    return `${this.subject.prefix}_vts_${family}`;
  }
}

/** Seconds with the three decimals that VTS gives. */
function milliseconds(value: number): number {
  return Math.round(value) / 1000;
}
