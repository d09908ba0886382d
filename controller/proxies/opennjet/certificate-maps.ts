import type { Logger } from "../../observability/logger.js";
import type { PlanStep } from "../../reconcile/plan.js";
import { failureOf } from "../plan-step.js";
import type { ApplyFailure } from "../proxy.js";
import { type OpenNjetApi, OpenNjetApiError, PartlyAppliedError } from "./api/index.js";
import type { CertificateFiles, CertificatePair } from "./certificate-files.js";
import { type CertificateTable, canStand, certificateTable, type FilePair, isAmong } from "./certificate-table.js";
import type { Clock } from "./clock.js";
import { type MapSwitch, MapSwitchRefusedError } from "./map-switch.js";
import { UnmappedCertificates } from "./unmapped-certificates.js";
import { unusableCertificates } from "./unusable-certificates.js";
import { type TakenCertificates, WantedCertificates, withoutRefused } from "./wanted-certificates.js";

/** Beyond so many hosts a change of the map takes OpenNJet seconds. */
export const MOST_MAP_HOSTS = 1_000;
/** Milliseconds without a change of certificates after which the map is brought in step. */
const QUIET = 100;
/** Milliseconds between tries. */
const FIRST_WAIT = 100;
const LONGEST_WAIT = 10_000;
/** Milliseconds between looks whether OpenNJet still has the map; and between those after a change that may come late. */
const LOOK = 10_000;
const LATE_LOOK = 200;
/** Failures in a row after which it is said. */
const SAID = 2;
/** How long a change that timed out may take to come into force, in milliseconds. */
const LATE = 15_000;
/**
 * How long files that the map no longer names stay, in milliseconds, where workers have nothing but the map: each takes a change in
 * its own time, and nobody tells when.
 */
const FILES_KEPT = 60_000;

/** What is asked of the dynamic map API. */
export type MapsApi = Pick<OpenNjetApi["maps"], "list" | "replace">;

export interface CertificateMapsParts {
  maps: MapsApi;
  files: CertificateFiles;
  /** Undefined: workers have nothing but the map. */
  workers: MapSwitch | undefined;
  /** For names without a certificate. */
  others: FilePair;
  logger: Logger;
  clock: Clock;
  mostHosts?: number;
}

/**
 * Certificates by OpenNJet's own means: a dynamic map from server name to file. Workers with our balancer hold all certificates
 * as pieces of state, too, and rely on the map only while it is known to be whole: before anything of it changes they are told
 * to answer handshakes by themselves, and afterwards each goes back to the map when it has seen the new version. So no handshake meets
 * a file that is being replaced, a map that is late, lost, or has not been replayed yet, and whatever fails here fails no handshake.
 */
export class CertificateMaps {
  private readonly wanted: WantedCertificates;
  private readonly unmapped = new UnmappedCertificates();
  /** Why the last try failed; undefined where it did not. */
  private latest: unknown;
  /** Raised by whatever may make map and workers differ from what is wanted. */
  private revision = 0;
  /** The last revision that map and workers were brought to. */
  private reached: number | undefined;
  private started = false;
  private stopped = false;
  /** A plan is being carried out: workers are to answer by themselves. */
  private held = false;
  private failures = 0;
  /** Somebody was told that the map is not in step. */
  private said = false;
  /** Takes back what waits for its time. */
  private cancel: (() => void) | undefined;
  /** Ends a sleep. */
  private wake: (() => void) | undefined;
  private running: Promise<void> | undefined;
  private wait = FIRST_WAIT;
  private readonly most: number;
  /** When files that the map does not name may go; undefined where they are gone. */
  private tidyAt: number | undefined;

  constructor(private readonly parts: CertificateMapsParts) {
    this.most = parts.mostHosts ?? MOST_MAP_HOSTS;
    this.wanted = new WantedCertificates(parts.workers === undefined ? this.most : Infinity);
    this.tidyLater();
  }

  /** True once the map says what it should, and workers may rely on it. */
  get settled(): boolean {
    return this.reached === this.revision;
  }

