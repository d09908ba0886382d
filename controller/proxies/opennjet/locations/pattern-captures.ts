/** Patterns whose groups count, and which are given no text but what they match: a rewrite comes after the condition of its route. */
import { includes } from "./byte-set.js";
import { areLoopsPossessive, endsInOrder } from "./pattern-loops.js";
import { isAnchored } from "./pattern-pieces.js";
import { placesOf } from "./pattern-places.js";
import { ANY_BYTE, orSkip, waysBehind, waysOfSequence } from "./pattern-search.js";
import { byteLoop, bytesOfAll, hasRepeat, isByteLoop, leastAt, sequence, simplified } from "./pattern-shapes.js";
import type { PatternNode } from "./pattern-tree.js";
import { MOST_WAYS, tooManyWays } from "./pattern-ways.js";

/** The pattern in a form that takes no more than time in proportion to the text. Throws UnsupportedError where there is none. */
export function capturingForm(tree: PatternNode): PatternNode {
  if (!areLoopsPossessive(placesOf(tree))) throw tooManyWays();
  const all = simplified(tree);
  // Nothing that may be left out at the end makes a match fail.
  const items = leastAt("end", all, ANY_BYTE);
  if (isAnchored(items)) {
    if (waysOfMatch(all) <= MOST_WAYS || endsWherever(items)) return tree;
  } else {
    if (waysOfSequence([byteLoop(ANY_BYTE), ...items]) + waysOfMatch(all) <= MOST_WAYS) return tree;
    const skipping = skippingForm(tree);
    if (skipping !== undefined) return skipping;
  }
  throw tooManyWays();
}

/**
 * True if a text that matches does so wherever the last loop begins, but for a few bytes at its end: `^/(.+)/(.+)\.php$`. What is
 * read before is then tried in few ways.
 */
function endsWherever(items: readonly PatternNode[]): boolean {
  const firstLoop = items.findIndex(isByteLoop);
  const lastLoop = items.findLastIndex(isByteLoop);
  const loop = items[lastLoop];
  if (loop === undefined || !isByteLoop(loop)) return false;
  const tail = items.slice(lastLoop + 1);
  const end = tail.at(-1);
  return (
    end?.kind === "assertion" &&
    end.what === "end" &&
    !tail.some(hasLoop) &&
    includes(loop.item.set, bytesOfAll(items.slice(firstLoop, lastLoop))) &&
    endsInOrder(placesOf(sequence(items.slice(0, firstLoop))), false) &&
    waysOfSequence(items.slice(0, lastLoop)) + waysOfSequence([loop, ...tail]) <= MOST_WAYS
  );
}

/**
 * The same where no match begins between the begin of a failed one and the end of its first loop: `/old/(.*)$`. Undefined where one
 * may.
 */
function skippingForm(tree: PatternNode): PatternNode | undefined {
  const items = tree.kind === "sequence" ? tree.items : [tree];
  const at = items.findIndex(hasLoop);
  const before = items.slice(0, at);
  const parts = simplified(sequence(before)).concat(at < 0 ? [] : simplified(items[at]));
  const loop = parts.find(isByteLoop);
  if (loop === undefined) return undefined;
  const { set } = loop.item;
  const start = parts.slice(0, parts.indexOf(loop));
  const rest = [...parts.slice(start.length + 1), ...simplified(sequence(items.slice(at + 1)))];
  const maySkip = includes(set, bytesOfAll(start)) && endsInOrder(placesOf(sequence(start)), true);
  const ways = () =>
    waysOfSequence([byteLoop(ANY_BYTE), ...start]) +
    waysBehind(set, leastAt("end", rest, ANY_BYTE), true) +
    waysOfMatch(rest);
  if (!maySkip || start.some(hasLoop) || ways() > MOST_WAYS) return undefined;
  // What skips has to have read all of the start, also the part that a group holds together with the loop.
  const inside = simplified(items[at]);
  const held = inside.slice(0, inside.indexOf(inside.find(isByteLoop) as PatternNode));
  return { kind: "sequence", items: [...before, orSkip(sequence(items.slice(at)), set, held)] };
}

/**
 * Of one match from its begin to its end. What may be left out at the end is tried all the same, and may fail late: `^/(.*a.*b.*c|9*)`. Loops
 * over bytes there read to the end, and give nothing back.
 */
function waysOfMatch(items: readonly PatternNode[]): number {
  return waysOfSequence(withoutLastLoops(items));
}

function withoutLastLoops(items: readonly PatternNode[]): PatternNode[] {
  const last = items.at(-1);
  if (last === undefined) return [];
  const others = items.slice(0, -1);
  if (isByteLoop(last)) return withoutLastLoops(others);
  const inside = (node: PatternNode) => sequence(withoutLastLoops(simplified(node)));
  if (last.kind === "choice") return [...others, { ...last, options: last.options.map(inside) }];
  if (last.kind === "repeat" && last.most === 1) return [...others, { ...last, item: inside(last.item) }];
  return [...items];
}

function hasLoop(node: PatternNode): boolean {
  return hasRepeat(node, ({ most }) => most === Infinity);
}
