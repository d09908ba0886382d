/** The locations of a running OpenNJet: brought to what they are to be, and looked after. */
import { AlreadyExistsError, NotFoundError, NotReachableError, OpenNjetApiError } from "../api/errors.js";
import type { OpenNjetApi, ServerAddress } from "../api/index.js";
import type { Ledger, LedgerEntry } from "./ledger.js";
import { type CarriedLocation, locationKey } from "./location-set.js";
import { isMarker } from "./marker.js";
import { transition } from "./transition.js";

export type LocationsApi = Pick<OpenNjetApi["locations"], "add" | "remove">;
type Named = Pick<CarriedLocation, "rule" | "name">;

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
    for (const { rule, name, removed } of await parts.ledger.read()) {
      const key = locationKey({ rule, name });
      if (removed === undefined) held.#held.set(key, { rule, name, state: "adding" });
      else held.#removed.set(key, { rule, name, removed });
    }
    return held;
  }

  /** Locations that are wanted and known to be there. */
  get count(): number {
    return this.#wanted.filter((location) => this.#held.get(locationKey(location))?.state === "sure").length;
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
    for (const { rule, name } of add) {
      const key = locationKey({ rule, name });
      this.#removed.delete(key);
      if (!this.#held.has(key)) this.#held.set(key, { rule, name, state: "adding" });
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
      for (const { rule, name } of [...this.#removed.values()]) {
        if (await this.#removeOnce({ rule, name })) repaired++;
      }
    }
    return repaired;
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
    const { rule, name } = location;
    // A removal that may still come would take away what is added now: first it has to be over.
    if (this.#held.get(key)?.state === "removing") await this.#remove(location);
    const { api, server } = this.parts;
    try {
      await this.#persist(() => api.add(server, location));
      this.#held.set(key, { rule, name, state: "sure" });
      return { added: true };
    } catch (error) {
      if (error instanceof AlreadyExistsError) {
        this.#held.set(key, { rule, name, state: "sure" });
        return { added: false };
      }
      if (!isDefinite(error)) throw error;
      this.#held.delete(key);
      return { added: false, error };
    }
  }

  async #remove(location: Named): Promise<void> {
    const { rule, name } = location;
    const key = locationKey(location);
    this.#held.set(key, { rule, name, state: "removing" });
    await this.#removeOnce(location);
    this.#held.delete(key);
    this.#removed.set(key, { rule, name, removed: this.parts.now() });
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
        if (isDefinite(error) || tries === TRIES) throw error;
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
    const held = [...this.#held.values()].map(({ rule, name }): LedgerEntry => ({ rule, name }));
    await this.parts.ledger.write([...held, ...this.#removed.values()]);
  }
}

/** An answer that says for certain that nothing has changed, and that asking again changes nothing. */
function isDefinite(error: unknown): error is OpenNjetApiError {
  return error instanceof OpenNjetApiError && !error.mayHaveApplied && !(error instanceof NotReachableError);
}
