/**
 * The way from one set of locations to another. In every moment of it a request finds the location that it had before, or the
 * one that it will have:
 *
 * - Of each set at most one conditional location holds for a request. While both sets are there at most two hold, and whichever
 *   comes first is right. So what is new is added before anything goes, and the order of creation does not matter.
 * - The location for what no condition takes excludes nothing. It comes once all conditional ones are there, and goes before
 *   the first of them goes.
 */
import { type CarriedLocation, locationKey } from "./location-set.js";

export interface Transition {
  /** In this order. */
  add: CarriedLocation[];
  /** After all that was added, in this order. */
  remove: Pick<CarriedLocation, "rule" | "name">[];
}

/** `before`: what is there, by its key; `after`: what is to be there. */
export function transition(
  before: ReadonlyMap<string, Pick<CarriedLocation, "rule" | "name">>,
  after: readonly CarriedLocation[],
): Transition {
  const wanted = new Set(after.map(locationKey));
  const add = after.filter((location) => !before.has(locationKey(location)));
  const remove = [...before].filter(([key]) => !wanted.has(key)).map(([, location]) => location);
  return {
    add: [...add.filter(isConditional), ...add.filter((location) => !isConditional(location))],
    remove: [...remove.filter((location) => !isConditional(location)), ...remove.filter(isConditional)],
  };
}

function isConditional({ rule }: Pick<CarriedLocation, "rule">): boolean {
  return rule === "";
}
