import { configOf } from "./apply-config.js";
import { Broker } from "./broker.js";
import { DeliveryPace, type Faults } from "./faults.js";
import { type MapEntry, type Message, type Result, refused } from "./messages.js";
import { PlaneState } from "./plane-state.js";
import { SharedMembers } from "./shared-members.js";
import type { StaticConfiguration } from "./static-configuration.js";

/** Entries of maps that the agent takes more than the 2 s of the control server for. */
const MAP_ENTRIES_IN_TIME = 1000;

export interface PlaneOptions {
  configuration: StaticConfiguration;
  workers: number;
  modules: readonly string[];
  prefix: string;
  now: () => number;
}

/** What the control server gets for a change: an answer of the agent, or nothing within 2 s. */
export type RpcResult = Result | "timeout";

/** The processes of the data plane and the broker between them. */
export class Plane {
  agent: PlaneState;
  workers: PlaneState[];
  members: SharedMembers;
  readonly broker = new Broker();
  private readonly pace: DeliveryPace;
  private late: Message[] = [];
  private undelivered: { message: Message; workers: number[] }[] = [];

  constructor(
    readonly options: PlaneOptions,
    private readonly faults: Faults,
  ) {
    this.pace = new DeliveryPace(options.now, options.modules.length);
    this.agent = this.fresh();
    this.workers = Array.from({ length: options.workers }, () => this.fresh());
    this.members = new SharedMembers(options.configuration.upstreams);
  }

  /** A change from the control server. */
  change(message: Message): RpcResult {
    if (message.about === "config" && !this.options.modules.includes(message.module)) return NO_HANDLER;
    if (this.faults.timeouts > 0) {
      this.faults.timeouts--;
      if (!this.faults.timeoutsAreLost) this.late.push(message);
      return "timeout";
    }
    if (mapEntries(message) > MAP_ENTRIES_IN_TIME) {
      this.late.push(message);
      return "timeout";
    }
    return this.take(message);
  }

  /** What timed out comes into force. */
  applyLate(): void {
    for (const message of this.late.splice(0)) this.take(message);
  }

  /** Workers get what they waited for. */
  deliver(): void {
    for (const { message, workers } of this.undelivered.splice(0)) this.give(message, workers);
  }

  /** HUP: new workers read the configuration and what the broker replays. */
  reload(): void {
    this.broker.save();
    this.start();
  }

  /** Ended in order, and started again. */
  restart(): void {
    this.broker.save();
    this.members = new SharedMembers(this.options.configuration.upstreams);
    this.late = [];
    this.start();
  }

  /** kill -9, and started again: what was retained since the last save is lost. */
  killAndStart(): void {
    this.broker.restore();
    this.members = new SharedMembers(this.options.configuration.upstreams);
    this.late = [];
    this.start();
  }

  private start(): void {
    this.undelivered = [];
    const replayed = this.broker.replay();
    const filled = () => {
      const state = this.fresh();
      for (const message of replayed) state.apply(message);
      return state;
    };
    this.agent = filled();
    this.workers = this.workers.map(filled);
    for (const name of this.agent.upstreams.keys()) this.members.open(name);
  }

  private fresh(): PlaneState {
    return new PlaneState(this.options.configuration, this.options.prefix);
  }

  private take(message: Message): Result {
    const result = this.agent.apply(message);
    if (result.code !== 0 && result.code !== 1) return result;
    this.broker.retain(message.about === "config" ? this.whole(message.module) : message);
    if (message.about === "upstream") {
      if (message.type === "add") this.members.open(message.upstream_name);
      else this.members.drop(message.upstream_name);
    }
    const workers = this.reached(message);
    if (this.faults.workersWait) this.undelivered.push({ message, workers });
    else this.give(message, workers);
    return result;
  }

  /** A declarative module publishes all that it has, whatever was changed. */
  private whole(module: string): Message {
    const document = configOf(this.agent, module) as Record<string, unknown>;
    if (module !== "http_dyn_map") return { about: "config", module, document };
    const maps = this.agent.maps.map(({ isStatic, ...map }) => ({ ...map, ...(!isStatic && { type: "add" }) }));
    return { about: "config", module, document: { maps } };
  }

  private reached(message: Message): number[] {
    return this.paced(message).filter((worker) => this.faults.loses?.(message, worker) !== true);
  }

  private paced(message: Message): number[] {
    if (this.faults.lostDeliveries > 0) {
      this.faults.lostDeliveries--;
      return [];
    }
    const deletes = message.about === "location" && message.type === "del";
    if (deletes && this.faults.loseDeletes) return this.pace.delete(this.workers.length);
    return this.workers.map((_, i) => i);
  }

  private give(message: Message, workers: readonly number[]): void {
    for (const i of workers) this.workers[i].apply(message);
  }
}

export const NO_HANDLER: Result = refused(-1, "no rpc handler registered");

function mapEntries(message: Message): number {
  if (message.about !== "config" || message.module !== "http_dyn_map" || !Array.isArray(message.document.maps))
    return 0;
  return (message.document.maps as MapEntry[]).reduce((sum, { values }) => sum + (values?.length ?? 0), 0);
}
