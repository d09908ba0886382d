/** Which loops of a pattern a backtracking engine can walk in one way only. */
import { type ByteSet, byteSet, intersects, unite } from "./byte-set.js";
import type { PatternNode } from "./pattern-tree.js";

/** Positions of a pattern (Glushkov's): where it may begin and end, and whether it may be empty. */
interface Ends {
  first: number[];
  last: number[];
  empty: boolean;
}

const MOST_POSITIONS = 1000;

/**
 * True if no text can be read by this loop in two ways: after each byte there is at most one place in the pattern where the
 * next byte may belong. Then repeats inside of repeats do not multiply the tries.
 */
export function isDeterministicLoop(loop: Extract<PatternNode, { kind: "repeat" }>): boolean {
  if (loop.item.kind === "bytes") return true;
  const sets: ByteSet[] = [];
  /** What may come after each; twice where there are two ways to the same place. */
  const follows: number[][] = [];
  const ends = walk(loop, sets, follows);
  if (sets.length > MOST_POSITIONS) return false;
  return [ends.first, ...follows].every((places) => areDisjoint(places.map((place) => sets[place])));
}

function areDisjoint(sets: ByteSet[]): boolean {
  const seen = byteSet();
  for (const set of sets) {
    if (intersects(seen, set)) return false;
    unite(seen, set);
  }
  return true;
}

function walk(node: PatternNode, sets: ByteSet[], follows: number[][]): Ends {
  switch (node.kind) {
    case "bytes": {
      const place = sets.push(node.set) - 1;
      follows.push([]);
      return { first: [place], last: [place], empty: false };
    }
    case "assertion":
      return { first: [], last: [], empty: true };
    case "group":
      return walk(node.item, sets, follows);
    case "choice": {
      const all = node.options.map((option) => walk(option, sets, follows));
      return {
        first: all.flatMap(({ first }) => first),
        last: all.flatMap(({ last }) => last),
        empty: all.some(({ empty }) => empty),
      };
    }
    case "repeat": {
      const inner = walk(node.item, sets, follows);
      if (node.most > 1) link(inner.last, inner.first, follows);
      return { ...inner, empty: inner.empty || node.least === 0 };
    }
    case "sequence": {
      let ends: Ends = { first: [], last: [], empty: true };
      for (const item of node.items) {
        const next = walk(item, sets, follows);
        link(ends.last, next.first, follows);
        ends = {
          first: ends.empty ? [...ends.first, ...next.first] : ends.first,
          last: next.empty ? [...ends.last, ...next.last] : next.last,
          empty: ends.empty && next.empty,
        };
      }
      return ends;
    }
  }
}

function link(from: number[], to: number[], follows: number[][]): void {
  for (const place of from) for (const next of to) follows[place].push(next);
}
