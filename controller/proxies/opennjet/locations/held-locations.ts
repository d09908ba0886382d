/** The locations of a running OpenNJet: brought to what they are to be, and looked after. */
import { AlreadyExistsError, NotFoundError, type OpenNjetApiError, RefusalError } from "../api/errors.js";
import type { OpenNjetApi, ServerAddress } from "../api/index.js";
import type { Ledger, LedgerEntry, Named } from "./ledger.js";
import { type CarriedLocation, locationKey } from "./location-set.js";
import { isMarker } from "./marker.js";
import { transition } from "./transition.js";

export type LocationsApi = Pick<OpenNjetApi["locations"], "add" | "remove">;

/** What a worker is to say of a location. */
export interface Expected {
  location: Named;
  isThere: boolean;
}

/**
 * `sure`: the agent has said so. `adding`, `removing`: it was asked, and may not have done it yet; or it is known from a
 * controller before this one.
 */
type Held = Named & { state: "sure" | "adding" | "removing" };

export interface HeldLocationsParts {
  api: LocationsApi;
  server: ServerAddress;
  ledger: Ledger<LedgerEntry>;
  /** Milliseconds; for how long names that went are remembered. */
  now(): number;
  wait(milliseconds: number): Promise<void>;
}

/** A location that OpenNJet will never take. */
export interface RefusedLocation {
  location: CarriedLocation;
  error: OpenNjetApiError;
}

/** At full speed workers lose changes; with these pauses none was ever seen to be lost. */
const BATCH = 100;
const PAUSE = 10;
/** Times that a call is made whose outcome is not known, and the first wait between them. */
const TRIES = 4;
const FIRST_WAIT = 100;
/** OpenNJet saves every 1,800 s: what was removed may come back so long after. */
const REMEMBERED = 2 * 1800 * 1000;
const MOST_REMEMBERED = 2000;

export class HeldLocations {
  readonly #held = new Map<string, Held>();
  readonly #removed = new Map<string, LedgerEntry & { removed: number }>();
  #wanted: readonly CarriedLocation[] = [];
  #calls = 0;

  private constructor(private readonly parts: HeldLocationsParts) {}

  /** Takes over what a controller before this one has noted. */
  static async open(parts: HeldLocationsParts): Promise<HeldLocations> {
    const held = new HeldLocations(parts);
    for (const { removed, ...named } of await parts.ledger.read()) {
      const key = locationKey(named);
      if (removed === undefined) held.#held.set(key, { ...named, state: "adding" });
      else held.#removed.set(key, { ...named, removed });
    }
    return held;
  }

