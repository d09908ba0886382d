import type { Logger } from "../../observability/logger.js";
import type { MetricsSource } from "../../observability/metrics-text.js";
import type { Plan } from "../../reconcile/plan.js";
import type { Applied, ApplyFailure, Proxy as DrivenProxy, PeerStateChange } from "../proxy.js";
import { type OpenNjetApi, WORKER_COUNT_KEY } from "./api/index.js";
import type { CertificateMaps } from "./certificate-maps.js";
import { withoutRefused } from "./wanted-certificates.js";

/** How plans reach an OpenNJet, which it starts and ends as well. */
export interface CarrierProxy extends DrivenProxy {
  listen(): Promise<void>;
  addresses(): { http: { port: number } | undefined; https: { port: number } | undefined };
  metrics(prefix: string, version: string): MetricsSource[];
}

export interface OpenNjetProxyParts {
  carrier: CarrierProxy;
  api: OpenNjetApi;
  certificates: CertificateMaps;
  /** Undefined: what the configuration says. */
  workers: number | undefined;
  logger: Logger;
  /** Called last of all. */
  release(): Promise<void>;
}

/** Milliseconds between tries to reach the control server, which starts after the workers. */
const FIRST_WAIT = 50;
const LONGEST_WAIT = 5_000;

/** OpenNJet: a carrier for routes and upstreams, and what OpenNJet has APIs of its own for, certificates and the number of workers. */
export class OpenNjetProxy implements DrivenProxy {
  private turn: Promise<unknown> = Promise.resolve();
  private stopped = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly parts: OpenNjetProxyParts) {}

  /** Starts OpenNJet, or finds it. Rejects with what is in the way. */
  async listen(): Promise<void> {
    try {
      await this.parts.carrier.listen();
    } catch (error) {
      await this.parts.api.close();
      await this.parts.release();
      throw error;
    }
    void this.setWorkers(FIRST_WAIT);
  }

  addresses(): ReturnType<CarrierProxy["addresses"]> {
    return this.parts.carrier.addresses();
  }

  apply(plan: Plan): Promise<Applied> {
    return this.inTurn(async () => {
      const { carrier, certificates, logger } = this.parts;
      let kept: ApplyFailure[];
      let result: Applied;
      try {
        kept = await certificates.before(plan.steps, plan.full);
        result = await carrier.apply({ ...plan, steps: withoutRefused(kept, plan.steps) });
      } catch (error) {
        await certificates.after([], false);
        throw error;
      }
      const taken = await certificates.after(withoutRefused([...kept, ...result.failures], plan.steps), plan.full);
      const own = [...kept, ...taken.failures];
      for (const failure of own) logger.warn("step refused", { ...failure });
      const retried = [...(result.retried ?? []), ...taken.retried];
      return { ...result, failures: [...result.failures, ...own], retried };
    });
  }

  complete(): Promise<void> {
    return this.inTurn(async () => {
      await this.parts.carrier.complete?.();
      await this.parts.certificates.start();
    });
  }

  setPeerStates(states: readonly PeerStateChange[]): void {
    this.parts.carrier.setPeerStates(states);
  }

  /** It serves from when its carrier does, and handshakes get their certificates. */
  state(): { generation: string; serving: boolean } {
    const { carrier, certificates } = this.parts;
    const { generation, serving } = carrier.state();
    return { generation, serving: serving && certificates.serving };
  }

  metrics(prefix: string, version: string): MetricsSource[] {
    return this.parts.carrier.metrics(prefix, version);
  }

  /** OpenNJet has been started anew: what it had by its APIs is gone. */
  restarted(): void {
    this.parts.certificates.restarted();
    void this.setWorkers(FIRST_WAIT);
  }

  async close(graceMs: number): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    // A plan that waits for an OpenNJet which is away ends only when the carrier is given up.
    const stopped = this.parts.certificates.stop();
    await this.parts.carrier.close(graceMs);
    await stopped;
    await this.parts.api.close();
    await this.parts.release();
  }

  /** Brings the number of workers to what was asked for, as soon as the control server answers. */
  private async setWorkers(wait: number): Promise<void> {
    const { api, workers, logger } = this.parts;
    if (workers === undefined || this.stopped) return;
    clearTimeout(this.timer);
    try {
      const wanted = String(workers);
      if ((await api.keyValue.get(WORKER_COUNT_KEY)) !== wanted) await api.keyValue.set(WORKER_COUNT_KEY, wanted);
      if (wait > LONGEST_WAIT) logger.info("opennjet has the number of workers that was asked for", { workers });
    } catch (error) {
      if (this.stopped) return;
      if (wait === LONGEST_WAIT) logger.warn("the number of workers can't be set yet", { error });
      this.timer = setTimeout(() => void this.setWorkers(Math.min(LONGEST_WAIT, wait * 2)), wait);
    }
  }

  private inTurn<T>(task: () => Promise<T>): Promise<T> {
    const result = this.turn.then(task);
    this.turn = result.catch(() => undefined);
    return result;
  }
}
