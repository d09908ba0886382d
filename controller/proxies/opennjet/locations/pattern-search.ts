/**
 * Patterns of which only one thing counts, whether they match: in a form that takes a backtracking engine time in proportion to
 * the text, and no stack.
 */
import { type ByteSet, byteSet, includes, unite } from "./byte-set.js";
import { areLoopsPossessive, endsBefore, endsInOrder } from "./pattern-loops.js";
import { placesOf } from "./pattern-places.js";
import { anyOf, byteLoop, bytesOfAll, isByteLoop, leastAt, sequence, simplified } from "./pattern-shapes.js";
import type { PatternNode } from "./pattern-tree.js";
import { MOST_WAYS, mostWays, tooManyWays } from "./pattern-ways.js";

/** Every byte: what the engine passes over to find the begin of a match. */
export const ANY_BYTE = byteSet(0, 255);

/** A pattern, and in how many ways it is read at most. */
interface Form {
  node: PatternNode;
  ways: number;
}

/**
 * What is looked for once, at the first place behind the one before, with bytes of `behind` between the two. It is enough to know the
 * first place: all that may lie between it and another is read by the loop of the next piece too.
 */
interface Piece {
  behind: ByteSet;
  items: PatternNode[];
}

interface Pieces {
  first: PatternNode[];
  others: Piece[];
  /** No match begins between the begin of a failed one and the end of the loop at which it failed. */
  skips: boolean;
}

/** Throws UnsupportedError where there is no such form. */
export function searchForm(tree: PatternNode): PatternNode {
  const items = leastAt("end", leastAt("start", simplified(tree), ANY_BYTE), ANY_BYTE);
  const form = formOf(items) ?? formOfOptions(items);
  if (form === undefined) throw tooManyWays();
  return form.node;
}

/**
 * The first alternatives of a pattern, each by itself with what comes before and behind. Those that begin at the start of the text come
 * first; there is but one of the others, since it may skip what others would find.
 */
function formOfOptions(items: readonly PatternNode[]): Form | undefined {
  const at = items.findIndex((item) => item.kind === "choice");
  const choice = items[at];
  if (choice?.kind !== "choice" || !items.slice(0, at).every(isPlain)) return undefined;
  const around = (option: PatternNode) => simplified(sequence([...items.slice(0, at), option, ...items.slice(at + 1)]));
  const anchored = choice.options.filter((option) => isAnchored(around(option)));
  const others = choice.options.filter((option) => !anchored.includes(option));
  if (anchored.length === 0) return undefined;
  const nodes: PatternNode[] = [];
  let ways = 0;
  for (const option of others.length === 0 ? anchored : [...anchored, anyOf(others)]) {
    const form = formOf(around(option));
    ways += form?.ways ?? Infinity;
    if (form === undefined || ways > MOST_WAYS) return undefined;
    nodes.push(form.node);
  }
  return { node: { kind: "choice", options: nodes }, ways };
}

export function isAnchored(items: readonly PatternNode[]): boolean {
  const [first] = items;
  return first?.kind === "assertion" && first.what === "begin";
}

function formOf(items: readonly PatternNode[]): Form | undefined {
  const { first, others, skips } = cut(items);
  const ways = waysOf({ first, others, skips }, isAnchored(items));
  if (ways > MOST_WAYS) return undefined;
  const start = guardedLoops(first);
  const pieces = others.map(({ behind, items: own }) => ({ behind, items: guardedLoops(own) }));
  const all = [start, ...pieces.map((piece) => piece.items)];
  if (!all.every((own) => areLoopsPossessive(placesOf(sequence(own))))) return undefined;
  const nodes = pieces.map(({ behind, items: own }, i) => {
    const isLast = i === pieces.length - 1;
    const found = sequence([byteLoop(behind, !isLast), ...own]);
    const node = skips ? orSkip(found, behind) : found;
    return isLast ? node : once(node);
  });
  const isSure = pieces.length === 0 || start.every(isPlain);
  return { node: sequence([isSure ? sequence(start) : once(sequence(start)), ...nodes]), ways };
}

function cut(items: readonly PatternNode[]): Pieces {
  const anchored = isAnchored(items);
  const done: Piece[] = [];
  const first: PatternNode[] = [];
  let skips = false;
  let piece: Piece | undefined;
  /** What may have been read since the end of the first piece; where a match may be skipped, since its begin. */
  let read = byteSet();
  for (const item of items) {
    const loop = isByteLoop(item) ? item.item.set : undefined;
    if (loop !== undefined && includes(loop, read)) {
      const own = leastAt("end", piece?.items ?? first, loop);
      const bytes = bytesOfAll(own);
      const maySkip = piece === undefined && !anchored && includes(loop, bytes);
      if (endsInOrder(placesOf(sequence(own)), maySkip || piece !== undefined)) {
        if (piece === undefined) first.splice(0, Infinity, ...own);
        else if (own.length > 0) done.push({ ...piece, items: own });
        skips ||= maySkip;
        if (maySkip || piece !== undefined) read = unite(read, bytes);
        read = unite(read, loop);
        piece = { behind: loop, items: [] };
        continue;
      }
    }
    if (piece === undefined) first.push(item);
    else {
      read = unite(read, bytesOfAll([item]));
      piece.items = leastAt("start", [...piece.items, item], piece.behind);
    }
  }
  return { first, others: piece === undefined ? done : [...done, piece], skips };
}

/** Of all pieces together. */
function waysOf({ first, others, skips }: Pieces, anchored: boolean): number {
  const rest = others.reduce((sum, { behind, items }) => sum + waysBehind(behind, items, skips), 0);
  if (anchored) return waysOfSequence(first) + rest;
  const start = [byteLoop(ANY_BYTE), ...first];
  const last = others.at(-1);
  if (skips || last === undefined) return waysOfSequence(start) + rest;
  // A match that fails without a skip is looked for anew at each byte.
  return waysOfSequence([...start, byteLoop(last.behind), ...last.items]) * rest;
}

/** Of what is looked for behind any number of these bytes; with skips no two searches begin among the same ones. */
export function waysBehind(loop: ByteSet, items: readonly PatternNode[], skips: boolean): number {
  const within = !skips || includes(loop, bytesOfAll(items));
  return waysOfSequence([byteLoop(within ? loop : ANY_BYTE), ...items]);
}

/** Infinity where there are too many. */
export function waysOfSequence(items: readonly PatternNode[]): number {
  return mostWays(placesOf(sequence(items)));
}

/** Loops that might be left too late are left at the first place where all that comes after them is found. */
function guardedLoops(items: readonly PatternNode[]): PatternNode[] {
  return items.flatMap((item, i) => {
    const rest = items.slice(i + 1);
    if (item.kind !== "repeat" || item.most !== Infinity || item.item.kind === "bytes") return [item];
    const isSure = endsBefore(placesOf(item.item), placesOf(sequence([item.item, ...rest])));
    if (!isSure || areLoopsPossessive(placesOf(sequence([item, ...rest])))) return [item];
    const guard: PatternNode = { kind: "unless-ahead", item: sequence(rest) };
    const first = Array.from({ length: item.least }, () => item.item);
    return [...first, { ...item, item: sequence([guard, item.item]), least: 0 }];
  });
}

function isPlain(node: PatternNode): boolean {
  return node.kind === "bytes" || node.kind === "assertion";
}

function once(item: PatternNode): PatternNode {
  return { kind: "atomic", item };
}

export function orSkip(found: PatternNode, loop: ByteSet): PatternNode {
  return { kind: "choice", options: [found, sequence([once(byteLoop(loop)), { kind: "no-match-before" }])] };
}
