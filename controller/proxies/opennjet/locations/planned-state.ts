/** What a plan makes of what is carried. Pure. */
import type { HostPattern, HostRules } from "../../../../core-wasm/binding/source.js";
import { patternText } from "../../../../core-wasm/binding/source.js";
import { pieceKey, pieceOf } from "../../../model/pieces.js";
import type { Upstream } from "../../../model/types.js";
import type { Plan, PlanStep } from "../../../reconcile/plan.js";
import { failureOf, UnsupportedError } from "../../plan-step.js";
import type { ApplyFailure } from "../../proxy.js";
import { mergedHolders, type NameHolder } from "./backend-names.js";
import { requireCarried } from "./backends.js";
import { bundledLimit } from "./balancing-fields.js";
import { type Carried, type CarriedState, carry, type WaitingHost } from "./carried-state.js";
import { hostPlace } from "./hosts.js";
import { type CarriedHost, readHost } from "./location-set.js";
import { MARKER_HOST } from "./marker.js";

/** A host asks for more locations than there is room for. */
export class LocationLimitError extends Error {
  readonly code = "PROXY_LOCATIONS_FULL";
}

/** A state and why it is not all that the plan asked for. */
export interface Outcome {
  state: CarriedState;
  carried: Carried;
  failures: ApplyFailure[];
  /** Steps that waited for room, and were tried again. */
  retried: PlanStep[];
}

/**
 * The state after a plan. A piece that can't be carried stays as it was, and is told of; where there is not enough room, those
 * stay that the plan names last. Room that is left is for hosts that have waited for it.
 */
export class PlannedState {
  readonly #failures = new Map<string, ApplyFailure>();
  readonly #hosts: Map<string, CarriedHost>;
  readonly #upstreams: Map<string, Upstream>;
  readonly #waiting: Map<string, WaitingHost>;
  readonly #retried = new Map<string, WaitingHost>();
  #leaving: Set<string>;
  #restored = false;
  /** Of all outcomes so far: each may have begun. */
  #names: readonly NameHolder[];

  /** `maxLocations`: with 0 nothing that waits is tried. `taken`: names that no other route may get. */
  constructor(
    private readonly before: CarriedState,
    private readonly plan: Plan,
    private readonly maxLocations: number,
    private readonly taken: ReadonlySet<string> = new Set(),
    private readonly edition = before.edition,
  ) {
    this.#names = before.names;
    this.#hosts = new Map(plan.full ? [] : before.hosts);
    this.#waiting = new Map(plan.full ? [] : before.waiting);
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
    const { balancer, folder } = before;
    for (;;) {
      const all = { hosts: this.#hosts, waiting: this.#waiting, ...this.#needed(), edition, balancer, folder };
      const made = carry({ ...all, names: this.#names }, this.taken);
      if (!("failed" in made)) {
        const { carried, names } = made;
        this.#names = mergedHolders(this.#names, names);
        const state = { ...all, hosts: new Map(this.#hosts), waiting: new Map(this.#waiting), names };
        const retried = [...this.#retried.values()].map(({ step }) => step);
        return { state, carried, failures: [...this.#failures.values(), ...this.#limits()], retried };
      }
      this.refuseHost(made.failed, made.error);
    }
  }

  /** OpenNJet has refused a location of this host: it stays as it was, or where that is impossible all that the plan sets or removes. */
  refuseHost(place: string, error: unknown): void {
    const step = this.#steps.find((one) => one.step === "set-host" && hostPlace(one.rules.pattern) === place);
    if (step !== undefined && !this.#failures.has(pieceKey(pieceOf(step)))) {
      this.#refuse(step, error);
      this.#useRoom();
      return;
    }
    // It is another piece of the plan that it does not go with.
    if (this.#restored || "failed" in carry(this.before, this.taken)) throw error;
    this.#restored = true;
    restore(this.#hosts, this.before.hosts);
    restore(this.#upstreams, this.before.upstreams);
    this.#leaving = new Set(this.before.leaving);
    for (const [where, one] of this.#retried) this.#waiting.set(where, one);
    this.#retried.clear();
    for (const one of this.plan.steps) {
      if (pieceOf(one).kind !== "certificate") this.#tell(one, error);
    }
  }

  /** Those of the plan, and those that are tried again. */
  get #steps(): PlanStep[] {
    return [...this.plan.steps, ...[...this.#retried.values()].map(({ step }) => step)];
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
        this.#waiting.delete(hostPlace(step.rules.pattern));
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
    // Both kinds of a wildcard have one place; the other kind may have it by now.
    const isIt = (there?: HostRules) => there !== undefined && patternText(there.pattern) === patternText(pattern);
    if (isIt(this.#hosts.get(place)?.rules)) this.#hosts.delete(place);
    if (isIt(this.#waiting.get(place)?.host.rules)) this.#waiting.delete(place);
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
    let room = this.#room();
    const without: [string, WaitingHost][] = [];
    for (const step of this.plan.steps.toReversed()) {
      if (room >= 0) break;
      if (step.step !== "set-host") continue;
      const place = hostPlace(step.rules.pattern);
      const host = this.#hosts.get(place);
      if (host === undefined || moreThan(this.before.hosts.get(place), host) <= 0) continue;
      room += moreThan(this.before.hosts.get(place), host);
      restoreOne(this.#hosts, this.before.hosts, place);
      without.unshift([place, { step, host }]);
    }
    this.#useRoom();
    room = this.#room();
    for (const [place, { step, host }] of without) {
      const more = moreThan(this.#hosts.get(place), host);
      if (more <= room) {
        room -= more;
        this.#hosts.set(place, host);
        continue;
      }
      const needed = `${host.cases.length} locations are needed where ${this.maxLocations} in all are allowed (--max-locations)`;
      this.#refuse(step, new LocationLimitError(`${needed}; use the carrier core, or fewer rules`));
      this.#waiting.set(place, { step, host });
    }
  }

  /** Gives what room there is to those that wait for it. One of this plan, which was told of, is no failure then. */
  #useRoom(): void {
    const own = new Set<PlanStep>(this.plan.steps);
    let room = this.#room();
    for (const [place, one] of this.#waiting) {
      const more = moreThan(this.#hosts.get(place), one.host);
      if (more > room) continue;
      room -= more;
      this.#hosts.set(place, one.host);
      this.#waiting.delete(place);
      if (own.has(one.step)) this.#failures.delete(pieceKey(pieceOf(one.step)));
      else this.#retried.set(place, one);
    }
  }

  /** Locations that there may be more. */
  #room(): number {
    return this.maxLocations - [...this.#hosts.values()].reduce((sum, { cases }) => sum + cases.length, 0);
  }
}

/** Locations that a host has more than before. */
function moreThan(before: CarriedHost | undefined, host: CarriedHost): number {
  return host.cases.length - (before?.cases.length ?? 0);
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
