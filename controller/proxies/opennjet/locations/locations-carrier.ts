import { isDeepStrictEqual } from "node:util";
import type { Logger } from "../../../observability/logger.js";
import type { MetricsSource } from "../../../observability/metrics-text.js";
import type { Plan } from "../../../reconcile/plan.js";
import type { ListeningPorts, NginxRunner } from "../../nginx/nginx-proxy.js";
import { PeerStates } from "../../peer-states.js";
import type { Applied, Proxy as DrivenProxy, PeerStateChange } from "../../proxy.js";
import type { BackendsApi } from "../api/index.js";
import type { BalancerName } from "../parts.js";
import { mergedHolders, type NameHolder } from "./backend-names.js";
import { CarriedBackends } from "./carried-backends.js";
import { type Carried, type CarriedState, nothing } from "./carried-state.js";
import type { Expected, HeldLocations } from "./held-locations.js";
import type { Ledger } from "./ledger.js";
import { bodyWithout, type CarriedLocation, locationKey } from "./location-set.js";
import { Looks } from "./looks.js";
import { isMarker } from "./marker.js";
import { type Outcome, PlannedState } from "./planned-state.js";
import type { DataPlane } from "./questions.js";
import { halfWay } from "./transition.js";
import { untilAnswered } from "./until-answered.js";
import { askWorkers, type Found, isRight, type WorkersQuestion } from "./worker-rounds.js";

