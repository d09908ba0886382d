import { Buckets, Histogram } from "./histogram.js";
import { labelText, type MetricsSource, type MetricsText } from "./metrics-text.js";

/** How often the event loop is looked at, in milliseconds. */
const SAMPLE_INTERVAL = 50;
const LAG_BUCKETS = new Buckets([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]);
const MICROSECONDS = 1e6;

/** What the process itself uses: processor, memory, and how late its event loop is. */
export class ProcessMetrics implements MetricsSource {
  private readonly lag = new Histogram(LAG_BUCKETS);
  private readonly timer: NodeJS.Timeout;

  constructor() {
    let due = performance.now() + SAMPLE_INTERVAL;
    this.timer = setInterval(() => {
      const now = performance.now();
      this.lag.observe(Math.max(0, now - due) / 1000);
      due = now + SAMPLE_INTERVAL;
    }, SAMPLE_INTERVAL);
    // Whoever forgets to stop it must not keep the process alive.
    this.timer.unref();
  }

  /** Stops looking at the event loop. */
  close(): void {
    clearInterval(this.timer);
  }

  *write(page: MetricsText): Iterable<void> {
    const cpu = process.cpuUsage();
    const cpuName = "njet_kic_process_cpu_seconds_total";
    page.family(cpuName, "counter", "Processor time of this process");
    page.sample(cpuName, labelText("mode", "user"), cpu.user / MICROSECONDS);
    page.sample(cpuName, labelText("mode", "system"), cpu.system / MICROSECONDS);
    const memory = process.memoryUsage();
    page.single("njet_kic_process_resident_memory_bytes", "gauge", "Resident memory of this process", memory.rss);
    page.single("njet_kic_process_heap_bytes", "gauge", "JavaScript heap in use", memory.heapUsed);
    const lagName = "njet_kic_event_loop_lag_seconds";
    page.family(lagName, "histogram", "How much later than due a timer ran, looked at every 50 ms");
    this.lag.write(page, lagName, "");
    yield;
  }
}
