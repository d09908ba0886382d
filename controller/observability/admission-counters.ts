import { X509Certificate } from "node:crypto";
import { Buckets, Histogram } from "./histogram.js";
import { labelText, type MetricsSource, type MetricsText } from "./metrics-text.js";

const REQUESTS = "njet_kic_admission_requests_total";
const DURATION = "njet_kic_admission_duration_seconds";
const EXPIRY = "njet_kic_admission_certificate_expiry_timestamp_seconds";
const BUCKETS = new Buckets([0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 1]);

/**
 * How requests to the validating webhook end. Reviews: `passed` (not ours, not looked at), `allowed`, `warned` (allowed with
 * warnings), `refused`. HTTP errors: `unavailable` (no whole state yet), `busy`, `bad` (no review), `failed` (a defect).
 */
export const ADMISSION_ANSWERS = [
  "passed",
  "allowed",
  "warned",
  "refused",
  "unavailable",
  "busy",
  "bad",
  "failed",
] as const;

export type AdmissionAnswer = (typeof ADMISSION_ANSWERS)[number];

/** Counts what the validating webhook answers. No series is made from what a caller sends. */
export class AdmissionCounters implements MetricsSource {
  private readonly answers = new Map<AdmissionAnswer, number>(ADMISSION_ANSWERS.map((answer) => [answer, 0]));
  private readonly duration = new Histogram(BUCKETS);
  private expiry = Number.NaN;

  answered(answer: AdmissionAnswer): void {
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1);
  }

  /** Time from the last byte of a review to its answer, in seconds. */
  took(seconds: number): void {
    this.duration.observe(seconds);
  }

  /** The certificate (PEM, leaf first) that the webhook shows now. */
  certificate(chain: string): void {
    this.expiry = Date.parse(new X509Certificate(chain).validTo) / 1000;
  }

  *write(page: MetricsText): Iterable<void> {
    page.family(REQUESTS, "counter", "Requests to the validating webhook, by answer");
    for (const [answer, count] of this.answers) page.sample(REQUESTS, labelText("answer", answer), count);
    page.family(DURATION, "histogram", "Time from a whole review to its answer");
    this.duration.write(page, DURATION, "");
    if (!Number.isNaN(this.expiry)) {
      page.single(EXPIRY, "gauge", "When the certificate of the validating webhook ends", this.expiry);
    }
    yield;
  }
}
