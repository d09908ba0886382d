/** What the carrier carries, and what a plan makes of it. Pure. */
import type { HostPattern } from "../../../../core-wasm/binding/source.js";
import { patternText } from "../../../../core-wasm/binding/source.js";
import { pieceKey, pieceOf } from "../../../model/pieces.js";
import type { Upstream } from "../../../model/types.js";
import type { Plan, PlanStep } from "../../../reconcile/plan.js";
import { failureOf, UnsupportedError } from "../../plan-step.js";
import type { ApplyFailure } from "../../proxy.js";
import type { BalancerName } from "../parts.js";
import { allocateNames, mergedHolders, type NamedRoute, type NameHolder } from "./backend-names.js";
import { backendLabel, requireCarried } from "./backends.js";
import { bundledLimit } from "./balancing-fields.js";
import { hostPlace } from "./hosts.js";
import {
  backendsOf,
  type CarriedHost,
  type CarriedLocation,
  inEdition,
  locationKey,
  locationsOf,
  namedRoutesOf,
  readHost,
} from "./location-set.js";
import { MARKER_HOST, markerOf } from "./marker.js";

/** A host asks for more locations than there is room for. */
export class LocationLimitError extends Error {
  readonly code = "PROXY_LOCATIONS_FULL";
}

/** Hosts by their place, upstreams by their key. */
export interface CarriedState {
  hosts: ReadonlyMap<string, CarriedHost>;
  upstreams: ReadonlyMap<string, Upstream>;
  /** Keys of upstreams that were removed while hosts that could not be changed still lead to them. */
  leaving: ReadonlySet<string>;
  /** Which names routes have, or may still have. */
  names: readonly NameHolder[];
  /** See inEdition. */
  edition: number;
  /** Who balances; the same in all states. */
  balancer: BalancerName;
}

export function nothing(balancer: BalancerName): CarriedState {
  return { hosts: new Map(), upstreams: new Map(), leaving: new Set(), names: [], edition: 0, balancer };
}

/** All that a state is for OpenNJet. */
export interface Carried {
  locations: CarriedLocation[];
  /** The place of the host that each location is of, by its key. */
  hostOf: Map<string, string>;
  /** Names of backends, with the key of the upstream of each. */
  backends: Map<string, string>;
}

/** A state and why it is not all that the plan asked for. */
export interface Outcome {
  state: CarriedState;
  carried: Carried;
  failures: ApplyFailure[];
}

/**
 * The state after a plan. A piece that can't be carried stays as it was, and is told of; where there is not enough room, those
 * stay that the plan names last.
 */
export class PlannedState {
  readonly #failures = new Map<string, ApplyFailure>();
  readonly #hosts: Map<string, CarriedHost>;
  readonly #upstreams: Map<string, Upstream>;
  #leaving: Set<string>;
  #restored = false;
  /** Of all outcomes so far: each may have begun. */
  #names: readonly NameHolder[];

  /** `taken`: names that no other route may get. */
  constructor(
    private readonly before: CarriedState,
    private readonly plan: Plan,
    private readonly maxLocations: number,
    private readonly taken: ReadonlySet<string> = new Set(),
    private readonly edition = before.edition,
  ) {
    this.#names = before.names;
    this.#hosts = new Map(plan.full ? [] : before.hosts);
    this.#upstreams = new Map(before.upstreams);
    this.#leaving = new Set(plan.full ? before.upstreams.keys() : before.leaving);
    for (const step of plan.steps) {
      try {
        this.#take(step);
      } catch (error) {
        this.#refuse(step, error);
      }
    }
    this.#makeRoom();
  }

