import { labelText, type MetricsText } from "./metrics-text.js";

/** Upper bounds of the buckets of a histogram, in ascending order, with their text as label values. */
export class Buckets {
  readonly labels: readonly string[];

  /** `digits` is how many decimals the text has; as short as possible by default. */
  constructor(
    readonly bounds: readonly number[],
    digits?: number,
  ) {
    const texts = bounds.map((bound) => (digits === undefined ? String(bound) : bound.toFixed(digits)));
    this.labels = [...texts, "+Inf"].map((text) => labelText("le", text));
  }

  /** Buckets, with the one above every bound. */
  get count(): number {
    return this.labels.length;
  }

  /** Samples that a histogram of these buckets has on the page. */
  get series(): number {
    return this.labels.length + 2;
  }
}

/** Counts how many values fall into which bucket, and sums them up. */
export class Histogram {
  private sum = 0;
  /** Values of each bucket alone; the last one is above every bound. */
  private readonly counts: number[];

  constructor(private readonly buckets: Buckets) {
    // No typed array: one of this length lies outside of the heap and costs several times as much.
    this.counts = new Array<number>(buckets.bounds.length + 1).fill(0);
  }

  /** What somebody else has counted: numbers by bucket, each alone, and the sum of the values. */
  static of(buckets: Buckets, counts: readonly number[], sum: number): Histogram {
    const histogram = new Histogram(buckets);
    for (let i = 0; i < histogram.counts.length; i++) histogram.counts[i] = counts[i] ?? 0;
    histogram.sum = sum;
    return histogram;
  }

  observe(value: number): void {
    const { bounds } = this.buckets;
    let i = 0;
    while (i < bounds.length && value > bounds[i]) i++;
    this.counts[i]++;
    this.sum += value;
  }

  /** Adds what another histogram of the same buckets has counted. */
  add(other: Histogram): void {
    for (let i = 0; i < this.counts.length; i++) this.counts[i] += other.counts[i];
    this.sum += other.sum;
  }

  /** Sum of all values, without the digits that adding up many small numbers leaves. */
  get total(): number {
    return Math.round(this.sum * 1e6) / 1e6;
  }

  /** Number of values. */
  get count(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  /** Writes `name_bucket`, `name_sum` and `name_count`; `labels` as for MetricsText.sample. */
  write(page: MetricsText, name: string, labels: string): void {
    const before = labels === "" ? "" : `${labels},`;
    let count = 0;
    for (let i = 0; i < this.counts.length; i++) {
      count += this.counts[i];
      page.sample(`${name}_bucket`, before + this.buckets.labels[i], count);
    }
    page.sample(`${name}_sum`, labels, this.total);
    page.sample(`${name}_count`, labels, count);
  }
}
