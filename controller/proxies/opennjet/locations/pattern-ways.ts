/** In how many ways a backtracking engine reads a text up to the same byte: so often it comes by there. */
import { UnsupportedError } from "../../plan-step.js";
import type { ByteSet } from "./byte-set.js";
import type { Places } from "./pattern-places.js";

/** Together, of all parts of a pattern: some 20 ms for 32 KiB. */
export const MOST_WAYS = 32;
/** Places that are tried for a byte of the text, over all ways. */
const MOST_TRIES = 64;
const MOST_STATES = 1500;

/** How many ways have led to each place. */
type State = ReadonlyMap<number, number>;

/**
 * The most ways to one byte of any text: none of its beginnings is read in more. Infinity where they are more than MOST_WAYS, as
 * where the number grows with the text.
 */
export function mostWays(places: Places): number {
  const { sets, follows, first } = places;
  const classes = byteClasses(sets);
  const recurring = recurringPlaces(places);
  const seen = new Set<string>();
  const waiting: State[] = [];
  let most = 1;

  const reach = (next: Iterable<readonly [number, number]>) => {
    const counts = new Map<number, number>();
    for (const [place, ways] of next) counts.set(place, (counts.get(place) ?? 0) + ways);
    for (const byte of classes) {
      const state = new Map([...counts].filter(([place]) => sets[place][byte] === 1).sort(([a], [b]) => a - b));
      const key = [...state].join();
      if (state.size === 0 || seen.has(key)) continue;
      seen.add(key);
      waiting.push(state);
      most = Math.max(most, waysTo(state));
    }
  };
  const waysTo = (state: State): number => {
    let ways = 0;
    let tries = 0;
    for (const [place, count] of state) {
      ways += count;
      if (recurring.has(place)) tries += count * follows[place].length;
    }
    return ways > MOST_WAYS || tries > MOST_TRIES || seen.size > MOST_STATES ? Infinity : ways;
  };

  reach(first.map((place) => [place, 1]));
  for (let state = waiting.pop(); state !== undefined && most !== Infinity; state = waiting.pop()) {
    reach([...state].flatMap(([place, ways]) => follows[place].map((next) => [next, ways] as const)));
  }
  return most;
}

export function tooManyWays(): UnsupportedError {
  return new UnsupportedError(
    "a pattern can be read in several ways, which may take PCRE much time: say it in one way, as with [^/]+ for a segment, or use the carrier core",
  );
}

/** One byte of each class: bytes that every set has or every set has not. */
function byteClasses(sets: readonly ByteSet[]): number[] {
  const kinds = new Map<string, ByteSet>(sets.map((set) => [set.join(""), set]));
  const classes = new Map<string, number>();
  for (let byte = 0; byte < 256; byte++) {
    const kind = [...kinds.values()].map((set) => set[byte]).join("");
    if (!classes.has(kind)) classes.set(kind, byte);
  }
  return [...classes.values()];
}

/** Places that one text may reach any number of times: in a loop, or after one. */
function recurringPlaces({ follows }: Places): Set<number> {
  const reached = new Set<number>();
  follows.forEach((after, place) => {
    for (const next of after) if (next <= place) reached.add(next);
  });
  for (const place of reached) for (const next of follows[place]) reached.add(next);
  return reached;
}