  /** True once handshakes get their certificates: by workers that can do without the map, or since the map was in step for the first time. */
  get serving(): boolean {
    return this.parts.workers !== undefined || this.reached !== undefined;
  }

  /**
   * Before a plan that changes certificates is carried out: from when this resolves until `after`, no worker relies on the map. Waits
   * for an OpenNJet that is away. Resolves with the steps that are not to be carried out, since workers refuse to leave the map, or,
   * where they check nothing themselves, since no handshake could have the certificate: what is there of these hosts stays. Rejects
   * once this is stopped, and where a full plan is refused.
   */
  async before(steps: readonly PlanStep[], full: boolean): Promise<ApplyFailure[]> {
    if (this.parts.workers === undefined) return await unusableCertificates(steps);
    if (!(full || steps.some(isOfCertificate))) return [];
    this.held = true;
    this.revision++;
    while (this.running !== undefined) await this.running;
    let tries = 0;
    for (let wait = FIRST_WAIT; ; wait = Math.min(LONGEST_WAIT, wait * 2)) {
      try {
        await this.leave();
        return [];
      } catch (error) {
        const refused = error instanceof MapSwitchRefusedError;
        if (this.stopped || (refused && full)) throw error;
        if (refused) {
          return steps.flatMap((step) => (step.step === "set-certificate" ? [failureOf(step, error)] : []));
        }
        if (tries++ === SAID)
          this.parts.logger.warn("a plan with certificates waits for the workers of opennjet", { error });
        await this.sleep(wait);
      }
    }
  }

  /**
   * After the plan, or what became of it, with the steps that were not refused. `full`: what they do not name goes. Where workers have
   * nothing but the map some may have no room, and some that had none before may have it now; and those are told of whose map OpenNJet
   * refuses, until it takes it.
   */
  async after(steps: readonly PlanStep[], full: boolean): Promise<TakenCertificates> {
    const changed = full || this.held || steps.some(isOfCertificate);
    this.held = false;
    const taken = this.wanted.take(steps, full);
    if (changed) this.revision++;
    if (this.parts.workers === undefined) return await this.told(steps, full, changed, taken);
    if (changed && this.started) this.later(QUIET);
    return taken;
  }

  /** Workers have nothing but the map: what became of it is told of with the plan. */
  private async told(
    steps: readonly PlanStep[],
    full: boolean,
    changed: boolean,
    taken: TakenCertificates,
  ): Promise<TakenCertificates> {
    this.unmapped.take([...withoutRefused(taken.failures, steps), ...taken.retried], full);
    if (!this.started) return taken;
    if (changed) await this.settleNow();
    if (!this.settled && this.latest === undefined) return taken;
    const { failures, retried } = this.unmapped.toTell(steps, this.settled ? undefined : this.latest);
    return { failures: [...taken.failures, ...failures], retried: [...new Set([...taken.retried, ...retried])] };
  }

  /** From now on the map is kept in step. Resolves when that was tried once, where workers have nothing but the map. */
  async start(): Promise<void> {
    this.started = true;
    if (this.parts.workers === undefined) await this.settleNow();
    else this.later(0);
  }

  /** OpenNJet has been started anew: it has no map, and its workers rely on none. */
  restarted(): void {
    this.revision++;
    if (this.started) this.later(0);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.cancel?.();
    this.wake?.();
    while (this.running !== undefined) await this.running;
  }

  private later(milliseconds: number): void {
    if (this.stopped) return;
    this.cancel?.();
    this.cancel = this.parts.clock.after(milliseconds, () => void this.settleNow());
  }

  private async settleNow(): Promise<void> {
    // Others may wait for the same, and be faster.
    while (this.running !== undefined) await this.running;
    if (this.stopped || this.held) return;
    this.cancel?.();
    this.running = this.settle()
      .then(
        () => this.succeeded(),
        (error: unknown) => this.failed(error),
      )
      .finally(() => {
        this.running = undefined;
      });
    await this.running;
  }

