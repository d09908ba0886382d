/** What an OpenNJet holds, in memory: thousands of moments of many changes can be looked at. */
import { AlreadyExistsError, NotFoundError, RefusedError } from "../../controller/proxies/opennjet/api/errors.js";
import type { Backend, PostResult } from "../../controller/proxies/opennjet/api/index.js";
import type { LocationsApi } from "../../controller/proxies/opennjet/locations/held-locations.js";
import { type CarriedLocation, locationKey } from "../../controller/proxies/opennjet/locations/location-set.js";
import type { DataPlane, PlaneAnswer, Question } from "../../controller/proxies/opennjet/locations/questions.js";
import { type TriedRequest, tried } from "./locations-tried.js";

const CALL = { method: "POST", path: "/api/v1/dyn_loc", status: 200 };

/** What a controller sees of an OpenNJet; `kill` ends the controller in the middle of a call. */
export interface Connection {
  locations: LocationsApi;
  backends: { post(list: readonly Backend[]): Promise<PostResult>; list(): Promise<Backend[]> };
  plane: DataPlane;
  kill(): void;
}

export class MemoryOpenNjet {
  readonly locations = new Map<string, CarriedLocation>();
  readonly backends = new Map<string, Backend>();
  /** After each change of anything. */
  changed: () => void = () => undefined;
  /** Whether a location is refused for good. */
  refuses: (location: CarriedLocation) => boolean = () => false;

  connect(): Connection {
    let alive = true;
    /** A call of a controller that has ended does nothing, and is never answered. */
    const call = async <T>(work: () => T): Promise<T> => (alive ? work() : await new Promise<never>(() => undefined));
    return {
      locations: {
        add: (_server, location) => call(() => this.#add(location as CarriedLocation)),
        remove: (_server, location) => call(() => this.#remove(location as CarriedLocation)),
      },
      backends: {
        post: (list) => call(() => this.#post(list)),
        list: () => call(() => structuredClone([...this.backends.values()])),
      },
      plane: {
        connect: () => ({ ask: (question) => call(() => this.#say(question)), close: () => undefined }),
        workers: () => 1,
      },
      kill() {
        alive = false;
      },
    };
  }

  /** The port of the peer that a request goes to; a status where it goes to none. */
  answer(request: TriedRequest): string {
    const body = tried([...this.locations.values()], request);
    const name = /set \$proxy_upstream_name "(.*?)"/.exec(body)?.[1];
    if (name === undefined) return /return (\d+)/.exec(body)?.[1] ?? body;
    return this.backends.get(name)?.endpoints[0]?.port?.toString() ?? "503";
  }

  #add(location: CarriedLocation): void {
    const key = locationKey(location);
    if (this.locations.has(key)) throw new AlreadyExistsError("it is there", CALL);
    if (this.refuses(location)) throw new RefusedError("it is not liked", CALL);
    this.locations.set(key, location);
    this.changed();
  }

  #remove(location: CarriedLocation): void {
    if (!this.locations.delete(locationKey(location))) throw new NotFoundError("it is not there", CALL);
    this.changed();
  }

  #post(list: readonly Backend[]): PostResult {
    this.backends.clear();
    for (const backend of structuredClone(list)) this.backends.set(backend.name, backend);
    this.changed();
    return { late: [], failures: [] };
  }

  /** What its one worker answers to a question. */
  #say({ host, path }: Question): PlaneAnswer {
    const body = tried([...this.locations.values()], { host, target: path });
    if (body === "404") return { status: 404, location: undefined, body: "1" };
    const id = path.slice(path.lastIndexOf("/") + 1);
    return { status: 302, location: `http://${id}/1`, body: "" };
  }
}
