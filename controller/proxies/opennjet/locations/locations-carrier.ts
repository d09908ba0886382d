import { isDeepStrictEqual } from "node:util";
import type { Logger } from "../../../observability/logger.js";
import type { MetricsSource } from "../../../observability/metrics-text.js";
import type { Plan } from "../../../reconcile/plan.js";
import type { NginxRunner } from "../../nginx/nginx-proxy.js";
import { PeerStates } from "../../peer-states.js";
import type { Applied, Proxy as DrivenProxy, PeerStateChange } from "../../proxy.js";
import { RequestRefusedError } from "../api/errors.js";
import type { Backend, BackendsApi } from "../api/index.js";
import type { BalancerName } from "../parts.js";
import { mergedHolders, type NameHolder } from "./backend-names.js";
import { backendOf, isOwnName } from "./backends.js";
import { type Carried, type CarriedState, nothing } from "./carried-state.js";
import type { HeldLocations } from "./held-locations.js";
import type { Ledger } from "./ledger.js";
import { type CarriedLocation, locationKey } from "./location-set.js";
import { type DataPlane, isMarker } from "./marker.js";
import { areWithWorkers } from "./marker-rounds.js";
import { type Outcome, PlannedState } from "./planned-state.js";
import { halfWay } from "./transition.js";

export interface LocationsCarrierParts {
  /** Called first of all; rejects with what is in the way. */
  prepare(): Promise<void>;
  /** What OpenNJet may hold already is known to it. */
  openLocations(): Promise<HeldLocations>;
  backends: Pick<BackendsApi, "post" | "list">;
  /** Whose they are; `own` without. */
  balancer?: BalancerName;
  /** See markerFolder. */
  markers: string;
  /** The names that routes have, kept over restarts of the controller. */
  names: Ledger<NameHolder>;
  plane: DataPlane;
  /** `onRestart` is to be called when OpenNJet was started anew, with nothing of what it was told. */
  makeRunner(onRestart: () => void): NginxRunner;
  ports: { http: number; https: number } | undefined;
  /** Locations in all; the marker is not counted. */
  maxLocations: number;
  logger: Logger;
  wait(milliseconds: number): Promise<void>;
  /** Called last of all. */
  release(): Promise<void>;
}

/** Locations in all, where nobody says otherwise: OpenNJet tries one after the other, and 500 take a request 47 us. */
export const DEFAULT_MAX_LOCATIONS = 300;
/** Milliseconds between looks whether OpenNJet still has all of it. */
const LOOK = 5_000;
/** Milliseconds between tries to reach an OpenNJet that does not answer. */
const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;
/**
 * Routes as dynamic locations of OpenNJet, upstreams as backends of its Lua balancer. Everything happens in turn: plans,
 * states of peers, and looks for what was lost. Backends are there before the locations that name them, and go after them.
 */
export class LocationsCarrier implements DrivenProxy {
  readonly #peerStates = new PeerStates();
  readonly #runner: NginxRunner;
  #held: HeldLocations | undefined;
  #state: CarriedState;
  #carried: Carried | undefined;
  #posted: readonly Backend[] | undefined;
  /** Backends from before this controller: locations from before may name them. */
  #inherited: readonly Backend[] = [];
  #noted: readonly NameHolder[] = [];
  #generation = "";
  #completed = false;
  #settled = false;
  #closing: Promise<void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  /** Looks in a row at which something was missing. */
  #missed = 0;

  constructor(private readonly parts: LocationsCarrierParts) {
    this.#state = nothing(parts.balancer ?? "own", parts.markers);
    this.#runner = parts.makeRunner(() => this.#restarted());
  }

  /** Starts OpenNJet, or finds it. Rejects with what is in the way. */
  async listen(): Promise<void> {
    try {
      await this.parts.prepare();
      await this.#runner.start();
      this.#held = await this.parts.openLocations();
      await this.#inherit();
    } catch (error) {
      await this.#runner.stop(0);
      await this.parts.release();
      throw error;
    }
    this.#timer = setInterval(() => this.#look(), LOOK);
  }

  addresses(): { http: { port: number } | undefined; https: { port: number } | undefined } {
    const { ports } = this.parts;
    return { http: ports && { port: ports.http }, https: ports && { port: ports.https } };
  }