  /** The state, and what it is for OpenNJet. */
  outcome(): Outcome {
    const { edition, before } = this;
    const { balancer } = before;
    for (;;) {
      const { upstreams, leaving } = this.#needed();
      const made = carry({ hosts: this.#hosts, upstreams, leaving, names: this.#names, edition, balancer }, this.taken);
      if (!("failed" in made)) {
        const { carried, names } = made;
        this.#names = mergedHolders(this.#names, names);
        const state = { hosts: new Map(this.#hosts), upstreams, leaving, names, edition, balancer };
        return { state, carried, failures: [...this.#failures.values(), ...this.#limits()] };
      }
      this.refuseHost(made.failed, made.error);
    }
  }

  /** OpenNJet has refused a location of this host: it stays as it was, or where that is impossible all that the plan sets or removes. */
  refuseHost(place: string, error: unknown): void {
    const step = this.plan.steps.find((one) => one.step === "set-host" && hostPlace(one.rules.pattern) === place);
    if (step !== undefined && !this.#failures.has(pieceKey(pieceOf(step)))) {
      this.#refuse(step, error);
      return;
    }
    // It is another piece of the plan that it does not go with.
    if (this.#restored || "failed" in carry(this.before, this.taken)) throw error;
    this.#restored = true;
    restore(this.#hosts, this.before.hosts);
    restore(this.#upstreams, this.before.upstreams);
    this.#leaving = new Set(this.before.leaving);
    for (const one of this.plan.steps) {
      if (pieceOf(one).kind !== "certificate") this.#tell(one, error);
    }
  }

  #take(step: PlanStep): void {
    switch (step.step) {
      case "set-upstream":
        requireCarried(step.upstream, this.before.balancer);
        this.#upstreams.set(step.upstream.peers.key, step.upstream);
        this.#leaving.delete(step.upstream.peers.key);
        break;
      case "remove-upstream":
        this.#leaving.add(step.key);
        break;
      case "set-host":
        if (hostPlace(step.rules.pattern) === MARKER_HOST.host)
          throw new UnsupportedError("this host is the carrier's own");
        this.#hosts.set(hostPlace(step.rules.pattern), readHost(step.rules));
        break;
      case "remove-host":
        this.#removeHost(step.pattern);
        break;
    }
  }

  /** Upstreams, but for those that leave and that no host leads to. */
  #needed(): Pick<CarriedState, "upstreams" | "leaving"> {
    const actions = [...this.#hosts.values()].flatMap(({ cases }) => cases.map(({ action }) => action));
    const used = new Set(actions.flatMap((action) => (action.kind === "proxy" ? [action.upstream] : [])));
    const leaving = new Set([...this.#leaving].filter((key) => used.has(key)));
    const upstreams = new Map([...this.#upstreams].filter(([key]) => leaving.has(key) || !this.#leaving.has(key)));
    return { upstreams, leaving };
  }

  /** What is in force, and not as it was asked for. */
  #limits(): ApplyFailure[] {
    if (this.before.balancer !== "bundled") return [];
    const limits: ApplyFailure[] = [];
    for (const step of this.plan.steps) {
      if (step.step !== "set-upstream" || this.#failures.has(pieceKey(pieceOf(step)))) continue;
      const message = bundledLimit(step.upstream);
      if (message !== undefined)
        limits.push({ ...pieceOf(step), code: "PROXY_BALANCER_LIMIT", message, inForce: true });
    }
    return limits;
  }

  #removeHost(pattern: HostPattern): void {
    const place = hostPlace(pattern);
    const there = this.#hosts.get(place)?.rules.pattern;
    // Both kinds of a wildcard have one place; the other kind may have it by now.
    if (there !== undefined && patternText(there) === patternText(pattern)) this.#hosts.delete(place);
  }

  #refuse(step: PlanStep, error: unknown): void {
    this.#tell(step, error);
    if (step.step === "set-host") restoreOne(this.#hosts, this.before.hosts, hostPlace(step.rules.pattern));
    if (step.step === "set-upstream") restoreOne(this.#upstreams, this.before.upstreams, step.upstream.peers.key);
  }

  #tell(step: PlanStep, error: unknown): void {
    const failure = failureOf(step, error);
    const key = pieceKey(failure);
    if (!this.#failures.has(key)) this.#failures.set(key, failure);
  }

  /** Takes back what needs more locations than before, from the last step on, until all that is left has room. */
  #makeRoom(): void {
    let count = [...this.#hosts.values()].reduce((sum, { cases }) => sum + cases.length, 0);
    for (const step of this.plan.steps.toReversed()) {
      if (count <= this.maxLocations) return;
      if (step.step !== "set-host") continue;
      const place = hostPlace(step.rules.pattern);
      const wanted = this.#hosts.get(place)?.cases.length ?? 0;
      const had = this.before.hosts.get(place)?.cases.length ?? 0;
      if (wanted <= had) continue;
      count -= wanted - had;
      const room = `${wanted} locations are needed where ${this.maxLocations} in all are allowed (--max-locations)`;
      this.#refuse(step, new LocationLimitError(`${room}; use the carrier core, or fewer rules`));
    }
  }
}

type Carry = { carried: Carried; names: NameHolder[] } | { failed: string; error: UnsupportedError };

function carry(state: CarriedState, taken: ReadonlySet<string>): Carry {
  const patterns: HostPattern[] = [MARKER_HOST, ...[...state.hosts.values()].map(({ rules }) => rules.pattern)];
  const upstreams = (key: string) => state.upstreams.get(key);
  const routes: (NamedRoute & { upstream: string })[] = [];
  for (const [place, host] of state.hosts) {
    try {
      routes.push(...namedRoutesOf(host, patterns, upstreams, state.balancer));
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      return { failed: place, error };
    }
  }
  const upstreamOf = new Map(routes.map(({ route, upstream }) => [route, upstream]));
  const label = ({ route }: NamedRoute) => backendLabel(upstreamOf.get(route) ?? "");
  const names = allocateNames(
    routes.map(({ route, target, shape }) => ({ route, target, shape })),
    state.names,
    taken,
    label,
  );
  const nameOf = new Map(names.map(({ route, name }) => [route, name]));
  const named = (route: string) => nameOf.get(route) ?? "";
  const carried: Carried = { locations: [], hostOf: new Map(), backends: new Map() };
  for (const [place, host] of state.hosts) {
    for (const one of locationsOf(host, patterns, upstreams, named, state.balancer)) {
      const location = inEdition(one, state.edition);
      carried.locations.push(location);
      carried.hostOf.set(locationKey(location), place);
    }
    for (const [name, key] of backendsOf(host, upstreams, named)) carried.backends.set(name, key);
  }
  carried.locations.push(markerOf([...carried.hostOf.keys()]));
  return { carried, names };
}

function restore<T>(to: Map<string, T>, from: ReadonlyMap<string, T>): void {
  to.clear();
  for (const [key, value] of from) to.set(key, value);
}

function restoreOne<T>(to: Map<string, T>, from: ReadonlyMap<string, T>, key: string): void {
  const value = from.get(key);
  if (value === undefined) to.delete(key);
  else to.set(key, value);
}
