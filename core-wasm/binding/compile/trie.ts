/** The match section: a byte trie over the paths of all routes but regexes. Layout: core-wasm/assembly/image/layout.ts. */
import {
  FEW_CHILDREN,
  N_BITMAP,
  N_CHILDREN,
  N_EXACT,
  N_PREFIX,
  N_SEGMENTS,
  NODE_HEADER,
  NONE,
  pad8,
  ROUTE_EXACT,
  ROUTE_PREFIX,
  ROUTE_SEGMENTS,
} from "../../assembly/image/layout.js";
import type { ImageWriter } from "./image-writer.js";
import type { RouteList } from "./route-list.js";

const SLASH = 47;
const NOBODY = -1;
const BITMAP_SIZE = 32;

/** Frame of the walk: the run of the sorted list, the bytes it agrees in, the word that names the child, what encloses it. */
const FRAME = 5;
const [LOW, HIGH, DEPTH, FIELD, ENCLOSING] = [0, 1, 2, 3, 4];

/** Flag of the terminal of a kind of route. */
const TERMINALS = [N_EXACT, N_SEGMENTS, N_PREFIX];

/** Writes match sections. Used again and again. */
export class TrieWriter {
  readonly #routes: RouteList;
  readonly #out: ImageWriter;
  #stack = new Int32Array(1024 * FRAME);
  /** Of each route: the prefix route before it on the way from the root, or NOBODY. */
  #enclosing = new Int32Array(0);

  constructor(out: ImageWriter, routes: RouteList) {
    this.#out = out;
    this.#routes = routes;
  }

  /** Appends the section for the routes of the list, and links each with its next candidate. */
  put(): void {
    const { byPathCount, count } = this.#routes;
    if (byPathCount === 0) {
      this.#out.put(0);
      return;
    }
    // A frame for each child of each node on the current way down; no two frames stand for the same route.
    const frames = (byPathCount + 257) * FRAME;
    if (this.#stack.length < frames) this.#stack = new Int32Array(frames * 2);
    if (this.#enclosing.length < count) this.#enclosing = new Int32Array(count * 2);
    const stack = this.#stack;
    let top = this.#putNode(0, byPathCount, 0, NOBODY, 0);
    while (top > 0) {
      top -= FRAME;
      this.#out.patch(stack[top + FIELD], this.#out.length);
      top = this.#putNode(stack[top + LOW], stack[top + HIGH], stack[top + DEPTH], stack[top + ENCLOSING], top);
    }
  }

  /**
   * Writes the node for the routes `low` to `high` of the list by path, which agree in their first `depth` bytes, and
   * pushes a frame for each child: the last one is taken up first, and all below it before its neighbour. Returns the new
   * top of the stack.
   */
  #putNode(low: number, high: number, depth: number, enclosing: number, stack: number): number {
    if (high - low === 1) {
      this.#putLeaf(this.#routes.byPath[low], depth, enclosing);
      return stack;
    }
    const out = this.#out;
    const { byPath, starts, lengths, texts } = this.#routes;
    const source = texts.bytes;
    const first = starts[byPath[low]];
    const last = starts[byPath[high - 1]];
    const limit = Math.min(lengths[byPath[low]], lengths[byPath[high - 1]]);
    let shared = depth;
    while (shared < limit && source[first + shared] === source[last + shared]) shared++;

    const label = shared - depth;
    const node = out.reserve(NODE_HEADER + pad8(label));
    const target = out.bytes;
    for (let i = 0; i < label; i++) target[node + NODE_HEADER + i] = source[first + depth + i];
    let flags = 0;
    let next = low;
    if (lengths[byPath[low]] === shared) {
      while (next < high && lengths[byPath[next]] === shared) next++;
      flags = this.#putTerminals(low, next);
      enclosing = this.#link(low, next, enclosing);
    }
    const top = this.#pushChildren(next, high, shared, enclosing, stack);
    let children = (top - stack) / FRAME;
    if (children > 0) {
      flags |= children > FEW_CHILDREN ? N_CHILDREN | N_BITMAP : N_CHILDREN;
      this.#putKeys(children, shared, stack);
      children--;
    }
    out.patch(node, label | (flags << 16) | (children << 24));
    return top;
  }

  /** Writes the node of a single route: what most nodes are. */
  #putLeaf(route: number, depth: number, enclosing: number): void {
    const out = this.#out;
    const { kinds, indices, starts, lengths, nexts, texts } = this.#routes;
    const source = texts.bytes;
    const from = starts[route] + depth;
    const label = lengths[route] - depth;
    const kind = kinds[route];
    const node = out.reserve(NODE_HEADER + pad8(label) + 4);
    const { bytes, words } = out;
    for (let i = 0; i < label; i++) bytes[node + NODE_HEADER + i] = source[from + i];
    words[node >> 2] = label | (TERMINALS[kind] << 16);
    words[(out.length - 4) >> 2] = indices[route];
    if (kind !== ROUTE_EXACT) nexts[route] = this.#candidate(route, enclosing);
  }

