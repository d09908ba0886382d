import type { Upstream } from "../model/types.js";
import { noHealthMetrics } from "../observability/health-metrics.js";
import { checkedUpstream } from "./checked-upstream.js";
import { type HealthListeners, HealthReporter } from "./health-reporter.js";
import type { ProbeProcessFigures, Report } from "./messages.js";
import { PeerBook, type StateChange } from "./peer-book.js";
import { ProbeChild } from "./probe-child.js";
import { type LinkEnd, ProbeLink } from "./probe-link.js";
import { RunFolder } from "./run-folder.js";

/** How long a probe process goes on without a controller, where the next one can find it. */
const DEFAULT_GRACE = 60_000;
const FIRST_DELAY = 100;
const LONGEST_DELAY = 10_000;

export interface HealthClientOptions extends Pick<HealthListeners, "logger" | "events" | "setPeerStates"> {
  metrics?: HealthListeners["metrics"];
  /** A folder that stays: probing goes on there while the controller is away. */
  runDir?: string;
  /** Milliseconds; only with `runDir`. */
  graceMs?: number;
  /** Milliseconds without a word after which a probe process is taken for hung; half a minute by default. */
  hungAfterMs?: number;
}

/**
 * The controller's side of active health checks: a probe process of its own, told what to probe and asked what it found.
 * The process is there once there is something to check. One that dies or hangs is replaced, with growing delays; until
 * then the last states stay in force, and they are where the next one begins.
 */
export class HealthClient {
  readonly #options: HealthClientOptions;
  readonly #reporter: HealthReporter;
  readonly #book = new PeerBook();
  #folder: RunFolder | undefined;
  #running: Promise<void> | undefined;
  #closed = false;
  /** Lets whoever waits look again. */
  #signal: () => void = () => undefined;
  #link: ProbeLink | undefined;
  #child: ProbeChild | undefined;
  /** The objects are known: what a process is told from now on is the whole. */
  #ready = false;
  /** The process of the link has been told what is in the book. */
  #synced = false;
  /** Tries in a row that came to nothing. */
  #failures = 0;
  /** Peers whose states were known before we began. */
  #inherited = 0;
  #alive: ProbeProcessFigures | undefined;

