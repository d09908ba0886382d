import {
  FLAG_ANCHORED,
  FLAG_IGNORE_CASE,
  FLAG_STOPS_REGEX,
  MAX_PATH,
  NONE,
  ROUTE_EXACT,
  ROUTE_PREFIX,
  ROUTE_REGEX,
  ROUTE_SEGMENTS,
} from "../../assembly/image/layout.js";
import type { PathRule, Route } from "../source.js";
import type { Compilation } from "./compilation.js";
import { ImageWriter } from "./image-writer.js";

/** Up to so many are sorted by insertion: routes are few and mostly in order. */
const FEW = 32;
const SLASH = 47;

const KINDS: Readonly<Record<PathRule["kind"], number>> = {
  exact: ROUTE_EXACT,
  segments: ROUTE_SEGMENTS,
  prefix: ROUTE_PREFIX,
  regex: ROUTE_REGEX,
};

/**
 * The routes of a shard while they are put in order. A route is named by its place in the source; what is known of it
 * stands at that place of the arrays. Used again and again.
 */
export class RouteList {
  count = 0;
  /** Paths as UTF-8, each at a multiple of 4. Of regexes: the patterns. */
  readonly texts = new ImageWriter();
  kinds = new Int32Array(0);
  flags = new Int32Array(0);
  /** Where its path begins in `texts`, and its length in bytes, for segments without a final slash. */
  starts = new Int32Array(0);
  lengths = new Int32Array(0);
  /** 1 where `texts` has all of the path as it is written: no final slash is missing. */
  whole = new Uint8Array(0);
  /** Its place in the image. */
  indices = new Int32Array(0);
  /** The place in the image of the candidate after it, or NONE; found by whoever writes the trie. */
  nexts = new Int32Array(0);
  /** All but the regexes, by path. */
  byPath = new Int32Array(0);
  byPathCount = 0;
  /** All, in the order of the image: exact ones by path, regexes as written, prefixes from the longest on. */
  inOrder = new Int32Array(0);
  /** Places in the image of the first regex and the first prefix. */
  firstRegex = 0;
  firstPrefix = 0;

  /** Reads routes and puts them in order. Throws CoreError. */
  read(c: Compilation, routes: readonly Route[]): void {
    this.count = routes.length;
    if (routes.length > this.kinds.length) this.#grow(routes.length);
    this.texts.reset();
    this.byPathCount = 0;
    for (let i = 0; i < routes.length; i++) this.#add(c, routes[i], i);
    this.#sortByPath();
    this.#putInOrder();
  }

  #add(c: Compilation, route: Route, i: number): void {
    const { path } = route;
    const kind = KINDS[path.kind];
    const text = path.kind === "regex" ? path.pattern : path.path;
    const start = this.texts.length;
    let length = this.texts.text(text);
    let flags = 0;
    let whole = 1;
    if (path.kind === "regex") {
      flags = (path.ignoreCase ? FLAG_IGNORE_CASE : 0) | (path.anchored ? FLAG_ANCHORED : 0);
    } else {
      const { bytes } = this.texts;
      c.path = route.label;
      if (length > 0 && bytes[start] !== SLASH) throw c.invalid("a path that does not begin with a slash");
      // A final slash does not count, and is not there when paths are compared.
      if (kind === ROUTE_SEGMENTS && length > 0 && bytes[start + length - 1] === SLASH) {
        bytes[start + --length] = 0;
        whole = 0;
      }
      if (path.kind === "prefix" && path.stopsRegex) flags = FLAG_STOPS_REGEX;
      this.byPath[this.byPathCount++] = i;
    }
    if (length > MAX_PATH) {
      c.path = route.label;
      throw c.beyond(`a path or pattern of more than ${MAX_PATH} bytes`);
    }
    this.kinds[i] = kind;
    this.flags[i] = flags;
    this.starts[i] = start;
    this.lengths[i] = length;
    this.whole[i] = whole;
  }

  /** Order by the bytes of the path, then exact before segments before prefix, `^~` first. */
  #comparePaths(a: number, b: number): number {
    const { words } = this.texts;
    const { starts, lengths } = this;
    let x = starts[a] >> 2;
    let y = starts[b] >> 2;
    // Padding is zero, and what differs only in it differs in length.
    for (let left = Math.min(lengths[a], lengths[b]); left > 0; left -= 4, x++, y++) {
      const difference = words[x] ^ words[y];
      if (difference !== 0) {
        // The lowest byte that differs stands first.
        const shift = (31 - Math.clz32(difference & -difference)) & ~7;
        return ((words[x] >>> shift) & 255) - ((words[y] >>> shift) & 255);
      }
    }
    return lengths[a] - lengths[b] || this.kinds[a] - this.kinds[b] || this.flags[b] - this.flags[a];
  }

  #sortByPath(): void {
    const { byPath, byPathCount } = this;
    if (byPathCount > FEW) {
      byPath.subarray(0, byPathCount).sort((a, b) => this.#comparePaths(a, b));
      return;
    }
    for (let i = 1; i < byPathCount; i++) {
      const one = byPath[i];
      let at = i;
      for (; at > 0 && this.#comparePaths(byPath[at - 1], one) > 0; at--) byPath[at] = byPath[at - 1];
      byPath[at] = one;
    }
  }

  /** Sorts the prefixes by length, keeping the order of equal ones. */
  #sortFromLongest(): void {
    const { inOrder, lengths, firstPrefix, count } = this;
    if (count - firstPrefix > FEW) {
      inOrder.subarray(firstPrefix, count).sort((a, b) => lengths[b] - lengths[a]);
      return;
    }
    for (let i = firstPrefix + 1; i < count; i++) {
      const one = inOrder[i];
      const length = lengths[one];
      let at = i;
      for (; at > firstPrefix && lengths[inOrder[at - 1]] < length; at--) inOrder[at] = inOrder[at - 1];
      inOrder[at] = one;
    }
  }

  #putInOrder(): void {
    const { kinds, byPath, byPathCount, inOrder, count } = this;
    let end = 0;
    for (let i = 0; i < byPathCount; i++) if (kinds[byPath[i]] === ROUTE_EXACT) inOrder[end++] = byPath[i];
    this.firstRegex = end;
    if (byPathCount < count) for (let i = 0; i < count; i++) if (kinds[i] === ROUTE_REGEX) inOrder[end++] = i;
    this.firstPrefix = end;
    for (let i = 0; i < byPathCount; i++) if (kinds[byPath[i]] !== ROUTE_EXACT) inOrder[end++] = byPath[i];
    this.#sortFromLongest();
    for (let i = 0; i < count; i++) {
      this.indices[inOrder[i]] = i;
      this.nexts[i] = NONE;
    }
  }

  #grow(count: number): void {
    const size = Math.max(64, 1 << (32 - Math.clz32(count)));
    const array = () => new Int32Array(size);
    this.kinds = array();
    this.flags = array();
    this.starts = array();
    this.lengths = array();
    this.whole = new Uint8Array(size);
    this.indices = array();
    this.nexts = array();
    this.byPath = array();
    this.inOrder = array();
  }
}
