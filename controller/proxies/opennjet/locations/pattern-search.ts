/**
 * Patterns of which only one thing counts, whether they match: in a form that takes a backtracking engine time in proportion to
 * the text, and no stack.
 */
import { type ByteSet, byteSet, includes } from "./byte-set.js";
import { areLoopsPossessive, endsBefore } from "./pattern-loops.js";
import { cut, isAnchored, type Pieces } from "./pattern-pieces.js";
import { placesOf } from "./pattern-places.js";
import { anyOf, byteLoop, bytesOfAll, leastAt, sequence, simplified } from "./pattern-shapes.js";
import type { PatternNode, PatternRepeat } from "./pattern-tree.js";
import { MOST_WAYS, mostWays, tooManyWays } from "./pattern-ways.js";

/** Every byte: what the engine passes over to find the begin of a match. */
export const ANY_BYTE = byteSet(0, 255);

/** A pattern, and in how many ways it is read at most. */
interface Form {
  node: PatternNode;
  ways: number;
}

/**
 * The pattern in such a form: it matches where one of them does. They are several where one of them may skip what others would find.
 * Throws UnsupportedError where there are none.
 */
export function searchForms(tree: PatternNode): PatternNode[] {
  const whole = searchForm(tree);
  if (whole !== undefined) return [whole.node];
  const forms = alternatives(tree).map(searchForm);
  if (forms.reduce((sum, one) => sum + (one?.ways ?? Infinity), 0) > MOST_WAYS) throw tooManyWays();
  return forms.flatMap((one) => (one === undefined ? [] : [one.node]));
}

function alternatives(tree: PatternNode): PatternNode[] {
  if (tree.kind === "group") return alternatives(tree.item);
  return tree.kind === "choice" ? tree.options.flatMap(alternatives) : [tree];
}

function searchForm(tree: PatternNode): Form | undefined {
  const least = leastAt("end", leastAt("start", simplified(tree), ANY_BYTE), ANY_BYTE);
  const items = simplified(sequence(least));
  return formOf(items) ?? formOfOptions(items);
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
  const guarded: PatternNode[] = [];
  for (const [i, item] of [...items.entries()].reverse()) {
    if (item.kind !== "repeat" || !needsGuard(item, items.slice(i + 1))) {
      guarded.unshift(item);
      continue;
    }
    const guard: PatternNode = { kind: "unless-ahead", item: sequence(guarded) };
    const first = Array.from({ length: item.least }, () => item.item);
    guarded.unshift(...first, { ...item, item: sequence([guard, item.item]), least: 0 });
  }
  return guarded;
}

/** False also where no guard helps. */
function needsGuard(repeat: PatternRepeat, rest: readonly PatternNode[]): boolean {
  const { item: turn, most } = repeat;
  if (most !== Infinity || turn.kind === "bytes") return false;
  if (areLoopsPossessive(placesOf(sequence([repeat, ...rest])))) return false;
  return endsBefore(placesOf(turn), placesOf(sequence([turn, ...rest])));
}

function isPlain(node: PatternNode): boolean {
  return node.kind === "bytes" || node.kind === "assertion";
}

function once(item: PatternNode): PatternNode {
  return { kind: "atomic", item };
}

/** `found`, or else nothing before the end of a loop that reads such bytes. `start`: what `found` begins with before its loop. */
export function orSkip(found: PatternNode, loop: ByteSet, start: readonly PatternNode[] = []): PatternNode {
  return { kind: "choice", options: [found, sequence([...start, once(byteLoop(loop)), { kind: "no-match-before" }])] };
}
