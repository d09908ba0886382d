/**
 * Loops that a backtracking engine may leave once, for good: a possessive one. PCRE takes stack for each turn of any other loop of
 * more than a byte, and ends the worker where 8 MiB are not enough (16,000 turns).
 */
import { type ByteSet, byteSet, intersects, unite } from "./byte-set.js";
import type { LoopPlaces, Places } from "./pattern-places.js";

/** True if each loop means the same when it reads as much as it can and gives nothing back. */
export function areLoopsPossessive(places: Places): boolean {
  return places.loops.every(
    (loop) =>
      // PCRE leaves a loop after a turn that reads nothing, and may take such a turn before others.
      !loop.empty &&
      isReadInOneWay(loop, places) &&
      (loop.guarded || excludesWhatFollows(loop, places)) &&
      !mayStayShort(loop, places),
  );
}

/** Where the pattern may end after the loop, it counts if the loop reads as little as it can, and whether an assertion holds there. */
function mayStayShort({ lazy, last }: LoopPlaces, places: Places): boolean {
  return (lazy || places.asserts) && last.some((place) => places.last.includes(place));
}

function isInside({ from, to }: Pick<LoopPlaces, "from" | "to">, place: number): boolean {
  return place >= from && place < to;
}

/** After each byte there is at most one place inside of the loop where the next byte may belong. */
function isReadInOneWay(loop: LoopPlaces, { sets, follows }: Places): boolean {
  const next = follows.slice(loop.from, loop.to).map((after) => after.filter((place) => isInside(loop, place)));
  return [loop.first, ...next].every((after) => areDisjoint(after.map((place) => sets[place])));
}

function areDisjoint(sets: readonly ByteSet[]): boolean {
  const seen = byteSet();
  for (const set of sets) {
    if (intersects(seen, set)) return false;
    unite(seen, set);
  }
  return true;
}

/** True if a turn of a loop, once it may end, goes on only with what can't be the beginning of what follows it in `whole`. */
export function endsBefore(turn: Places, whole: Places): boolean {
  if (turn.last.some((place) => whole.last.includes(place))) return false;
  return excludesWhatFollows({ from: 0, to: turn.sets.length, first: [], last: turn.last }, whole);
}

/** No text can be read by another turn, or more of this one, and be the beginning of what comes after the loop too. */
function excludesWhatFollows(
  loop: Pick<LoopPlaces, "from" | "to" | "first" | "last">,
  { sets, follows, last }: Places,
): boolean {
  const after = new Set<number>();
  const on = new Set(loop.first);
  for (const end of loop.last) for (const place of follows[end]) (isInside(loop, place) ? on : after).add(place);
  const pairs = new Pairs(sets);
  pairs.add(on, after);
  for (const [inside, outside] of pairs.all()) {
    if (loop.last.includes(inside) || last.includes(outside)) return false;
    pairs.add(
      follows[inside].filter((place) => isInside(loop, place)),
      follows[outside],
    );
  }
  return true;
}

/**
 * False if a text of these places may have another inside of it that ends earlier, or may end at two places: then the first that is
 * found is not always the one that ends first. `searched`: the other may begin later; otherwise both begin at the same byte.
 */
export function endsInOrder({ sets, follows, first, last, empty }: Places, searched: boolean): boolean {
  if (empty > 0) return first.length === 0;
  const pairs = new Pairs(sets);
  pairs.add(first, first);
  if (searched) for (const after of follows) pairs.add(after, first);
  for (const [earlier, later] of pairs.all()) {
    if (last.includes(later) && follows[earlier].length > 0) return false;
    pairs.add(follows[earlier], follows[later]);
  }
  return true;
}

/** Pairs of places that have read the same byte. */
class Pairs {
  readonly #sets: readonly ByteSet[];
  readonly #seen = new Set<number>();
  readonly #found: [number, number][] = [];

  constructor(sets: readonly ByteSet[]) {
    this.#sets = sets;
  }

  add(one: Iterable<number>, other: Iterable<number>): void {
    const others = [...other];
    for (const a of one) {
      for (const b of others) {
        const key = a * this.#sets.length + b;
        if (this.#seen.has(key)) continue;
        this.#seen.add(key);
        if (intersects(this.#sets[a], this.#sets[b])) this.#found.push([a, b]);
      }
    }
  }

  /** Also those that are added meanwhile. */
  *all(): Generator<readonly [number, number]> {
    for (let i = 0; i < this.#found.length; i++) yield this.#found[i];
  }
}
