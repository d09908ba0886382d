import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Buckets, Histogram } from "../../controller/observability/histogram.js";
import { MetricsPage } from "../../controller/observability/metrics-page.js";
import { labelText, type MetricsSource, MetricsText } from "../../controller/observability/metrics-text.js";
import { parseMetrics, seriesValue } from "../support/metrics-page.js";

function pageOf(limit: number, ...sources: MetricsSource[]) {
  return new MetricsPage(sources, limit).render().then((page) => parseMetrics(page.toString()));
}

describe("the text of metrics", () => {
  it("carries any label value through, whatever is in it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        const page = new MetricsText(1);
        page.family("a", "gauge", "one");
        page.sample("a", labelText("host", value), 1);
        expect(parseMetrics(page.take()).get("a")?.samples).toEqual([{ name: "a", labels: { host: value }, value: 1 }]);
      }),
    );
  });

  it("writes whole numbers, fractions, and what is no finite number", () => {
    const page = new MetricsText(1);
    page.family("a", "gauge", "numbers");
    const values = [0, 12345678901234, 0.25, 1e21, Number.NaN, Infinity, -Infinity];
    for (const [i, value] of values.entries()) page.sample("a", labelText("n", String(i)), value);
    expect(
      parseMetrics(page.take())
        .get("a")
        ?.samples.map(({ value }) => value),
    ).toEqual(values);
  });
});

describe("a histogram", () => {
  const buckets = new Buckets([0.1, 1, 5], 3);

  it("counts a value in every bucket whose bound it does not exceed", () => {
    const histogram = new Histogram(buckets);
    for (const value of [0.05, 0.1, 0.5, 1, 4, 6, 7]) histogram.observe(value);
    const page = new MetricsText(1);
    page.family("t", "histogram", "times");
    histogram.write(page, "t", labelText("host", "a"));
    const families = parseMetrics(page.take());
    const bucket = (le: string) => seriesValue(families, "t_bucket", { host: "a", le });
    expect([bucket("0.100"), bucket("1.000"), bucket("5.000"), bucket("+Inf")]).toEqual([2, 4, 5, 7]);
    expect(seriesValue(families, "t_sum", { host: "a" })).toBe(18.65);
    expect(seriesValue(families, "t_count", { host: "a" })).toBe(7);
    expect(families.get("t")?.samples).toHaveLength(buckets.series);
  });

  it("adds another one", () => {
    const [a, b] = [new Histogram(buckets), new Histogram(buckets)];
    for (const value of [0.05, 2]) a.observe(value);
    for (const value of [0.06, 9]) b.observe(value);
    a.add(b);
    expect(a.total).toBe(11.11);
  });
});

describe("the metrics page", () => {
  const hosts = (count: number): MetricsSource => ({
    *write(page) {
      const shown: string[] = [];
      for (let i = 0; i < count; i++) if (page.reserve(2)) shown.push(labelText("host", `h${i}`));
      page.family("a", "counter", "one");
      for (const labels of shown) page.sample("a", labels, 1);
      page.family("b", "counter", "two");
      for (const labels of shown) page.sample("b", labels, 1);
      yield;
    },
  });

  it("holds no more series than it may, whole label sets only, and says how many it left out", async () => {
    const families = await pageOf(5, hosts(10));
    expect(families.get("a")?.samples.map(({ labels }) => labels.host)).toEqual(["h0", "h1"]);
    expect(families.get("b")?.samples).toHaveLength(2);
    expect(seriesValue(families, "njet_kic_metrics_series_dropped")).toBe(16);
  });

  it("says that nothing was left out where all fits", async () => {
    expect(seriesValue(await pageOf(20, hosts(10)), "njet_kic_metrics_series_dropped")).toBe(0);
  });

  it("lets other work in between while it is made, and is made once for those who ask meanwhile", async () => {
    let made = 0;
    let between = 0;
    const large: MetricsSource = {
      *write(page) {
        made++;
        page.family("a", "gauge", "many");
        for (let i = 0; i < 10_000; i++) {
          page.sample("a", labelText("n", String(i)), i);
          yield;
        }
      },
    };
    const page = new MetricsPage([large], 1);
    const count = () => {
      between++;
      if (!done) setImmediate(count);
    };
    let done = false;
    setImmediate(count);
    const [first, second] = await Promise.all([page.render(), page.render()]);
    done = true;
    expect(second).toBe(first);
    expect(made).toBe(1);
    expect(between).toBeGreaterThan(50);
    await page.render();
    expect(made).toBe(2);
  });
});
