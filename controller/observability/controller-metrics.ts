import { X509Certificate } from "node:crypto";
import type { AdmissionCounters } from "./admission-counters.js";
import { HealthCounters } from "./health-counters.js";
import { Buckets, Histogram } from "./histogram.js";
import { labelText, type MetricsSource, type MetricsText } from "./metrics-text.js";

const APPLY_BUCKETS = new Buckets([0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]);

/** The state of an object, as far as it is counted. */
export interface CountedState {
  kind: string;
  state: string;
}

/** A certificate whose end is watched; its key is no business of this part. */
export interface WatchedCertificate {
  /** `Secret/namespace/name`. */
  resource: string;
  /** PEM, leaf first. */
  chain: string;
}

/** Counts what the controller does. Label values come from objects that were checked, and their number is bounded. */
export class ControllerMetrics implements MetricsSource {
  /** What active health checks tell. */
  readonly health = new HealthCounters();
  /** Whether this replica writes status; undefined where there is nothing to lead. */
  leads: (() => boolean) | undefined;
  /** What the validating webhook answers; undefined where there is none. */
  admission: AdmissionCounters | undefined;
  private readonly applyDuration = new Histogram(APPLY_BUCKETS);
  private readonly steps = new Map<string, number>();
  private applyErrors = 0;
  private refusedSteps = 0;
  private generation = "";
  /** Labels of each object, and how many objects have them. */
  private readonly states = new Map<string, string>();
  private readonly counts = new Map<string, number>();
  private readonly certificates = new Map<string, WatchedCertificate & { expiry?: number }>();

  /** A plan was carried out, in `seconds`; `refused` of its steps were not. */
  applied(
    plan: { generation: string; steps: readonly { step: string; key?: string }[] },
    seconds: number,
    refused: number,
  ): void {
    this.applyDuration.observe(seconds);
    this.generation = plan.generation;
    this.refusedSteps += refused;
    for (const { step, key } of plan.steps) {
      this.steps.set(step, (this.steps.get(step) ?? 0) + 1);
      if (step === "remove-upstream" && key !== undefined) this.health.forget(key);
    }
  }

  /** A plan could not be carried out. */
  applyFailed(): void {
    this.applyErrors++;
  }

  /** The state of an object (`Kind/namespace/name`) now; undefined if it is gone. */
  object(key: string, state: CountedState | undefined): void {
    const labels = state && `${labelText("kind", state.kind)},${labelText("state", state.state)}`;
    const before = this.states.get(key);
    if (labels === before) return;
    if (before !== undefined) this.count(before, -1);
    if (labels === undefined) this.states.delete(key);
    else this.states.set(key, this.count(labels, 1));
  }

  /** The certificate of a host now; undefined if there is none any more. */
  certificate(host: string, certificate: WatchedCertificate | undefined): void {
    if (certificate === undefined) this.certificates.delete(host);
    else this.certificates.set(host, { resource: certificate.resource, chain: certificate.chain });
  }

  *write(page: MetricsText): Iterable<void> {
    const duration = "njet_kic_apply_duration_seconds";
    page.family(duration, "histogram", "Time from a plan to its being in force in the proxy");
    this.applyDuration.write(page, duration, "");
    page.single("njet_kic_apply_errors_total", "counter", "Plans that could not be applied", this.applyErrors);
    page.family("njet_kic_apply_steps_total", "counter", "Steps of plans, by kind");
    for (const [step, count] of this.steps) page.sample("njet_kic_apply_steps_total", labelText("step", step), count);
    const refused = "njet_kic_apply_steps_refused_total";
    page.single(refused, "counter", "Steps that the proxy refused, keeping the last good state", this.refusedSteps);
    page.family("njet_kic_generation_info", "gauge", "The generation in force: a counter and a hash of the content");
    if (this.generation !== "") {
      page.sample("njet_kic_generation_info", labelText("generation", this.generation), 1);
    }
    if (this.leads !== undefined) {
      page.single("njet_kic_leader", "gauge", "1 while this replica writes status and Events", this.leads() ? 1 : 0);
    }
    yield;
    this.writeObjects(page);
    yield;
    yield* this.writeCertificates(page);
    yield* this.health.write(page);
    if (this.admission !== undefined) yield* this.admission.write(page);
  }

  private writeObjects(page: MetricsText): void {
    page.family("njet_kic_objects", "gauge", "Objects by kind and state");
    for (const [labels, count] of this.counts) page.sample("njet_kic_objects", labels, count);
  }

  private count(labels: string, change: number): string {
    const count = (this.counts.get(labels) ?? 0) + change;
    if (count === 0) this.counts.delete(labels);
    else this.counts.set(labels, count);
    return labels;
  }

  private *writeCertificates(page: MetricsText): Iterable<void> {
    const name = "njet_kic_certificate_expiry_timestamp_seconds";
    page.family(name, "gauge", "When the certificate of a host ends");
    for (const [host, certificate] of this.certificates) {
      // Read when it is asked for the first time: thousands of them at the start would take their time.
      certificate.expiry ??= expiryOf(certificate.chain);
      if (!page.reserve(1)) continue;
      const labels = `${labelText("host", host)},${labelText("secret", certificate.resource)}`;
      page.sample(name, labels, certificate.expiry);
      yield;
    }
  }
}

/** Seconds since the epoch; NaN for what is no certificate. */
function expiryOf(chain: string): number {
  try {
    return Date.parse(new X509Certificate(chain).validTo) / 1000;
  } catch {
    return Number.NaN;
  }
}
