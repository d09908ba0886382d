/** The places of a pattern at which a byte is read (Glushkov's positions), and which may come after which. */
import { UnsupportedError } from "../../plan-step.js";
import { type ByteSet, byteSet } from "./byte-set.js";
import { hasRepeat } from "./pattern-shapes.js";
import type { PatternNode, PatternRepeat } from "./pattern-tree.js";

/**
 * A place has a number; what comes later in the pattern has a higher one, copies of counted repeats each their own. The end of the text is a
 * place where no byte fits; other assertions count as true. A place that can be reached in several ways is listed as often.
 */
export interface Places {
  sets: ByteSet[];
  follows: number[][];
  first: number[];
  last: number[];
  /** In how many ways nothing is read. */
  empty: number;
  /** The unbounded repeats of more than a single byte. */
  loops: LoopPlaces[];
  /** There is an assertion behind a place that counts as true, and may not be. */
  asserts: boolean;
}

/** Places `from` up to and without `to` are inside. */
export interface LoopPlaces {
  from: number;
  to: number;
  first: number[];
  last: number[];
  /** A turn may read nothing. */
  empty: boolean;
  /** It, or a repeat inside of it, reads as little as it can. */
  lazy: boolean;
  /** It goes on only where what comes after it can't be read. */
  guarded: boolean;
}

type Ends = Pick<Places, "first" | "last" | "empty">;

const MOST_PLACES = 1000;
const MOST_LINKS = 20_000;
const NOTHING_READ: Ends = { first: [], last: [], empty: 1 };

/** Throws UnsupportedError where there are too many. */
export function placesOf(node: PatternNode): Places {
  const builder = new PlacesBuilder();
  const ends = builder.walk(node);
  const { sets, follows, loops, asserts } = builder;
  return { ...ends, sets, follows, loops, asserts };
}

class PlacesBuilder {
  readonly sets: ByteSet[] = [];
  readonly follows: number[][] = [];
  readonly loops: LoopPlaces[] = [];
  asserts = false;
  #links = 0;

  walk(node: PatternNode): Ends {
    switch (node.kind) {
      case "bytes":
        return this.#place(node.set);
      case "no-match-before":
        return this.#place(byteSet());
      case "unless-ahead":
        return NOTHING_READ;
      case "assertion":
        if (node.what === "end") return this.#place(byteSet());
        this.asserts ||= this.sets.length > 0;
        return NOTHING_READ;
      case "group":
      case "atomic":
        return this.walk(node.item);
      case "choice": {
        const all = node.options.map((option) => this.walk(option));
        return {
          first: this.#counted(all.flatMap(({ first }) => first)),
          last: this.#counted(all.flatMap(({ last }) => last)),
          empty: all.reduce((sum, { empty }) => sum + empty, 0),
        };
      }
      case "sequence":
        return node.items.reduce((ends, item) => this.#joined(ends, this.walk(item)), NOTHING_READ);
      case "repeat":
        return this.#repeat(node);
    }
  }

  #place(set: ByteSet): Ends {
    const place = this.sets.push(set) - 1;
    if (place >= MOST_PLACES) throw tooLong();
    this.follows.push([]);
    return { first: [place], last: [place], empty: 0 };
  }

  #repeat(repeat: PatternRepeat): Ends {
    const { item, least, most } = repeat;
    const copies = most === Infinity ? Math.max(least, 1) - 1 : least;
    let ends = NOTHING_READ;
    for (let i = 0; i < copies; i++) ends = this.#joined(ends, this.walk(item));
    const rest = most === Infinity ? this.#loop(repeat) : this.#optional(item, most - least);
    return this.#joined(ends, rest);
  }

  #loop(repeat: PatternRepeat): Ends {
    const { item, least } = repeat;
    const from = this.sets.length;
    const inner = this.walk(item);
    this.#link(inner.last, inner.first);
    if (item.kind !== "bytes")
      this.loops.push({
        from,
        to: this.sets.length,
        first: inner.first,
        last: inner.last,
        empty: mayReadNothing(item),
        lazy: hasRepeat(repeat, ({ lazy }) => lazy),
        guarded: isGuarded(item),
      });
    return least === 0 ? { ...inner, empty: inner.empty + 1 } : inner;
  }

  /** At most so many times, each only after the one before. */
  #optional(item: PatternNode, times: number): Ends {
    if (times === 0) return NOTHING_READ;
    const some = this.#joined(this.walk(item), this.#optional(item, times - 1));
    return { ...some, empty: some.empty + 1 };
  }

  #joined(a: Ends, b: Ends): Ends {
    this.#link(a.last, b.first);
    const empty = a.empty * b.empty;
    if (empty > MOST_PLACES) throw tooLong();
    return {
      first: a.empty === 0 ? a.first : this.#counted([...a.first, ...times(b.first, a.empty)]),
      last: b.empty === 0 ? b.last : this.#counted([...times(a.last, b.empty), ...b.last]),
      empty,
    };
  }

  #link(from: readonly number[], to: readonly number[]): void {
    this.#links += from.length * to.length;
    if (this.#links > MOST_LINKS) throw tooLong();
    for (const place of from) for (const next of to) this.follows[place].push(next);
  }

  #counted(places: number[]): number[] {
    if (places.length > MOST_LINKS) throw tooLong();
    return places;
  }
}

/** Whether it may read nothing where its assertions hold. */
function mayReadNothing(node: PatternNode): boolean {
  switch (node.kind) {
    case "bytes":
      return false;
    case "sequence":
      return node.items.every(mayReadNothing);
    case "choice":
      return node.options.some(mayReadNothing);
    case "repeat":
      return node.least === 0 || mayReadNothing(node.item);
    case "group":
    case "atomic":
      return mayReadNothing(node.item);
    default:
      return true;
  }
}

function isGuarded(turn: PatternNode): boolean {
  return turn.kind === "sequence" && turn.items[0]?.kind === "unless-ahead";
}

function times(places: readonly number[], count: number): number[] {
  return Array.from({ length: count }, () => places).flat();
}

function tooLong(): UnsupportedError {
  return new UnsupportedError(`a pattern has more than ${MOST_PLACES} places, or too many ways between them`);
}