  /** Writes the terminals of the routes that end at a node, the first one of each kind. Returns their flags. */
  #putTerminals(low: number, next: number): number {
    const { byPath, kinds, indices } = this.#routes;
    let flags = 0;
    // They are sorted by kind.
    for (let i = low; i < next; i++) {
      const route = byPath[i];
      const terminal = TERMINALS[kinds[route]];
      if (flags & terminal) continue;
      flags |= terminal;
      this.#out.put(indices[route]);
    }
    return flags;
  }

  /**
   * Links the routes that end at a node with the candidates after them: an exact one with the next of the same path; a
   * prefix with the nearest around it that covers whatever it covers. From the last to the first, so that `enclosing`
   * runs from the inside out. Returns what encloses the children.
   */
  #link(low: number, next: number, enclosing: number): number {
    const { byPath, kinds, indices, nexts } = this.#routes;
    let outer = enclosing;
    for (let i = next - 1; i >= low; i--) {
      const route = byPath[i];
      if (kinds[route] === ROUTE_EXACT) {
        const follows = i + 1 < next && kinds[byPath[i + 1]] === ROUTE_EXACT;
        nexts[route] = follows ? indices[byPath[i + 1]] : NONE;
        continue;
      }
      this.#enclosing[route] = outer;
      nexts[route] = this.#candidate(route, outer);
      outer = route;
    }
    return outer;
  }

  /** The place of the nearest route around a prefix that covers whatever it covers, or NONE. */
  #candidate(route: number, enclosing: number): number {
    let outer = enclosing;
    while (outer !== NOBODY && !this.#covers(outer, route)) outer = this.#enclosing[outer];
    return outer === NOBODY ? NONE : this.#routes.indices[outer];
  }

  /** True if every path that the prefix route `route` covers is covered by `outer`, whose path is a prefix of its path. */
  #covers(outer: number, route: number): boolean {
    const { kinds, lengths, starts, texts } = this.#routes;
    if (kinds[outer] === ROUTE_PREFIX) return true;
    const length = lengths[outer];
    if (length === lengths[route]) return kinds[route] === ROUTE_SEGMENTS;
    return texts.bytes[starts[route] + length] === SLASH;
  }

  #pushChildren(from: number, high: number, shared: number, enclosing: number, stack: number): number {
    const frames = this.#stack;
    const { byPath, starts, texts } = this.#routes;
    const source = texts.bytes;
    let top = stack;
    for (let i = from; i < high; top += FRAME) {
      const byte = source[starts[byPath[i]] + shared];
      frames[top + LOW] = i;
      while (i < high && source[starts[byPath[i]] + shared] === byte) i++;
      frames[top + HIGH] = i;
      frames[top + DEPTH] = shared + 1;
      frames[top + ENCLOSING] = enclosing;
    }
    return top;
  }

  /** Writes the keys of children and the words that will name them, which their frames are told. */
  #putKeys(children: number, shared: number, stack: number): void {
    const out = this.#out;
    const frames = this.#stack;
    const { byPath, starts, texts } = this.#routes;
    const many = children > FEW_CHILDREN;
    const size = many ? BITMAP_SIZE : FEW_CHILDREN;
    const keys = out.reserve(size + children * 4);
    for (let k = 0; k < children; k++) {
      const frame = stack + k * FRAME;
      const byte = texts.bytes[starts[byPath[frames[frame + LOW]]] + shared];
      if (many) out.bytes[keys + (byte >> 3)] |= 1 << (byte & 7);
      else out.bytes[keys + k] = byte;
      frames[frame + FIELD] = keys + size + k * 4;
    }
  }
}