export interface LocationsCarrierParts {
  /** Called first of all; rejects with what is in the way. */
  prepare(): Promise<void>;
  /** What OpenNJet may hold already is known to it. */
  openLocations(): Promise<HeldLocations>;
  backends: Pick<BackendsApi, "post" | "list">;
  /** Whose they are; `own` without. */
  balancer?: BalancerName;
  /** See questionFolder. */
  folder: string;
  /** The names that routes have, kept over restarts of the controller. */
  names: Ledger<NameHolder>;
  plane: DataPlane;
  /** `onRestart` is to be called when OpenNJet was started anew, with nothing of what it was told. */
  makeRunner(onRestart: () => void): NginxRunner;
  ports: ListeningPorts | undefined;
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
/** Processes, for each worker, whose turn at looks is known: workers may be replaced. */
const TURNS = 4;

/**
 * Routes as dynamic locations of OpenNJet, upstreams as backends of its Lua balancer. Everything happens in turn: plans,
 * states of peers, and looks for what was lost. Backends are there before the locations that name them, and go after them.
 */
export class LocationsCarrier implements DrivenProxy {
  readonly #peerStates = new PeerStates();
  readonly #backends: CarriedBackends;
  readonly #looks: Looks;
  readonly #runner: NginxRunner;
  #held: HeldLocations | undefined;
  #state: CarriedState;
  #carried: Carried | undefined;
  #noted: readonly NameHolder[] = [];
  #generation = "";
  #completed = false;
  #settled = false;
  #closing: Promise<void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  constructor(private readonly parts: LocationsCarrierParts) {
    this.#state = nothing(parts.balancer ?? "own", parts.folder);
    this.#backends = new CarriedBackends({ ...parts, peerStates: this.#peerStates });
    this.#looks = new Looks(TURNS * parts.plane.workers());
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
    return { http: ports && { port: ports.http.port }, https: ports && { port: ports.https.port } };
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
      this.#backends.forgetInherited();
      await this.#reach(this.#planned({ generation: this.#generation, full: false, steps: [] }, 0));
    });
  }

  setPeerStates(states: readonly PeerStateChange[]): void {
    for (const state of states) this.#peerStates.set(state);
    if (states.length === 0) return;
    this.#inTurn(async () => {
      if (this.#carried !== undefined) await this.#post(this.#carried, this.#state);
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
    const had = new Map(held.expected().map(({ location, isThere }) => [locationKey(location), isThere]));
    for (;;) {
      const outcome = planned.outcome();
      const { carried, state } = outcome;
      // Noted before a name can mean what it says: who comes after us has to know.
      await this.#persist(() => this.#note(mergedHolders(this.#noted, state.names)));
      // Those of before stay until no location names them any more.
      await this.#post(carried, state, true);
      let before = this.#carried?.locations ?? [];
      const both = halfWay(before, carried.locations, state.folder);
      let refused = both && (await this.#persist(() => held.reach(both, true)));
      if (both !== undefined && refused === undefined) {
        await this.#ask(both, { before: before.find(isMarker) });
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
      const [old, marker] = [before.find(isMarker), carried.locations.find(isMarker)];
      const isMarked = old?.name !== marker?.name;
      const changed = held.expected().filter(({ location, isThere }) => had.get(locationKey(location)) !== isThere);
      if (isMarked || changed.length > 0) {
        const about = { before: isMarked ? old : undefined, expectedOf: () => changed };
        const found = await this.#ask(carried.locations, about);
        if (repairs && !isRight(found)) await this.#mend(found);
        else this.#suspect(found);
      }
      await this.#post(carried, state);
      await this.#persist(() => this.#note(names));
      if (this.#completed) this.#settled = true;
      return outcome;
    }
  }

  async #post(carried: Carried, state: CarriedState, withPosted = false): Promise<void> {
    await this.#persist(() => this.#backends.post(carried, state, withPosted));
  }

  /** Takes over what a controller before this one has posted, and the names that it gave. */
  async #inherit(): Promise<void> {
    this.#noted = await this.parts.names.read();
    this.#state = { ...this.#state, names: this.#noted };
    await this.#persist(() => this.#backends.inherit());
  }

  #planned(plan: Plan, maxLocations: number): PlannedState {
    return new PlannedState(this.#state, plan, maxLocations, this.#backends.names);
  }

  async #note(names: readonly NameHolder[]): Promise<void> {
    if (isDeepStrictEqual(names, this.#noted)) return;
    await this.parts.names.write(names);
    this.#noted = names;
  }

  /** What workers say of a set, and of what else is expected of them; see askWorkers. */
  async #ask(
    locations: readonly CarriedLocation[],
    { before, looks = false, expectedOf = () => [] }: Partial<WorkersQuestion> & { looks?: boolean } = {},
  ): Promise<Found> {
    const marker = locations.find(isMarker);
    if (marker === undefined) return { isLate: false, wrong: [] };
    const patience = looks ? "look" : this.#settled ? "change" : "start";
    const gaveUp = () => this.#closing !== undefined;
    return await askWorkers(this.parts, { marker, before, patience, expectedOf, gaveUp });
  }

  /** What is wrong stays so, for now. */
  #suspect(found: Found): void {
    this.#looks.suspect(found.wrong);
    if (!isRight(found)) this.parts.logger.warn("not all workers of opennjet show that they have all locations");
  }

  /** Brings back what a worker lacks, and takes away what it has kept. */
  async #mend({ isLate, wrong }: Found): Promise<void> {
    if (isLate) return await this.#repair(false);
    const { logger } = this.parts;
    const held = this.#opened();
    const of = (isThere: boolean) => wrong.filter((one) => one.isThere === isThere).map(({ location }) => location);
    const [missing, kept] = [of(true), of(false)];
    logger.warn("a worker of opennjet has lost changes of locations", { missing: missing.length, kept: kept.length });
    const body = bodyWithout(this.#carried?.locations ?? [], this.#state.folder);
    if (kept.length > 0) await this.#persist(() => held.takeAway(kept, body));
    const agentHad = await this.#persist(() => held.bringBack(missing));
    if (agentHad.length > 0) await this.#renew();
    let found = await this.#askAgain(wrong);
    if (agentHad.length === 0 && found.wrong.some(({ isThere }) => isThere)) {
      // The agent has sent it, and a worker has not taken it again.
      await this.#renew();
      found = await this.#askAgain(wrong);
    }
    this.#suspect(found);
  }

  /** What workers say of the same locations as they are to be now. */
  async #askAgain(before: readonly Expected[]): Promise<Found> {
    const keys = new Set(before.map(({ location }) => locationKey(location)));
    const expected = this.#opened()
      .expected()
      .filter(({ location }) => keys.has(locationKey(location)));
    return await this.#ask(this.#carried?.locations ?? [], { expectedOf: () => expected });
  }

  /** Sends all that is wanted once more. `fresh`: OpenNJet has begun with nothing. */
  async #repair(fresh: boolean): Promise<void> {
    const carried = this.#carried;
    if (carried === undefined) return;
    const held = this.#opened();
    this.#backends.forgetPosted();
    await this.#post(carried, this.#state);
    const repaired = await this.#persist(() => held.verify(!fresh));
    if (repaired > 0) this.parts.logger.info("locations of opennjet were brought back", { repaired });
    const wanted = held.expected().filter(({ isThere }) => isThere);
    if (!isRight(await this.#ask(carried.locations, { expectedOf: () => wanted }))) await this.#renew();
  }

  /** Gives all locations another name: what a worker has never got, though the agent has it, is sent anew. */
  async #renew(): Promise<void> {
    const plan = { generation: this.#generation, full: false, steps: [] };
    this.parts.logger.warn("locations of opennjet are made anew: a worker does not have them");
    const { names } = this.#backends;
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
      const expectedOf = this.#looks.of(this.#opened().expected());
      const found = await this.#ask(this.#carried?.locations ?? [], { looks: true, expectedOf });
      this.#looks.suspect(found.wrong);
      const hasLost = await this.#backends.hasLost();
      if (!this.#looks.isDue(isRight(found) && !hasLost) || this.#closing !== undefined) return;
      if (hasLost) await this.#repair(false);
      else await this.#mend(found);
    })
      .catch((error: unknown) => this.parts.logger.warn("opennjet could not be looked at", { error }))
      .finally(() => {
        this.#looking = false;
      });
  }

  /** See untilAnswered. */
  #persist<T>(work: () => Promise<T>): Promise<T> {
    return untilAnswered({ ...this.parts, gaveUp: () => this.#closing !== undefined }, work);
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