  private succeeded(): void {
    this.latest = undefined;
    if (this.said) this.parts.logger.info("the map of certificates is in step again");
    this.failures = 0;
    this.said = false;
    this.wait = FIRST_WAIT;
    this.later(this.settled ? LOOK : 0);
  }

  private failed(error: unknown): void {
    if (this.stopped) return;
    this.latest = error;
    this.failures++;
    // The control server of an OpenNJet that starts answers a little later than its workers.
    if (!this.said && (this.failures > SAID || error instanceof MapSwitchRefusedError)) {
      this.said = true;
      this.parts.logger.warn("the map of certificates can't be brought in step yet", { error });
    }
    this.later(this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }

  /** Brings files, map and workers to what is wanted, if they differ. */
  private async settle(): Promise<void> {
    let { revision } = this;
    const hosts = this.hosts();
    const { files, others, maps } = this.parts;
    const table = certificateTable(new Map([...hosts.keys()].map((host) => [host, files.pathOf(host)])), others);
    const there = isAmong(table, await maps.list());
    if (this.settled) {
      if (there) return await this.tidy(hosts);
      this.parts.logger.warn("opennjet has lost the map of certificates, which is repaired");
      revision = ++this.revision;
    }
    await this.leave();
    for (const [host, pair] of hosts) if (!(await files.holds(host, pair))) await files.write(host, pair);
    if (!there) {
      // Also where the answer does not come, and the change does.
      this.tidyLater();
      await this.replace(table);
      this.tidyLater();
    }
    await this.tidy(hosts);
    // With an empty map each worker answers by itself.
    if (hosts.size > 0) await this.parts.workers?.set(table.version);
    this.unmapped.reached(hosts.keys());
    this.reached = revision;
  }

  private tidyLater(): void {
    const { workers, clock } = this.parts;
    this.tidyAt = clock.now() + (workers === undefined ? FILES_KEPT : 0);
  }

  /** Takes away the files of other hosts, where no worker can have a map any more that names them. */
  private async tidy(hosts: ReadonlyMap<string, CertificatePair>): Promise<void> {
    const { files, clock } = this.parts;
    if (this.tidyAt === undefined || clock.now() < this.tidyAt) return;
    await files.keepOnly(hosts.keys());
    this.tidyAt = undefined;
  }

  /** The hosts that stand in the map; none where there are more than it should have, and workers can do without. */
  private hosts(): Map<string, CertificatePair> {
    const { workers } = this.parts;
    const list = [...this.wanted.hosts].filter(([host]) => canStand(host));
    return new Map(workers !== undefined && list.length > this.most ? [] : list);
  }

  /** Sends the table, and looks whether it is there where the answer does not tell. */
  private async replace(table: CertificateTable): Promise<void> {
    const { maps, clock } = this.parts;
    try {
      await maps.replace(table.maps);
    } catch (error) {
      // What was refused of a change that is partly in force does not come later.
      const mayCome =
        error instanceof OpenNjetApiError && error.mayHaveApplied && !(error instanceof PartlyAppliedError);
      if (!mayCome) throw error;
      const latest = clock.now() + LATE;
      while (!(await this.hasCome(table))) {
        // A plan does not wait for it.
        if (this.stopped || this.held || clock.now() > latest) throw error;
        await this.sleep(LATE_LOOK);
      }
    }
  }

  private async hasCome(table: CertificateTable): Promise<boolean> {
    return await this.parts.maps.list().then(
      (maps) => isAmong(table, maps),
      () => false,
    );
  }

  /** For so many milliseconds, or until this is stopped. */
  private async sleep(milliseconds: number): Promise<void> {
    if (this.stopped) return;
    await new Promise<void>((resolve) => {
      const cancel = this.parts.clock.after(milliseconds, resolve);
      this.wake = () => {
        cancel();
        resolve();
      };
    });
  }

  private async leave(): Promise<void> {
    await this.parts.workers?.set(undefined);
  }
}

function isOfCertificate({ step }: PlanStep): boolean {
  return step === "set-certificate" || step === "remove-certificate";
}
