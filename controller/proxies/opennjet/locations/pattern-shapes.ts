/** Trees of patterns of which only one thing counts, whether they match, as simple as can be: no groups, no preferences. */
import { type ByteSet, byteSet, includes, unite } from "./byte-set.js";
import type { PatternNode, PatternRepeat } from "./pattern-tree.js";

const NOTHING: PatternNode = { kind: "sequence", items: [] };

/** A loop over bytes of one set, which may end at once. */
export interface ByteLoop {
  kind: "repeat";
  item: { kind: "bytes"; set: ByteSet };
  least: 0;
  most: number;
  lazy: boolean;
}

export function byteLoop(set: ByteSet, lazy = false): ByteLoop {
  return { kind: "repeat", item: { kind: "bytes", set }, least: 0, most: Infinity, lazy };
}

export function isByteLoop(node: PatternNode): node is ByteLoop {
  return node.kind === "repeat" && node.item.kind === "bytes" && node.least === 0 && node.most === Infinity;
}

export function sequence(items: readonly PatternNode[]): PatternNode {
  const flat = items.flatMap(itemsOf);
  return flat.length === 1 ? flat[0] : { kind: "sequence", items: flat };
}

function itemsOf(node: PatternNode): readonly PatternNode[] {
  return node.kind === "sequence" ? node.items : [node];
}

/** What the pattern is a sequence of, simplified; of an unbounded repeat of a byte the loop stands by itself. */
export function simplified(tree: PatternNode): PatternNode[] {
  return itemsOf(simple(tree)).flatMap(withLoopApart);
}

function withLoopApart(node: PatternNode): PatternNode[] {
  if (node.kind !== "repeat" || node.item.kind !== "bytes" || node.most !== Infinity) return [node];
  return [...Array.from({ length: node.least }, () => node.item), byteLoop(node.item.set)];
}

function simple(node: PatternNode): PatternNode {
  switch (node.kind) {
    case "group":
    case "atomic":
      return simple(node.item);
    case "sequence":
      return sequence(node.items.map(simple));
    case "choice":
      return anyOf(node.options.map(simple));
    case "repeat":
      return repeat(simple(node.item), node.least, node.most);
    default:
      return node;
  }
}

function repeat(item: PatternNode, least: number, most: number): PatternNode {
  if (most === 0 || isNothing(item)) return NOTHING;
  if (least === 1 && most === 1) return item;
  // Repeats of `x?`, `x*` and `x+` are repeats of x.
  if (isAnyNumber(item)) {
    return repeat(item.item, item.least * least, item.most === 1 ? most : Infinity);
  }
  // In a loop an option that repeats is as good as one turn for each, and a turn that reads nothing is none.
  if (most === Infinity && item.kind === "choice" && item.options.some(isAnyNumber)) {
    const turn = anyOf(item.options.map((option) => (isAnyNumber(option) ? option.item : option)));
    return repeat(turn, item.options.some((option) => isAnyNumber(option) && option.least === 0) ? 0 : least, most);
  }
  return { kind: "repeat", item, least, most, lazy: false };
}

/** `x?`, `x*` or `x+`. */
function isAnyNumber(node: PatternNode): node is PatternNode & { kind: "repeat" } {
  return node.kind === "repeat" && node.least <= 1 && (node.most === 1 || node.most === Infinity);
}

function isNothing(node: PatternNode): boolean {
  return node.kind === "sequence" && node.items.length === 0;
}

/** One of these, in any order: what begins with the same bytes is tried once. */
export function anyOf(options: readonly PatternNode[]): PatternNode {
  const flat = options.flatMap((option) => (option.kind === "choice" ? option.options : [option]));
  const single = byteSet();
  const tails = new Map<string, { set: ByteSet; rests: PatternNode[] }>();
  const others: PatternNode[] = [];
  for (const option of flat.filter((one) => !isNothing(one))) {
    const [first, ...rest] = itemsOf(option);
    if (first.kind !== "bytes") others.push(option);
    else {
      const key = first.set.join("");
      const known = tails.get(key);
      if (known === undefined) tails.set(key, { set: first.set, rests: [sequence(rest)] });
      else known.rests.push(sequence(rest));
    }
  }
  const all: PatternNode[] = [];
  for (const { set, rests } of tails.values()) {
    const tail = rests.length === 1 ? rests[0] : anyOf(rests);
    if (isNothing(tail)) unite(single, set);
    else all.push(sequence([{ kind: "bytes", set }, tail]));
  }
  if (single.includes(1)) all.unshift({ kind: "bytes", set: single });
  all.push(...others);
  const some = all.length === 0 ? NOTHING : all.length === 1 ? all[0] : ({ kind: "choice", options: all } as const);
  return flat.some(isNothing) ? repeat(some, 0, 1) : some;
}

/** True if the pattern has such a repeat, or is one. */
export function hasRepeat(node: PatternNode, is: (repeat: PatternRepeat) => boolean): boolean {
  switch (node.kind) {
    case "repeat":
      return is(node) || hasRepeat(node.item, is);
    case "group":
    case "atomic":
      return hasRepeat(node.item, is);
    case "choice":
      return node.options.some((option) => hasRepeat(option, is));
    case "sequence":
      return node.items.some((item) => hasRepeat(item, is));
    default:
      return false;
  }
}

/** All bytes that a text of the pattern may have. */
export function bytesOf(node: PatternNode): ByteSet {
  switch (node.kind) {
    case "bytes":
      return node.set;
    case "group":
    case "atomic":
    case "repeat":
      return bytesOf(node.item);
    case "choice":
      return bytesOfAll(node.options);
    case "sequence":
      return bytesOfAll(node.items);
    default:
      return byteSet();
  }
}

export function bytesOfAll(nodes: readonly PatternNode[]): ByteSet {
  return nodes.reduce((set, node) => unite(set, bytesOf(node)), byteSet());
}

/**
 * As few repeats at this edge as there may be, where any number of `around` may stand beyond it: those read the others.
 */
export function leastAt(edge: "start" | "end", items: readonly PatternNode[], around: ByteSet): PatternNode[] {
  const left = [...items];
  for (;;) {
    const node = edge === "start" ? left[0] : left.at(-1);
    const least = node === undefined ? undefined : leastOf(edge, node, around);
    if (least === undefined) return left;
    if (edge === "start") left.splice(0, 1, ...least);
    else left.splice(-1, 1, ...least);
  }
}

/** Undefined where nothing is to be left out. */
function leastOf(edge: "start" | "end", node: PatternNode, around: ByteSet): readonly PatternNode[] | undefined {
  if (node.kind === "choice") {
    const options = node.options.map((option) => sequence(leastAt(edge, itemsOf(option), around)));
    if (options.every((option, i) => isSame(option, node.options[i]))) return undefined;
    return itemsOf(anyOf(options));
  }
  if (node.kind !== "repeat") return undefined;
  if (node.most > node.least) {
    return includes(around, bytesOf(node.item)) ? itemsOf(repeat(node.item, node.least, node.least)) : undefined;
  }
  if (node.item.kind === "bytes") return undefined;
  const others = itemsOf(repeat(node.item, node.least - 1, node.least - 1));
  return edge === "start" ? [...itemsOf(node.item), ...others] : [...others, ...itemsOf(node.item)];
}

function isSame(a: PatternNode, b: PatternNode): boolean {
  const x = itemsOf(a);
  const y = itemsOf(b);
  return x.length === y.length && x.every((item, i) => item === y[i]);
}