  /** Throws an Error for a `runDir` that cannot be used. */
  constructor(options: HealthClientOptions) {
    this.#options = options;
    this.#reporter = new HealthReporter({ metrics: noHealthMetrics, ...options });
    if (options.runDir !== undefined) {
      this.#folder = RunFolder.stable(options.runDir);
      if (this.#folder.recorded() !== undefined) this.#begin();
    }
  }

  /** What the probe process last said of itself; undefined while there is none. */
  get figures(): ProbeProcessFigures | undefined {
    return this.#link === undefined ? undefined : this.#alive;
  }

  /** Process id of the probe process; undefined while there is none. */
  get pid(): number | undefined {
    return this.#link?.pid;
  }

  /** Upstreams that are different now, as in a change of the model. */
  update(upstreams: ReadonlyMap<string, Upstream | undefined>): void {
    const changes: StateChange[] = [];
    for (const [key, upstream] of upstreams) {
      const result = this.#book.update(key, upstream && checkedUpstream(upstream));
      changes.push(...result.changes);
      if (result.command !== undefined && this.#synced) this.#link?.send(result.command);
    }
    if (changes.length > 0) this.#reporter.quietly(changes, this.#book.counts());
    if (this.#book.size > 0) this.#begin();
    this.#signal();
  }

  /** Every upstream that there is has been given: a process that knows others is told to drop them. */
  ready(): void {
    this.#ready = true;
    this.#synchronise();
  }

  /**
   * Lets go of the probe process: with `runDir` it goes on for its grace period, else it ends, and this resolves when it
   * is gone.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#link?.close();
    this.#signal();
    await this.#running;
  }

  #begin(): void {
    if (!this.#closed) this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      try {
        const link = await this.#open();
        if (link !== undefined && (await this.#follow(link)) === "replaced") {
          this.#options.logger.warn("health process: another controller has taken it over; states stay as they are");
          return;
        }
      } catch (error) {
        this.#options.logger.warn("health process: it cannot be had", { error });
      }
      await this.#child?.stop();
      this.#child = undefined;
      const delay = Math.min(FIRST_DELAY * 2 ** this.#failures++, LONGEST_DELAY);
      await this.#until(() => this.#closed, delay);
    }
    if (this.#folder?.stable === false) this.#folder.remove();
  }

  /** A link to the process that is there, or to a new one once there is something to check. Undefined when we are closed. */
  async #open(): Promise<ProbeLink | undefined> {
    const { hungAfterMs } = this.#options;
    const onReport = (report: Report) => this.#take(report);
    const recorded = this.#folder?.recorded();
    if (this.#folder !== undefined && recorded !== undefined) {
      try {
        return await ProbeLink.open(recorded.socket, recorded.token, onReport, hungAfterMs);
      } catch {
        // Gone, or of another release.
        this.#folder.clear();
      }
    }
    await this.#until(() => this.#closed || this.#book.size > 0);
    if (this.#closed) return undefined;
    if (!this.#folder?.stable) {
      // Each process has one of its own, which it takes away when it can.
      this.#folder?.remove();
      this.#folder = RunFolder.temporary();
    }
    const { stable } = this.#folder;
    const address = this.#folder.newAddress();
    const graceMs = stable ? (this.#options.graceMs ?? DEFAULT_GRACE) : 0;
    this.#child = await ProbeChild.start({ ...address, graceMs, ownFolder: !stable }, (line) =>
      this.#options.logger.warn("health process", { line }),
    );
    this.#folder.record(address);
    const link = await ProbeLink.open(address.socket, address.token, onReport, hungAfterMs);
    this.#options.logger.info("health process: started", { pid: link.pid });
    return link;
  }

  /** Works with a process until its link ends. */
  async #follow(link: ProbeLink): Promise<LinkEnd> {
    this.#link = link;
    if (this.#closed) link.close();
    this.#synchronise();
    const end = await link.ended;
    this.#link = undefined;
    this.#synced = false;
    this.#book.lost();
    if (this.#closed) {
      if (this.#folder?.stable) this.#child = undefined;
      return "closed";
    }
    if (end === "replaced") {
      this.#child = undefined;
      return end;
    }
    if (end === "hung") this.#kill(link.pid);
    this.#options.logger.warn("health process: lost; the last states stay in force", { pid: link.pid, how: end });
    return end;
  }

  /** One that hangs does not listen to SIGTERM. */
  #kill(pid: number): void {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Gone meanwhile.
    }
  }

  #synchronise(): void {
    if (!this.#ready || this.#link === undefined || this.#synced) return;
    for (const command of this.#book.everything()) this.#link.send(command);
    this.#synced = true;
  }

  #take(report: Report): void {
    switch (report.type) {
      case "states": {
        const changes = this.#book.learn(report.peers, report.at, !this.#ready);
        if (report.known) this.#inherited += report.peers.length;
        if (changes.length === 0) return;
        if (report.known) this.#reporter.quietly(changes, this.#book.counts());
        else this.#reporter.transitions(changes, this.#book.counts());
        return;
      }
      case "alive": {
        const { type: _type, ...figures } = report;
        this.#alive = figures;
        this.#failures = 0;
        if (this.#inherited > 0) {
          this.#options.logger.info("health process: found at work; its states are in force", {
            peers: this.#inherited,
          });
          this.#inherited = 0;
        }
        return;
      }
      case "welcome":
      case "refused":
        return;
    }
  }

  /** Resolves when `holds`, or after `ms`; looks at each signal. One may wait at a time. */
  #until(holds: () => boolean, ms?: number): Promise<void> {
    if (holds()) return Promise.resolve();
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const end = () => {
        clearTimeout(timer);
        this.#signal = () => undefined;
        resolve();
      };
      if (ms !== undefined) timer = setTimeout(end, ms);
      this.#signal = () => {
        if (holds()) end();
      };
    });
  }
}
