/** The text format of Prometheus, version 0.0.4. */

export type MetricType = "counter" | "gauge" | "histogram";

/**
 * One part of the metrics page. It is written in pieces: where `write` yields, other work may come in between, so that
 * a large page holds no request up.
 */
export interface MetricsSource {
  /** Fetches what `write` is to say, where it lies elsewhere. Never rejects: what can't be had is left out. */
  gather?(): Promise<void>;
  write(page: MetricsText): Iterable<void>;
}

/** A metrics page in the making. Samples of one family have to be written one after another, as the format asks. */
export class MetricsText {
  /** Series that were left out because the page was full. */
  dropped = 0;
  private lines: string[] = [];
  private series = 0;

  /** `limit` is the number of series that sources with many of them may fill the page up to. */
  constructor(private readonly limit: number) {}

  /**
   * True if `count` more series have a place; they are counted then. To be asked for all series of a label set at
   * once, before any of them is written, where objects or traffic decide how many label sets there are.
   */
  reserve(count: number): boolean {
    if (this.series + count > this.limit) {
      this.dropped += count;
      return false;
    }
    this.series += count;
    return true;
  }

  /** Begins a family. `help` has no line break and no backslash. */
  family(name: string, type: MetricType, help: string): void {
    this.lines.push(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`);
  }

  /** One sample. `labels` is what `labelText` gives, or several of it with commas in between; empty for none. */
  sample(name: string, labels: string, value: number): void {
    this.lines.push(labels === "" ? `${name} ${numberText(value)}\n` : `${name}{${labels}} ${numberText(value)}\n`);
  }

  /** A family with a single sample. */
  single(name: string, type: MetricType, help: string, value: number): void {
    this.family(name, type, help);
    this.sample(name, "", value);
  }

  /** What was written since the last call. */
  take(): string {
    const text = this.lines.join("");
    this.lines = [];
    return text;
  }
}

/** `name="value"`, the value escaped. Label names are ours and need no check. */
export function labelText(name: string, value: string): string {
  return `${name}="${/[\\"\n]/.test(value) ? value.replace(/[\\"\n]/g, escaped) : value}"`;
}

function escaped(character: string): string {
  return character === "\n" ? "\\n" : `\\${character}`;
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
