/**
 * The way from one set of locations to another. In every moment of it a request finds the location that it had before, or the
 * one that it will have:
 *
 * - Of each set at most one conditional location holds for a request. While both sets are there at most two hold, and whichever
 *   comes first is right. So what is new is added before anything goes, and the order of creation does not matter.
 * - The location for what no condition takes excludes nothing. It comes once all conditional ones are there, and goes before
 *   the first of them goes.
 * - The marker comes when all else is added and removed, and the one before goes after it: a worker that has it has done all
 *   that was asked for.
 */
import { type CarriedLocation, locationKey } from "./location-set.js";
import { isMarker, markerOf } from "./marker.js";

type Named = Pick<CarriedLocation, "rule" | "name">;

export interface Transition<T> {
  /** In this order. */
  add: CarriedLocation[];
  /** After all that was added, in this order. */
  remove: T[];
}

/** `before`: what is there, by its key; `after`: what is to be there. */
export function transition<T extends Named>(
  before: ReadonlyMap<string, T>,
  after: readonly CarriedLocation[],
): Transition<T> {
  const wanted = new Set(after.map(locationKey));
  const add = after.filter((location) => !before.has(locationKey(location)));
  const remove = [...before].filter(([key]) => !wanted.has(key)).map(([, location]) => location);
  const byRank = (a: Named, b: Named) => rank(a) - rank(b);
  return { add: add.sort(byRank), remove: remove.sort((a, b) => rankOfRemoval(a) - rankOfRemoval(b)) };
}

/**
 * Changes that OpenNJet's broker keeps for a worker that is behind: 20 under way and 1,000 that wait. It drops what is more, and nobody
 * hears of it. Each half of a way has room: there are no more than 900 locations (`--max-locations`).
 */
const MOST_CHANGES = 1_000;

/**
 * The set half-way, with all that is in either: undefined where the whole way has no more changes than a worker may be behind. `folder`:
 * see questionFolder.
 */
export function halfWay(
  before: readonly CarriedLocation[],
  after: readonly CarriedLocation[],
  folder: string,
): CarriedLocation[] | undefined {
  const wanted = new Set(after.map(locationKey));
  const leaving = before.filter((location) => !wanted.has(locationKey(location)));
  const staying = before.length - leaving.length;
  if (leaving.length + after.length - staying <= MOST_CHANGES) return undefined;
  const all = [...after, ...leaving].filter((location) => !isMarker(location));
  return [...all, markerOf(all.map(locationKey), folder)];
}

function rank(location: Named): number {
  return isMarker(location) ? 2 : location.rule === "" ? 0 : 1;
}

function rankOfRemoval(location: Named): number {
  return isMarker(location) ? 2 : location.rule === "" ? 1 : 0;
}