  /** What each worker is to say of what is wanted, and of what went lately, markers apart. */
  expected(): Expected[] {
    const of = (locations: readonly Named[], isThere: boolean) =>
      locations.filter((one) => !isMarker(one)).map((location) => ({ location, isThere }));
    return [...of(this.#wanted, true), ...of([...this.#removed.values()], false)];
  }

  /**
   * Adds what is missing, then removes what is too much (`keepOthers`: not what came from before). Returns the first location
   * that is refused, with nothing removed yet; the next call goes on from there. Throws OpenNjetApiError where OpenNJet does
   * not answer.
   */
  async reach(wanted: readonly CarriedLocation[], keepOthers: boolean): Promise<RefusedLocation | undefined> {
    this.#wanted = wanted;
    const sure = new Map([...this.#held].filter(([, { state }]) => state === "sure"));
    const { add } = transition(sure, wanted);
    for (const location of add) {
      const key = locationKey(location);
      this.#removed.delete(key);
      if (!this.#held.has(key)) this.#held.set(key, { ...named(location), state: "adding" });
    }
    if (add.length > 0) await this.#note();
    const refused = await this.#addAll(add.filter((one) => !isMarker(one)));
    if (refused !== undefined) {
      for (const one of add.filter(isMarker)) this.#forget(one);
      return refused;
    }
    const { remove } = transition(
      keepOthers ? new Map([...this.#held].filter(([key]) => !this.#isInherited(key))) : this.#held,
      wanted,
    );
    for (const location of remove.filter((one) => !isMarker(one))) await this.#remove(location);
    // Workers take changes in turn: one that has the new marker has done all of the above.
    const marked = await this.#addAll(add.filter(isMarker));
    if (marked !== undefined) return marked;
    for (const marker of remove.filter(isMarker)) await this.#remove(marker);
    if (remove.length > 0) await this.#note();
    return undefined;
  }

  /** Adds one after the other; those after the first that is refused were noted, and are not sent. */
  async #addAll(locations: readonly CarriedLocation[]): Promise<RefusedLocation | undefined> {
    for (const [i, location] of locations.entries()) {
      const error = await this.#add(location);
      if (error === undefined) continue;
      for (const one of locations.slice(i)) this.#forget(one);
      return { location, error };
    }
    return undefined;
  }

  #forget(location: Named): void {
    const key = locationKey(location);
    if (this.#held.get(key)?.state === "adding") this.#held.delete(key);
  }

  /**
   * Asks for everything once more: what is there is refused as such, and what was lost comes back. After a restart of OpenNJet
   * (`restarted`) what went lately is removed once more. Returns how much was not as it should be.
   */
  async verify(restarted: boolean): Promise<number> {
    let repaired = 0;
    for (const location of this.#wanted) {
      const held = this.#held.get(locationKey(location));
      if (held !== undefined) held.state = held.state === "removing" ? "removing" : "adding";
      const { added } = await this.#addOnce(location);
      if (added) repaired++;
    }
    if (restarted) {
      for (const location of [...this.#removed.values()]) {
        if (await this.#removeOnce(location)) repaired++;
      }
    }
    return repaired;
  }

  /** Adds again what workers lack. Gives what the agent had: it tells workers nothing anew of that. */
  async bringBack(locations: readonly Named[]): Promise<Named[]> {
    const keys = new Set(locations.map(locationKey));
    const had: Named[] = [];
    for (const location of this.#wanted.filter((one) => keys.has(locationKey(one)))) {
      const { added } = await this.#addOnce(location);
      if (!added) had.push(location);
    }
    return had;
  }

  /**
   * Removes again what a worker has kept. The agent passes on no removal of what it does not have: such a location is added before, with
   * `body`, which is what requests get that no location takes. Workers that have none of it try it after all others, so that nothing
   * changes for any request; the one that has kept it has it already.
   */
  async takeAway(locations: readonly Named[], body: string): Promise<void> {
    for (const location of locations) this.#held.set(locationKey(location), { ...named(location), state: "adding" });
    await this.#note();
    for (const location of locations) {
      if (!(await this.#removeOnce(location))) await this.#addOnce({ ...location, body });
      await this.#remove(location);
    }
    await this.#note();
  }

  /** From a controller before this one, and nobody has asked for it. */
  #isInherited(key: string): boolean {
    return this.#held.get(key)?.state === "adding";
  }

  async #add(location: CarriedLocation): Promise<OpenNjetApiError | undefined> {
    const { error } = await this.#addOnce(location);
    return error;
  }

  /** Brings a location in. `added`: it was not there. `error`: it is refused for good. */
  async #addOnce(location: CarriedLocation): Promise<{ added: boolean; error?: OpenNjetApiError }> {
    const key = locationKey(location);
    // A removal that may still come would take away what is added now: first it has to be over.
    if (this.#held.get(key)?.state === "removing") await this.#remove(location);
    const { api, server } = this.parts;
    try {
      await this.#persist(() => api.add(server, location));
      this.#held.set(key, { ...named(location), state: "sure" });
      return { added: true };
    } catch (error) {
      if (error instanceof AlreadyExistsError) {
        this.#held.set(key, { ...named(location), state: "sure" });
        return { added: false };
      }
      if (!(error instanceof RefusalError)) throw error;
      this.#held.delete(key);
      return { added: false, error };
    }
  }

  async #remove(location: Named): Promise<void> {
    const key = locationKey(location);
    this.#held.set(key, { ...named(location), state: "removing" });
    await this.#removeOnce(location);
    this.#held.delete(key);
    this.#removed.set(key, { ...named(location), removed: this.parts.now() });
  }

  /** True if it was there. */
  async #removeOnce(location: Named): Promise<boolean> {
    const { api, server } = this.parts;
    try {
      await this.#persist(() => api.remove(server, location));
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /**
   * Makes a call until its outcome is known. Calls may be repeated: the agent does one after the other, so that an answer to
   * the later one tells what became of the earlier.
   */
  async #persist(call: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      await this.#pace();
      try {
        return await call();
      } catch (error) {
        if (error instanceof RefusalError || tries === TRIES) throw error;
        await this.parts.wait(FIRST_WAIT * 2 ** (tries - 1));
      }
    }
  }

  async #pace(): Promise<void> {
    if (this.#calls > 0 && this.#calls % BATCH === 0) await this.parts.wait(PAUSE);
    this.#calls++;
  }

  async #note(): Promise<void> {
    const since = this.parts.now() - REMEMBERED;
    for (const [key, { removed }] of this.#removed) {
      if (removed < since || this.#removed.size > MOST_REMEMBERED) this.#removed.delete(key);
    }
    const held = [...this.#held.values()].map(named);
    await this.parts.ledger.write([...held, ...this.#removed.values()]);
  }
}

/** Without what else there is: a body is not kept. */
function named({ rule, name, question }: Named): Named {
  return { rule, name, question };
}
