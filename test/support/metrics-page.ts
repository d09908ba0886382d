import { ask } from "./http-client.js";

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Family {
  type: string;
  help: string;
  samples: Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/;

/**
 * Reads the text format of Prometheus as strictly as it is written down: each family once, with HELP and TYPE before
 * its samples, which stand together; no series twice; histograms whole. Throws where the page is not like that.
 */
export function parseMetrics(text: string): Map<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let name = "";
  let family: Family | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    const help = /^# HELP (\S+) (.+)$/.exec(line);
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (help) {
      name = help[1];
      if (!NAME.test(name) || families.has(name)) throw new Error(`family twice or badly named: ${name}`);
      family = { type: "", help: help[2], samples: [] };
      families.set(name, family);
    } else if (type) {
      if (family === undefined || type[1] !== name || family.type !== "") throw new Error(`TYPE out of place: ${line}`);
      family.type = type[2];
    } else {
      const sample = parseSample(line);
      if (family === undefined || family.type === "" || !belongs(sample, name, family.type))
        throw new Error(`sample out of place: ${line}`);
      const series = line.slice(0, line.lastIndexOf(" "));
      if (seen.has(series)) throw new Error(`series twice: ${series}`);
      seen.add(series);
      family.samples.push(sample);
    }
  }
  for (const [of, { type, samples }] of families) if (type === "histogram") checkHistograms(of, samples);
  return families;
}

function parseSample(line: string): Sample {
  const match = /^([^\s{]+)(?:\{(.*)\})? (\S+)$/s.exec(line);
  if (!match || !NAME.test(match[1])) throw new Error(`no sample: ${line}`);
  const labels: Record<string, string> = {};
  let rest = match[2] ?? "";
  while (rest !== "") {
    const label = LABEL.exec(rest);
    if (!label || label[1] in labels) throw new Error(`bad labels: ${line}`);
    labels[label[1]] = label[2].replace(/\\([\\"n])/g, (_, c: string) => (c === "n" ? "\n" : c));
    rest = rest.slice(label[0].length);
  }
  const value = match[3] === "NaN" ? Number.NaN : Number(match[3].replace("Inf", "Infinity"));
  if (Number.isNaN(value) && match[3] !== "NaN") throw new Error(`no number: ${line}`);
  return { name: match[1], labels, value };
}

function belongs(sample: Sample, family: string, type: string): boolean {
  if (type !== "histogram") return sample.name === family;
  return ["_bucket", "_sum", "_count"].some((suffix) => sample.name === family + suffix);
}

function checkHistograms(name: string, samples: readonly Sample[]): void {
  const groups = new Map<string, { buckets: Sample[]; sum?: number; count?: number }>();
  for (const sample of samples) {
    const { le, ...labels } = sample.labels;
    const key = JSON.stringify(labels);
    const group = groups.get(key) ?? { buckets: [] };
    groups.set(key, group);
    if (sample.name.endsWith("_bucket")) group.buckets.push({ ...sample, labels: { le } });
    else if (sample.name.endsWith("_sum")) group.sum = sample.value;
    else group.count = sample.value;
  }
  for (const [labels, { buckets, sum, count }] of groups) {
    const counts = buckets.map(({ value }) => value);
    const bounds = buckets.map((bucket) => Number(bucket.labels.le.replace("+Inf", "Infinity")));
    const rising = (values: number[]) => values.every((value, i) => i === 0 || value >= values[i - 1]);
    if (
      !rising(counts) ||
      !rising(bounds) ||
      bounds.at(-1) !== Infinity ||
      counts.at(-1) !== count ||
      sum === undefined
    )
      throw new Error(`bad histogram: ${name} ${labels}`);
  }
}

/** The value of the one series with these labels; undefined if there is none. */
export function seriesValue(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ""));
  return family?.samples.find((sample) => sample.name === name && sameLabels(sample.labels, labels))?.value;
}

/** Values of a label within a family, in the order of the page. */
export function labelValues(families: ReadonlyMap<string, Family>, name: string, label: string): string[] {
  return [...new Set(families.get(name)?.samples.map(({ labels }) => labels[label]) ?? [])];
}

function sameLabels(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

/** What `/stats` on a port says. */
export async function scrape(port: number): Promise<Map<string, Family>> {
  const { status, body } = await ask(port, { path: "/stats" });
  if (status !== 200) throw new Error(`status ${status}`);
  return parseMetrics(body);
}
