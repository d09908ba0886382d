import { type MetricsSource, MetricsText } from "./metrics-text.js";

/** How many pieces are written before other work gets its turn. */
const PIECES_PER_TURN = 64;

/** The metrics page: what all sources say, one after another. Requests that come while a page is made share it. */
export class MetricsPage {
  private making: Promise<Buffer> | undefined;

  /** `limit`: series that the page holds at most, apart from the few that every page has. */
  constructor(
    private readonly sources: readonly MetricsSource[],
    private readonly limit: number,
  ) {}

  /** The page as UTF-8. Never rejects for what is measured; a source that throws is a defect and rejects. */
  render(): Promise<Buffer> {
    this.making ??= this.make().finally(() => {
      this.making = undefined;
    });
    return this.making;
  }

  private async make(): Promise<Buffer> {
    const page = new MetricsText(this.limit);
    const parts: Buffer[] = [];
    let pieces = 0;
    await Promise.all(this.sources.map((source) => source.gather?.()));
    for (const source of this.sources) {
      for (const _ of source.write(page)) {
        if (++pieces % PIECES_PER_TURN !== 0) continue;
        parts.push(Buffer.from(page.take()));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const help = "Series that are left out of this page because it is full";
    page.single("njet_kic_metrics_series_dropped", "gauge", help, page.dropped);
    parts.push(Buffer.from(page.take()));
    return Buffer.concat(parts);
  }
}
