/**
 * A host program that has lost its way: it calls any export with arguments of which some are wrong (handles of other kinds, of
 * what it has given back, addresses beyond the memory, huge lengths, blocks that overlap), in any order. It keeps
 * books of what it has, so that each answer can be judged. What it lets the core write lies in blocks of its own.
 */
import type { CoreExports } from "../../core-wasm/binding/core-exports.js";
import type { Random } from "../support/random.js";

export const OK = 0;
export const E_POINTER = -10;
const HUGE = 1 << 24;
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

export class StrayingHost {
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
  steps = 0;
  readonly calls = new Map<string, number>();
  readonly #supplies: Record<"shards" | "peerSets" | "sources" | "patterns" | "hosts" | "keys", Bytes[]>;

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
    this.#supplies = {
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
    for (const { at } of Object.values(this.#supplies).flat()) this.exports.free(at);
  }

  #view(): DataView {
    return new DataView(this.exports.memory.buffer);
  }

  #size(): number {
    return this.exports.memory.buffer.byteLength;
  }

  /** A number that is no good for anything in particular. */
  #number(): number {
    const { random } = this;
    switch (random.below(5)) {
      case 0:
        return random.pick(WORST_NUMBERS);
      case 1:
        return random.word() | 0;
      case 2:
        return this.#size() + random.pick([-64, -20, -16, -8, -4, -1, 0, 1, 16]);
      default:
        return random.below(this.#size());
    }
  }

  /** An address that the host knows from somewhere: a handle, a block, what one was, a word of a context. */
  #knownAddress(): number {
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
        return context ? this.#view().getUint32(context + random.pick(ADDRESS_WORDS), true) : 0;
      default:
        return random.pick(Object.values(this.#supplies).flat()).at;
    }
  }

  /** Mostly one of `right`; else something else that is an address, or any number. */
  #oneOf(right: Iterable<number>): number {
    const { random } = this;
    const list = [...right];
    if (list.length && !random.onceIn(4)) return random.pick(list);
    const address = random.onceIn(3) ? this.#number() : this.#knownAddress();
    return (random.onceIn(6) ? address + random.pick([1, 4, 8, 16, -16, -1]) : address) >>> 0;
  }

  #table = () => this.#oneOf(this.tables);
  #context = () => this.#oneOf(this.contexts.keys());
  #tracker = () => this.#oneOf(this.trackers);

  /** Bytes that the core reads: mostly one of `right`, else with another length, elsewhere, or anything. */
  #bytes(right: readonly Bytes[]): [number, number] {
    const { random } = this;
    const { at, length } = random.pick(right);
    if (!random.onceIn(4)) return [at, length];
    switch (random.below(4)) {
      case 0:
        return [at, random.pick([0, length - 1, length + 1, length + 16, HUGE, -1, 0x7fffffff])];
      case 1:
        return [at + random.pick([1, 4, 8, 16]), length];
      case 2:
        return [this.#knownAddress(), random.onceIn(2) ? length : random.below(5000)];
      default:
        return [this.#number(), this.#number()];
    }
  }

  /** A place for `size` bytes that the core writes to: a block of the host, the same that was used before too, or none at all. */
  #room(size: number): number {
    const { random } = this;
    if (random.onceIn(6)) return this.#size() - random.below(Math.min(size, 64) || 1) + (random.onceIn(2) ? 0 : HUGE);
    const fits = [...this.blocks].filter(([at, have]) => have >= size && size > 0 && !this.#holds(at));
    return fits.length ? random.pick(fits)[0] : -1;
  }

  /** True for a block that is more than room: what the host writes over such a thing is its own fault. */
  #holds(at: number): boolean {
    return this.trackers.has(at) || this.regexes.has(at) || this.peerSetImages.has(at);
  }

  /** Writes a request to the input of a context, if it is one. Returns the lengths of host and target. */
  #request(context: number): [number, number] {
    const { random } = this;
    const host = random.pick(this.supplies.hosts);
    const target = random.pick(this.supplies.targets);
    if (this.contexts.has(context) && !random.onceIn(8)) {
      const input = this.#view().getUint32(context + 8, true);
      const capacity = this.#view().getUint32(context + 12, true);
      const text = Buffer.from(host.padEnd((host.length + 3) & ~3, "\0") + target, "latin1");
      new Uint8Array(this.exports.memory.buffer).set(text.subarray(0, capacity), input);
    }
    return random.onceIn(6) ? [this.#number(), this.#number()] : [host.length, target.length];
  }

  /** Fills in what is asked for: values of the host, of the core, beyond the memory, or nothing. */
  #answer(context: number): void {
    const { random } = this;
    if (!this.contexts.has(context) || random.onceIn(5)) return;
    const view = this.#view();
    const count = view.getUint32(context + 24, true);
    for (let i = 0; i < count && i < 160; i++) {
      if (random.onceIn(3)) continue;
      const need = view.getUint32(context + 28, true) + i * 16;
      const [at, length] = this.#bytes(this.#supplies.hosts);
      view.setUint32(need + 4, at, true);
      view.setInt32(need + 8, length, true);
    }
  }

  /** Tokens that were given out, or any. */
  #token(): number {
    const { random } = this;
    const context = random.pick([...this.contexts.keys(), 0]);
    if (context && !random.onceIn(4)) {
      const view = this.#view();
      const set = view.getUint32(context + 52, true);
      if (set) {
        const size = (view.getUint32(set + 16, true) + 3) & ~3;
        return view.getUint32(set + size + 4 * random.below(Math.max(1, view.getUint32(set + 24, true))), true);
      }
    }
    return random.onceIn(2) ? random.below(64) : this.#number();
  }

  #given(at: number, size: number): void {
    if (at) this.blocks.set(at, size);
  }

  #gone(at: number): void {
    this.past.push(at);
    if (this.past.length > 200) this.past.shift();
    this.blocks.delete(at);
    this.trackers.delete(at);
    this.regexes.delete(at);
    this.peerSetImages.delete(at);
  }

  /** The calls that there are, by export. Each answers with what is wrong with the answer of the core, if anything. */
  readonly #acts: Record<string, () => string | undefined> = {
    alloc: () => {
      const size = this.random.onceIn(20) ? this.#number() : this.random.below(3000);
      // What would take all of the memory there is: not here.
      if (size >>> 0 > HUGE && size >>> 0 <= 1 << 30) return undefined;
      const at = this.exports.alloc(size);
      if (at && size >>> 0 > 1 << 30) return `alloc of ${size >>> 0} bytes gave ${at}`;
      this.#given(at, size);
      return undefined;
    },
    free: () => {
      const many = this.blocks.size > 60;
      const at = many ? this.random.pick([...this.blocks.keys()]) : this.#oneOf(this.blocks.keys());
      const supplied = Object.values(this.#supplies).some((list) => list.some((bytes) => bytes.at === at));
      if (supplied) return undefined;
      const known = this.blocks.has(at);
      const status = this.exports.free(at);
      if (status !== (known ? OK : E_POINTER)) return `free of ${known ? "a block" : "no block"} answered ${status}`;
      if (known) this.#gone(at);
      return undefined;
    },
    memory_used: () => (this.exports.memory_used() > this.#size() ? "more is used than there is" : undefined),
    table_new: () => {
      if (this.tables.size < 5) this.tables.add(this.exports.table_new());
      return undefined;
    },
    table_free: () => {
      const table = this.random.onceIn(4) ? this.#table() : this.#number();
      return this.#ends("table", table, this.tables.has(table), this.exports.table_free(table), () => {
        this.tables.delete(table);
        for (const [context, owner] of [...this.contexts]) {
          if (owner !== table) continue;
          this.contexts.delete(context);
          this.past.push(context);
        }
      });
    },
    context_new: () => {
      const table = this.#table();
      const size = () => (this.random.onceIn(8) ? this.#number() : this.random.pick([0, 1, 64, 1000, 20_000]));
      const [input, output] = [size(), size()];
      const fits = input >>> 0 <= HUGE && output >>> 0 <= HUGE;
      if (this.contexts.size > 8 && fits) return undefined;
      const context = this.exports.context_new(table, input, output);
      if ((context !== 0) !== (this.tables.has(table) && fits)) return `context_new answered ${context}`;
      if (context) this.contexts.set(context, table);
      return undefined;
    },
    context_free: () => {
      const context = this.random.onceIn(3) ? this.#context() : this.#number();
      return this.#ends("context", context, this.contexts.has(context), this.exports.context_free(context), () =>
        this.contexts.delete(context),
      );
    },
    context_trace: () => {
      const context = this.#context();
      return this.#judged("context", context, this.exports.context_trace(context, this.random.below(3)), [OK]);
    },
    shard_validate: () =>
      this.#status(this.exports.shard_validate(...this.#bytes(this.#supplies.shards), this.#flag())),
    shard_load: () => {
      const table = this.#table();
      const status = this.exports.shard_load(table, ...this.#bytes(this.#supplies.shards), this.#flag());
      return this.tables.has(table) || status === E_POINTER ? this.#status(status) : `a shard was loaded: ${status}`;
    },
    shard_remove: () => {
      const kind = this.random.onceIn(8) ? this.#number() : this.random.below(6);
      return this.#status(this.exports.shard_remove(this.#table(), kind, ...this.#bytes(this.#supplies.hosts)));
    },
    peers_load: () => this.#status(this.exports.peers_load(this.#table(), ...this.#bytes(this.#supplies.peerSets))),
    peers_remove: () => this.#status(this.exports.peers_remove(this.#table(), ...this.#bytes(this.#supplies.keys))),
    peers_find: () => {
      const image = this.exports.peers_find(this.#table(), ...this.#bytes(this.#supplies.keys));
      if (image) this.past.push(image);
      return undefined;
    },
    route: () => {
      const context = this.#context();
      const request = this.#request(context);
      const status = this.exports.route(context, ...request, this.random.below(2), this.random.word());
      return this.#judged("context", context, status, [OK, 1, E_POINTER]);
    },
    resume: () => {
      const context = this.#context();
      this.#answer(context);
      return this.#judged("context", context, this.exports.resume(context), [OK, 1, E_POINTER, -11]);
    },
    release_decision: () => {
      const context = this.#context();
      return this.#judged("context", context, this.exports.release_decision(context), [OK]);
    },
    render_setting: () => {
      const context = this.#context();
      const index = this.random.onceIn(4) ? this.#number() : this.random.below(8);
      const length = this.exports.render_setting(context, index);
      return length >= 0
        ? this.#judged("context", context, OK, [OK])
        : this.#judged("context", context, length, [-8, -11]);
    },
    peer_pick: () => {
      const context = this.#context();
      const [tried, count] = this.random.onceIn(5)
        ? [this.#number(), this.#number()]
        : [this.#room(64), this.random.below(16)];
      // A long list of tokens is compared with each peer: that takes its time, and is no fault.
      if (count >>> 0 > 5000 && count >>> 0 < 1 << 22) return undefined;
      const key = this.#bytes(this.#supplies.keys);
      const status = this.exports.peer_pick(
        context,
        ...key,
        this.#flag(),
        this.#number(),
        tried,
        count,
        this.random.word(),
      );
      return this.#judged("context", context, status, [OK, 2, E_POINTER, -11]);
    },
    peer_done: () => {
      const context = this.#context();
      return this.#judged("context", context, this.exports.peer_done(context, this.#token(), this.#flag()), [OK]);
    },
    peer_state: () => {
      const state = this.random.onceIn(8) ? this.#number() : this.random.below(5);
      return this.#status(this.exports.peer_state(this.#table(), this.#token(), state, this.random.word()));
    },
    peer_status: () => {
      const context = this.#context();
      const status = this.exports.peer_status(context, this.#token());
      return status >= 0 ? this.#judged("context", context, OK, [OK]) : this.#judged("context", context, status, [-11]);
    },
    ring_crc32: () => {
      this.exports.ring_crc32(this.random.word(), ...this.#bytes(this.#supplies.hosts));
      return undefined;
    },
    peer_set_compile: () => {
      const old = this.random.onceIn(2) ? 0 : this.#oneOf(this.peerSetImages);
      const result = this.#room(8);
      const status = this.exports.peer_set_compile(...this.#bytes(this.#supplies.sources), old, result);
      if (status === OK) {
        const image = this.#view().getUint32(result, true);
        this.#given(image, this.#view().getUint32(result + 4, true));
        this.peerSetImages.add(image);
      }
      return this.#status(status);
    },
    peer_set_validate: () => this.#status(this.exports.peer_set_validate(...this.#bytes(this.#supplies.peerSets))),
    peer_set_lookup: () => this.#found(this.exports.peer_set_lookup(this.#peerSet(), this.random.word())),
    peer_set_lookup_key: () =>
      this.#found(this.exports.peer_set_lookup_key(this.#peerSet(), ...this.#bytes(this.#supplies.keys))),
    peer_set_lookup_many: () => {
      const count = this.random.onceIn(4) ? this.#number() : this.random.below(40);
      const hashes = this.#room(Math.min(count >>> 0, HUGE) * 4);
      const out = this.random.onceIn(2) ? hashes : this.#room(Math.min(count >>> 0, HUGE) * 4);
      return this.#found(this.exports.peer_set_lookup_many(this.#peerSet(), hashes, count, out));
    },
    peer_set_position: () => this.#found(this.exports.peer_set_position(this.#peerSet(), this.random.word())),
    peer_set_owner: () => this.#found(this.exports.peer_set_owner(this.#peerSet(), this.#number())),
    peer_set_walk: () => {
      const position = this.random.onceIn(2) ? this.random.below(200) : this.#number();
      return this.#found(this.exports.peer_set_walk(this.#peerSet(), position, ...this.#bytes(this.#supplies.hosts)));
    },
    regex_compile: () => {
      const result = this.#room(16);
      const status = this.exports.regex_compile(...this.#bytes(this.#supplies.patterns), this.random.below(8), result);
      if (status === OK) {
        const image = this.#view().getUint32(result, true);
        const length = this.#view().getUint32(result + 4, true);
        this.#given(image, length);
        this.regexes.set(image, length);
      }
      return this.#status(status);
    },
    regex_validate: () => {
      const [image, length] = this.#regex();
      const answer = this.exports.regex_validate(image, length);
      return answer === 0 || answer === 1 ? undefined : `regex_validate answered ${answer}`;
    },
    regex_scratch_size: () => {
      this.exports.regex_scratch_size(...this.#regex());
      return undefined;
    },
    regex_match: () => {
      const [image, length] = this.#regex();
      // Scratch and groups are written to: they lie in blocks of their own, or are no memory at all.
      const size = this.regexes.get(image) === length ? this.exports.regex_scratch_size(image, length) : 64;
      const [scratch, slots] = [this.#room(Math.max(size, 1)), this.random.onceIn(2) ? 0 : this.#room(80)];
      const answer = this.exports.regex_match(image, length, ...this.#bytes(this.#supplies.hosts), scratch, slots);
      return answer === 0 || answer === 1 || answer === E_POINTER ? undefined : `regex_match answered ${answer}`;
    },
    regex_run: () => {
      const [image, length] = this.#regex();
      const known = this.regexes.has(image) && length >= 20;
      const first = known && this.random.onceIn(2) ? this.#view().getUint16(image + 18, true) : this.#number();
      this.exports.regex_run(image, length, first, ...this.#bytes(this.#supplies.hosts), this.#flag());
      return undefined;
    },
    health_new: () => {
      const slots = this.random.onceIn(6) ? this.#number() : this.random.below(200);
      const old = this.random.onceIn(2) ? 0 : this.#tracker();
      const fits = slots >>> 0 <= 1 << 22;
      if (fits && slots > 100_000) return undefined;
      if (this.trackers.size > 6 && !old) return undefined;
      const tracker = this.exports.health_new(slots, old);
      if ((tracker !== 0) !== (fits && (!old || this.trackers.has(old)))) return `health_new answered ${tracker}`;
      if (!tracker) return undefined;
      if (old) this.#gone(old);
      this.#given(tracker, 16 + slots * 16);
      this.trackers.add(tracker);
      return undefined;
    },
    health_set: () => {
      const rule = this.random.onceIn(4) ? this.#number() : this.random.pick([0, 0x10001, 0x20003]);
      const slot = this.random.onceIn(4) ? this.#number() : this.random.below(100);
      const state = this.random.below(40);
      const tracker = this.#tracker();
      const status = this.exports.health_set(tracker, slot, rule, this.random.below(1000), state, this.random.word());
      return this.#judged("tracker", tracker, status, [OK, -7, E_POINTER]);
    },
    health_state: () => {
      const tracker = this.#tracker();
      const status = this.exports.health_state(
        tracker,
        this.random.onceIn(4) ? this.#number() : this.random.below(100),
      );
      return this.#judged("tracker", tracker, Math.min(status, OK), [OK, -11, E_POINTER]);
    },
    health_report: () => {
      const count = this.random.onceIn(4) ? this.#number() : this.random.below(50);
      const results = this.random.onceIn(4) ? this.#number() : this.#room(Math.min(count >>> 0, HUGE) * 4);
      const out = this.#room(Math.min(count >>> 0, HUGE) * 4);
      const tracker = this.#tracker();
      const status = this.exports.health_report(tracker, results, count, this.random.word(), out);
      return this.#judged("tracker", tracker, Math.min(status, OK), [OK, E_POINTER]);
    },
  };

  #flag(): number {
    return this.random.onceIn(8) ? this.#number() : this.random.below(2);
  }

  #peerSet(): number {
    return this.#oneOf([...this.peerSetImages, ...this.#supplies.peerSets.map(({ at }) => at)]);
  }

  /** An image of a regex and its length, or what is none: of that the length does not fit. */
  #regex(): [number, number] {
    const [image, length] = this.random.pick([...this.regexes, [0, 20]] as [number, number][]);
    if (!this.random.onceIn(4)) return [image, length];
    return this.random.onceIn(2) ? [image, length + this.random.pick([-1, 1, 4])] : [this.#number(), HUGE + 1];
  }

  #status(status: number): string | undefined {
    return status <= OK && status >= -12 ? undefined : `status ${status}`;
  }

  /** A number of a peer or a position, or a status. */
  #found(answer: number): string | undefined {
    return answer >= -12 ? undefined : `answer ${answer}`;
  }

  /** Of a call with a handle: POINTER where it is none, else one of `allowed`. */
  #judged(kind: "context" | "tracker", handle: number, status: number, allowed: number[]): string | undefined {
    const known = kind === "context" ? this.contexts.has(handle) : this.trackers.has(handle);
    if (known ? allowed.includes(status) : status === E_POINTER) return undefined;
    return `status ${status} for ${known ? "a" : "no"} ${kind}`;
  }

  #ends(kind: string, handle: number, known: boolean, status: number, ended: () => void): string | undefined {
    if (status !== (known ? OK : E_POINTER)) return `status ${status} at the end of ${known ? "a" : "no"} ${kind}`;
    if (known) {
      ended();
      this.past.push(handle);
    }
    return undefined;
  }

  /** The exports that are called. */
  get names(): string[] {
    return Object.keys(this.#acts);
  }

  /** One call of any export. Answers with what is wrong, if anything; throws where the core traps. */
  step(): string | undefined {
    const name = this.random.pick(this.names);
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    if (process.env.TRACE && this.steps++ > Number(process.env.TRACE))
      console.log(name, [...this.tables], [...this.contexts], [...this.blocks]);
    const problem = this.#acts[name]();
    return problem && `${name}: ${problem}`;
  }
}