  apply(plan: Plan): Promise<Applied> {
    return this.#inTurn(async () => {
      const planned = this.#planned(plan, this.parts.maxLocations);
      const { failures, retried } = await this.#reach(planned);
      this.#generation = plan.generation;
      for (const failure of failures) {
        this.parts.logger.warn(failure.inForce ? "step taken with limits" : "step refused", { ...failure });
      }
      return { generation: this.#generation, failures, retried };
    });
  }

  /** Takes away what OpenNJet holds from before and what no plan has named. */
  complete(): Promise<void> {
    return this.#inTurn(async () => {
      this.#completed = true;
      this.#inherited = [];
      await this.#reach(this.#planned({ generation: this.#generation, full: false, steps: [] }, 0));
    });
  }

  setPeerStates(states: readonly PeerStateChange[]): void {
    for (const state of states) this.#peerStates.set(state);
    if (states.length === 0) return;
    this.#inTurn(async () => {
      if (this.#carried !== undefined) await this.#persist(() => this.#post(this.#carried as Carried, this.#state));
    }).catch((error: unknown) => this.parts.logger.error("opennjet did not take states of peers", { error }));
  }

  /** It serves from when all workers have the first whole set. */
  state(): { generation: string; serving: boolean } {
    return { generation: this.#generation, serving: this.#settled && this.#closing === undefined };
  }

  metrics(): MetricsSource[] {
    return [];
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#shutDown(graceMs);
    return this.#closing;
  }

  /** Brings OpenNJet to a state; what it refuses is left out, with its failure. `repairs`: where workers do not come to have it. */
  async #reach(planned: PlannedState, repairs = true): Promise<Outcome> {
    const held = this.#opened();
    for (;;) {
      const outcome = planned.outcome();
      const { carried, state } = outcome;
      // Noted before a name can mean what it says: who comes after us has to know.
      await this.#persist(() => this.#note(mergedHolders(this.#noted, state.names)));
      // Those of before stay until no location names them any more.
      await this.#persist(() => this.#post(carried, state, this.#posted));
      let before = this.#carried?.locations ?? [];
      const both = halfWay(before, carried.locations, state.markers);
      let refused = both && (await this.#persist(() => held.reach(both, true)));
      if (both !== undefined && refused === undefined) {
        await this.#isWithWorkers(both, { before: before.find(isMarker) });
        before = both;
      }
      refused ??= await this.#persist(() => held.reach(carried.locations, !this.#completed));
      if (refused !== undefined) {
        const place = carried.hostOf.get(locationKey(refused.location));
        if (place === undefined) throw refused.error;
        planned.refuseHost(place, refused.error);
        continue;
      }
      const names = this.#completed ? state.names : mergedHolders(this.#state.names, state.names);
      this.#state = { ...state, names };
      this.#carried = carried;
      const marker = before.find(isMarker);
      const changed = marker?.name !== carried.locations.find(isMarker)?.name;
      if (changed && !(await this.#isWithWorkers(carried.locations, { before: marker }))) {
        if (repairs) await this.#repair(false);
        else this.parts.logger.warn("not all workers of opennjet show that they have all locations");
      }
      await this.#persist(() => this.#post(carried, state));
      await this.#persist(() => this.#note(names));
      if (this.#completed) this.#settled = true;
      return outcome;
    }
  }

  /** Sends backends where they differ; `besides`: those that are to stay as well. */
  async #post(carried: Carried, state: CarriedState, besides = this.#inherited): Promise<void> {
    const backends = new Map(besides.map((backend) => [backend.name, backend]));
    for (const [name, key] of carried.backends) {
      const states = new Map(this.#peerStates.of(key).map((one) => [`${one.address} ${one.port}`, one.state]));
      const stateOf = (address: string, port: number) => states.get(`${address} ${port}`);
      backends.set(name, backendOf(name, state.upstreams.get(key), stateOf, state.balancer));
    }
    const wanted = [...backends.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    if (isDeepStrictEqual(wanted, this.#posted)) return;
    const { late, failures } = await this.parts.backends.post(wanted);
    if (late.length > 0) this.parts.logger.warn("workers are late with backends", { workers: late });
    for (const failure of failures) this.parts.logger.warn("the balancer refused a backend", { ...failure });
    this.#posted = wanted;
  }

  /** Takes over what a controller before this one has posted, and the names that it gave. */
  async #inherit(): Promise<void> {
    const { backends, names } = this.parts;
    this.#noted = await names.read();
    this.#state = { ...this.#state, names: this.#noted };
    const posted = await this.#persist(() => backends.list());
    this.#inherited = posted.filter(({ name }) => isOwnName(name));
    this.#posted = this.#inherited;
  }

  #planned(plan: Plan, maxLocations: number): PlannedState {
    return new PlannedState(this.#state, plan, maxLocations, new Set(this.#posted?.map(({ name }) => name)));
  }

  async #note(names: readonly NameHolder[]): Promise<void> {
    if (isDeepStrictEqual(names, this.#noted)) return;
    await this.parts.names.write(names);
    this.#noted = names;
  }

  /** See areWithWorkers. */
  async #isWithWorkers(
    locations: readonly CarriedLocation[],
    { before, looks = false }: { before?: CarriedLocation; looks?: boolean } = {},
  ): Promise<boolean> {
    const marker = locations.find(isMarker);
    if (marker === undefined) return true;
    const isFirst = this.#completed && !this.#settled;
    const patience = looks ? "look" : isFirst ? "start" : "change";
    const gaveUp = () => this.#closing !== undefined;
    return await areWithWorkers(this.parts, { marker, before, patience, gaveUp });
  }

  /** Sends all that is wanted once more. `fresh`: OpenNJet has begun with nothing. */
  async #repair(fresh: boolean): Promise<void> {
    const carried = this.#carried;
    if (carried === undefined) return;
    this.#posted = undefined;
    await this.#persist(() => this.#post(carried, this.#state));
    const repaired = await this.#persist(() => this.#opened().verify(!fresh));
    if (repaired > 0) this.parts.logger.info("locations of opennjet were brought back", { repaired });
    if (!(await this.#isWithWorkers(carried.locations))) await this.#renew();
  }

  /** Gives all locations another name: what a worker has never got, though the agent has it, is sent anew. */
  async #renew(): Promise<void> {
    const names = new Set(this.#posted?.map(({ name }) => name));
    const plan = { generation: this.#generation, full: false, steps: [] };
    this.parts.logger.warn("locations of opennjet are made anew: a worker does not have them");
    await this.#reach(new PlannedState(this.#state, plan, 0, names, this.#state.edition + 1), false);
  }

  #restarted(): void {
    this.#inTurn(() => this.#repair(true)).catch((error: unknown) => {
      this.parts.logger.error("opennjet could not be brought in step after its restart", { error });
    });
  }

  /** Looks, in turn, whether workers and balancer still have what they were given. */
  #look(): void {
    if (this.#looking || this.#carried === undefined || this.#closing !== undefined) return;
    this.#looking = true;
    this.#inTurn(async () => {
      const locations = this.#carried?.locations ?? [];
      const lost = !(await this.#isWithWorkers(locations, { looks: true })) || (await this.#hasLostBackends());
      this.#missed = lost ? this.#missed + 1 : 0;
      // A worker that hangs is not to be sent everything at each look: at the first, second, fourth, eighth.
      const isTime = (this.#missed & (this.#missed - 1)) === 0;
      if (lost && isTime && this.#closing === undefined) await this.#repair(false);
    })
      .catch((error: unknown) => this.parts.logger.warn("opennjet could not be looked at", { error }))
      .finally(() => {
        this.#looking = false;
      });
  }

  async #hasLostBackends(): Promise<boolean> {
    const names = new Set((await this.parts.backends.list()).map(({ name }) => name));
    return this.#posted?.some(({ name }) => !names.has(name)) === true;
  }

  /** Does something until OpenNJet has answered, or we are to stop. */
  async #persist<T>(work: () => Promise<T>): Promise<T> {
    const { logger, wait } = this.parts;
    for (let pause = FIRST_WAIT; ; pause = Math.min(LONGEST_WAIT, pause * 2)) {
      try {
        return await work();
      } catch (error) {
        // The same will be refused again.
        if (this.#closing !== undefined || (error instanceof RequestRefusedError && error.status === 400)) throw error;
        if (pause >= LONGEST_WAIT / 2) logger.warn("opennjet does not take a change yet; it is tried again", { error });
        await wait(pause);
      }
    }
  }

  #opened(): HeldLocations {
    if (this.#held === undefined) throw new Error("opennjet has not been started");
    return this.#held;
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(task);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #shutDown(graceMs: number): Promise<void> {
    clearInterval(this.#timer);
    await this.#turn;
    await this.#runner.stop(graceMs);
    await this.parts.release();
  }
}
