import { isDeepStrictEqual } from "node:util";
import type { Logger } from "../../../observability/logger.js";
import type { PeerStates } from "../../peer-states.js";
import type { Backend, BackendsApi } from "../api/index.js";
import { backendOf, isOwnName } from "./backends.js";
import type { Carried, CarriedState } from "./carried-state.js";

export interface CarriedBackendsParts {
  backends: Pick<BackendsApi, "post" | "list">;
  peerStates: PeerStates;
  logger: Logger;
}

/** The backends of a balancer: those that were posted, and those of a controller before this one, which locations from before may name. */
export class CarriedBackends {
  #posted: readonly Backend[] | undefined;
  #inherited: readonly Backend[] = [];

  constructor(private readonly parts: CarriedBackendsParts) {}

  get names(): Set<string> {
    return new Set(this.#posted?.map(({ name }) => name));
  }

  /** Takes over what a controller before this one has posted. */
  async inherit(): Promise<void> {
    this.#inherited = (await this.parts.backends.list()).filter(({ name }) => isOwnName(name));
    this.#posted = this.#inherited;
  }

  /** No location from before names them any more. */
  forgetInherited(): void {
    this.#inherited = [];
  }

  /** What was posted may be lost. */
  forgetPosted(): void {
    this.#posted = undefined;
  }

  /** Sends them where they differ. `withPosted`: those that were posted stay as well. */
  async post(carried: Carried, state: CarriedState, withPosted = false): Promise<void> {
    const { backends: api, peerStates, logger } = this.parts;
    const besides = withPosted ? (this.#posted ?? this.#inherited) : this.#inherited;
    const backends = new Map(besides.map((backend) => [backend.name, backend]));
    for (const [name, key] of carried.backends) {
      const states = new Map(peerStates.of(key).map((one) => [`${one.address} ${one.port}`, one.state]));
      const stateOf = (address: string, port: number) => states.get(`${address} ${port}`);
      backends.set(name, backendOf(name, state.upstreams.get(key), stateOf, state.balancer));
    }
    const wanted = [...backends.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    if (isDeepStrictEqual(wanted, this.#posted)) return;
    const { late, failures } = await api.post(wanted);
    if (late.length > 0) logger.warn("workers are late with backends", { workers: late });
    for (const failure of failures) logger.warn("the balancer refused a backend", { ...failure });
    this.#posted = wanted;
  }

  async hasLost(): Promise<boolean> {
    const names = new Set((await this.parts.backends.list()).map(({ name }) => name));
    return this.#posted?.some(({ name }) => !names.has(name)) === true;
  }
}
