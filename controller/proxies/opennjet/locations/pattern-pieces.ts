/**
 * Patterns cut at their loops over single bytes, of which nothing counts but whether they match. In `^/.*a.*b` it is enough to know the first
 * `a`: had a match another one, the second loop would read all that lies between the two, and match from the first as well.
 */
import { type ByteSet, byteSet, includes, unite } from "./byte-set.js";
import { endsInOrder } from "./pattern-loops.js";
import { placesOf } from "./pattern-places.js";
import { bytesOfAll, isByteLoop, leastAt, sequence } from "./pattern-shapes.js";
import type { PatternNode } from "./pattern-tree.js";

/** What is looked for at the first place behind the piece before, with bytes of `behind` between the two. */
export interface Piece {
  behind: ByteSet;
  items: PatternNode[];
}

export interface Pieces {
  first: PatternNode[];
  others: Piece[];
  /**
   * No match begins between the begin of a failed one and the end of the loop at which it failed: all that a match could read up to there is
   * in that loop, so that the failed one had found it.
   */
  skips: boolean;
}

export function isAnchored(items: readonly PatternNode[]): boolean {
  const [first] = items;
  return first?.kind === "assertion" && first.what === "begin";
}

/**
 * Cuts at each loop that reads whatever may have been read since the end of the first piece, if what comes before it can be found by its
 * first place: no other may lie inside of it, and end earlier.
 */
export function cut(items: readonly PatternNode[]): Pieces {
  const anchored = isAnchored(items);
  const done: Piece[] = [];
  let first: PatternNode[] = [];
  let skips = false;
  let piece: Piece | undefined;
  /** Since the end of the first piece; since its begin where matches are skipped. */
  const read = byteSet();
  for (const item of items) {
    const loop = isByteLoop(item) ? item.item.set : undefined;
    if (loop !== undefined && includes(loop, read)) {
      const own = leastAt("end", piece?.items ?? first, loop);
      const bytes = bytesOfAll(own);
      const maySkip = piece === undefined && !anchored && includes(loop, bytes);
      if (endsInOrder(placesOf(sequence(own)), maySkip || piece !== undefined)) {
        if (piece === undefined) first = own;
        else if (own.length > 0) done.push({ ...piece, items: own });
        if (maySkip || piece !== undefined) unite(read, bytes);
        unite(read, loop);
        skips ||= maySkip;
        piece = { behind: loop, items: [] };
        continue;
      }
    }
    if (piece === undefined) first.push(item);
    else {
      unite(read, bytesOfAll([item]));
      piece.items = leastAt("start", [...piece.items, item], piece.behind);
    }
  }
  return { first, others: piece === undefined ? done : [...done, piece], skips };
}
