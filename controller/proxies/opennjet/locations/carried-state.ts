/** What the carrier carries, and what that is for OpenNJet. Pure. */
import type { HostPattern } from "../../../../core-wasm/binding/source.js";
import type { Upstream } from "../../../model/types.js";
import type { PlanStep } from "../../../reconcile/plan.js";
import { UnsupportedError } from "../../plan-step.js";
import type { BalancerName } from "../parts.js";
import { allocateNames, type NamedRoute, type NameHolder } from "./backend-names.js";
import { backendLabel } from "./backends.js";
import {
  backendsOf,
  type CarriedHost,
  type CarriedLocation,
  locationKey,
  locationsOf,
  namedRoutesOf,
  type Surroundings,
} from "./location-set.js";
import { MARKER_HOST, markerOf } from "./marker.js";

export type SetHost = Extract<PlanStep, { step: "set-host" }>;

/** A step that there was no room for, and what it would make of its host. */
export interface WaitingHost {
  step: SetHost;
  host: CarriedHost;
}

/** Hosts by their place, upstreams by their key. */
export interface CarriedState {
  hosts: ReadonlyMap<string, CarriedHost>;
  /** Hosts that were refused for lack of room, by their place; those first that have waited longest. */
  waiting: ReadonlyMap<string, WaitingHost>;
  upstreams: ReadonlyMap<string, Upstream>;
  /** Keys of upstreams that were removed while hosts that could not be changed still lead to them. */
  leaving: ReadonlySet<string>;
  /** Which names routes have, or may still have. */
  names: readonly NameHolder[];
  /** See Surroundings. */
  edition: number;
  /** Who balances, and where questions are asked (see questionFolder); the same in all states. */
  balancer: BalancerName;
  folder: string;
}

export function nothing(balancer: BalancerName, folder: string): CarriedState {
  return {
    hosts: new Map(),
    waiting: new Map(),
    upstreams: new Map(),
    leaving: new Set(),
    names: [],
    edition: 0,
    balancer,
    folder,
  };
}

/** All that a state is for OpenNJet. */
export interface Carried {
  locations: CarriedLocation[];
  /** The place of the host that each location is of, by its key. */
  hostOf: Map<string, string>;
  /** Names of backends, with the key of the upstream of each. */
  backends: Map<string, string>;
}

type Carry = { carried: Carried; names: NameHolder[] } | { failed: string; error: UnsupportedError };

/**
 * The locations and backends of a state. `failed`: the place of a host that can't be carried among the others. `taken`: names that no
 * other route may get.
 */
export function carry(state: CarriedState, taken: ReadonlySet<string>): Carry {
  const patterns: HostPattern[] = [MARKER_HOST, ...[...state.hosts.values()].map(({ rules }) => rules.pattern)];
  const upstreams = (key: string) => state.upstreams.get(key);
  const { balancer, folder, edition } = state;
  const surroundings: Surroundings = { patterns, upstreams, balancer, folder, edition };
  const routes: (NamedRoute & { upstream: string })[] = [];
  for (const [place, host] of state.hosts) {
    try {
      routes.push(...namedRoutesOf(host, surroundings));
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
    for (const location of locationsOf(host, surroundings, named)) {
      carried.locations.push(location);
      carried.hostOf.set(locationKey(location), place);
    }
    for (const [name, key] of backendsOf(host, upstreams, named)) carried.backends.set(name, key);
  }
  carried.locations.push(markerOf([...carried.hostOf.keys()], folder));
  return { carried, names };
}
