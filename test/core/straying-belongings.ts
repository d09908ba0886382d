/** What a host that has lost its way has and had, and the right and wrong arguments that it makes of that. */
import type { CoreExports } from "../../core-wasm/binding/core-exports.js";
import type { Random } from "../support/random.js";

export const HUGE = 1 << 24;
/** Offsets of words of a context that hold addresses; ABI.md lists them. */
const ADDRESS_WORDS = [4, 8, 16, 28, 44, 48, 52, 60, 68, 76, 88, 96];
const WORST_NUMBERS = [0, 1, 2, 3, 15, 16, 17, 96, 255, 4096, 65_535, 65_536, 0x7fffffff, 0x80000000, 0xfffffff0, -1];

/** What the host has to hand in: images and texts, in blocks of the core for as long as it lives. */
export interface Supplies {
  shards: Uint8Array[];
  peerSets: Uint8Array[];
  sources: Uint8Array[];
  patterns: string[];
  hosts: string[];
  targets: string[];
  keys: string[];
}

type Bytes = { at: number; length: number };

/** Books of what the core has given and not had back. What the host lets the core write lies in blocks of its own. */
export class Belongings {
  /** Blocks that `free` takes: size by address. */
  readonly blocks = new Map<number, number>();
  readonly tables = new Set<number>();
  /** Contexts and the table of each. */
  readonly contexts = new Map<number, number>();
  /** Addresses that were something once. */
  readonly past: number[] = [];
  /** Those of the blocks that are trackers, and images of a regex with their length. */
  readonly trackers = new Set<number>();
  readonly regexes = new Map<number, number>();
  readonly peerSetImages = new Set<number>();
  /** Where the supplies lie. */
  readonly placed: Record<"shards" | "peerSets" | "sources" | "patterns" | "hosts" | "keys", Bytes[]>;

  constructor(
    readonly exports: CoreExports,
    readonly random: Random,
    readonly supplies: Supplies,
  ) {
    const place = (bytes: Uint8Array): Bytes => {
      const at = exports.alloc(bytes.length);
      new Uint8Array(exports.memory.buffer).set(bytes, at);
      return { at, length: bytes.length };
    };
    const texts = (list: string[]) => list.map((text) => place(Buffer.from(text, "latin1")));
    const { shards, peerSets, sources, patterns, hosts, keys } = supplies;
    this.placed = {
      shards: shards.map(place),
      peerSets: peerSets.map(place),
      sources: sources.map(place),
      patterns: texts(patterns),
      hosts: texts(hosts),
      keys: texts(keys),
    };
  }

  /** Gives back what the host has, in any order. */
  end(): void {
    for (const table of this.random.shuffled([...this.tables])) this.exports.table_free(table);
    for (const block of this.random.shuffled([...this.blocks.keys()])) this.exports.free(block);
    for (const { at } of Object.values(this.placed).flat()) this.exports.free(at);
  }

  /** The memory of the core, as it is now. */
  view(): DataView {
    return new DataView(this.exports.memory.buffer);
  }

  memorySize(): number {
    return this.exports.memory.buffer.byteLength;
  }

  /** A number that is no good for anything in particular. */
  anyNumber(): number {
    const { random } = this;
    switch (random.below(5)) {
      case 0:
        return random.pick(WORST_NUMBERS);
      case 1:
        return random.word() | 0;
      case 2:
        return this.memorySize() + random.pick([-64, -20, -16, -8, -4, -1, 0, 1, 16]);
      default:
        return random.below(this.memorySize());
    }
  }

  /** An address that the host knows from somewhere: a handle, a block, what one was, a word of a context. */
  knownAddress(): number {
    const { random } = this;
    const context = random.pick([...this.contexts.keys(), 0]);
    switch (random.below(6)) {
      case 0:
        return random.pick([...this.tables, 0]);
      case 1:
        return context;
      case 2:
        return random.pick([...this.blocks.keys(), 0]);
      case 3:
        return this.past.length ? random.pick(this.past) : 0;
      case 4:
        return context ? this.view().getUint32(context + random.pick(ADDRESS_WORDS), true) : 0;
      default:
        return random.pick(Object.values(this.placed).flat()).at;
    }
  }

  /** Mostly one of `right`; else something else that is an address, or any number. */
  oneOf(right: Iterable<number>): number {
    const { random } = this;
    const list = [...right];
    if (list.length && !random.onceIn(4)) return random.pick(list);
    const address = random.onceIn(3) ? this.anyNumber() : this.knownAddress();
    return (random.onceIn(6) ? address + random.pick([1, 4, 8, 16, -16, -1]) : address) >>> 0;
  }

  /** Handles, mostly right ones. */
  readonly table = () => this.oneOf(this.tables);
  readonly context = () => this.oneOf(this.contexts.keys());
  readonly tracker = () => this.oneOf(this.trackers);

  /** Bytes that the core reads: mostly one of `right`, else with another length, elsewhere, or anything. */
  bytes(right: readonly Bytes[]): [number, number] {
    const { random } = this;
    const { at, length } = random.pick(right);
    if (!random.onceIn(4)) return [at, length];
    switch (random.below(4)) {
      case 0:
        return [at, random.pick([0, length - 1, length + 1, length + 16, HUGE, -1, 0x7fffffff])];
      case 1:
        return [at + random.pick([1, 4, 8, 16]), length];
      case 2:
        return [this.knownAddress(), random.onceIn(2) ? length : random.below(5000)];
      default:
        return [this.anyNumber(), this.anyNumber()];
    }
  }

  /** A place for `size` bytes that the core writes to: a block of the host, the same that was used before too, or none at all. */
  room(size: number): number {
    const { random } = this;
    if (random.onceIn(6))
      return this.memorySize() - random.below(Math.min(size, 64) || 1) + (random.onceIn(2) ? 0 : HUGE);
    const fits = [...this.blocks].filter(([at, have]) => have >= size && size > 0 && !this.holds(at));
    return fits.length ? random.pick(fits)[0] : -1;
  }

  /** True for a block that is more than room: what the host writes over such a thing is its own fault. */
  holds(at: number): boolean {
    return this.trackers.has(at) || this.regexes.has(at) || this.peerSetImages.has(at);
  }

  /** Writes a request to the input of a context, if it is one. Returns the lengths of host and target. */
  writeRequest(context: number): [number, number] {
    const { random } = this;
    const host = random.pick(this.supplies.hosts);
    const target = random.pick(this.supplies.targets);
    if (this.contexts.has(context) && !random.onceIn(8)) {
      const input = this.view().getUint32(context + 8, true);
      const capacity = this.view().getUint32(context + 12, true);
      const text = Buffer.from(host.padEnd((host.length + 3) & ~3, "\0") + target, "latin1");
      new Uint8Array(this.exports.memory.buffer).set(text.subarray(0, capacity), input);
    }
    return random.onceIn(6) ? [this.anyNumber(), this.anyNumber()] : [host.length, target.length];
  }

  /** Fills in what is asked for: values of the host, of the core, beyond the memory, or nothing. */
  fillIn(context: number): void {
    const { random } = this;
    if (!this.contexts.has(context) || random.onceIn(5)) return;
    const view = this.view();
    const count = view.getUint32(context + 24, true);
    for (let i = 0; i < count && i < 160; i++) {
      if (random.onceIn(3)) continue;
      const need = view.getUint32(context + 28, true) + i * 16;
      const [at, length] = this.bytes(this.placed.hosts);
      view.setUint32(need + 4, at, true);
      view.setInt32(need + 8, length, true);
    }
  }

  /** Tokens that were given out, or any. */
  token(): number {
    const { random } = this;
    const context = random.pick([...this.contexts.keys(), 0]);
    if (context && !random.onceIn(4)) {
      const view = this.view();
      const set = view.getUint32(context + 52, true);
      if (set) {
        const size = (view.getUint32(set + 16, true) + 3) & ~3;
        return view.getUint32(set + size + 4 * random.below(Math.max(1, view.getUint32(set + 24, true))), true);
      }
    }
    return random.onceIn(2) ? random.below(64) : this.anyNumber();
  }

  /** The core has given a block. */
  given(at: number, size: number): void {
    if (at) this.blocks.set(at, size);
  }

  /** A block, and what it was, has been given back. */
  gone(at: number): void {
    this.past.push(at);
    if (this.past.length > 200) this.past.shift();
    this.blocks.delete(at);
    this.trackers.delete(at);
    this.regexes.delete(at);
    this.peerSetImages.delete(at);
  }

  /** A flag, or any number. */
  flag(): number {
    return this.random.onceIn(8) ? this.anyNumber() : this.random.below(2);
  }

  /** An image of a peer set. */
  peerSet(): number {
    return this.oneOf([...this.peerSetImages, ...this.placed.peerSets.map(({ at }) => at)]);
  }

  /** An image of a regex and its length, or what is none: of that the length does not fit. */
  regex(): [number, number] {
    const [image, length] = this.random.pick([...this.regexes, [0, 20]] as [number, number][]);
    if (!this.random.onceIn(4)) return [image, length];
    return this.random.onceIn(2) ? [image, length + this.random.pick([-1, 1, 4])] : [this.anyNumber(), HUGE + 1];
  }
}
