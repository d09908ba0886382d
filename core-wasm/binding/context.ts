import type { Core } from "./core.js";
import { coreError } from "./core.js";
import type { RequestInput } from "./decision.js";

/** Offsets of the public words of a context, in words. The source: core-wasm/assembly/table/context.ts, ABI.md. */
const INPUT = 8 >> 2;
const NEED_COUNT = 24 >> 2;
const NEEDS = 28 >> 2;
export const ACTION = 32 >> 2;
export const STATUS = 36 >> 2;
export const ROUTE = 40 >> 2;
export const SHARD = 44 >> 2;
export const UPSTREAM = 48 >> 2;
export const PEERS = 52 >> 2;
export const PEER = 56 >> 2;
export const TEXT = 60 >> 2;
export const TEXT_LENGTH = 64 >> 2;
export const TYPE = 68 >> 2;
export const TYPE_LENGTH = 72 >> 2;
export const SETTINGS = 76 >> 2;
export const SETTINGS_LENGTH = 80 >> 2;
export const ORIGIN = 84 >> 2;
export const RENDERED = 88 >> 2;
export const TRACE_COUNT = 92 >> 2;
export const TRACE = 96 >> 2;
export const POSITION = 100 >> 2;
export const GUARD = 204 >> 2;
const NOW = 544 >> 2;
export const MARKS = 548 >> 2;
export const HASH = 556 >> 2;

export const NEED = 1;
const HTTPS = 1;
/** Ids below this are facts of the connection: address, port, method, protocol. */
const FACTS = 4;
const NEED_WORDS = 4;

/** Largest host and target together; what is longer is answered with 414. */
export const INPUT_SIZE = 1 << 16;
/** Room for a target that grows threefold by escaping, and for bodies. */
const OUTPUT_SIZE = 1 << 18;
const FIRST_VALUES = 1 << 14;
/** From this length on a call of TextEncoder is faster than a loop over the characters. */
const LONG_TEXT = 96;
const UTF8 = new TextEncoder();

/** Where the decisions of one thread are made: a context of the core with its buffers, and how requests get into it. */
export class Context {
  readonly pointer: number;
  words: Int32Array;
  bytes: Uint8Array;
  readonly #core: Core;
  readonly #base: number;
  readonly #input: number;
  readonly #route: Core["exports"]["route"];
  /** Where values are put: they must stay until the next request, for whatever is still to be written from them. */
  #values: number;
  #valuesSize = FIRST_VALUES;
  #valuesUsed = 0;
  /** Room for values that became too small in the course of the request at hand. */
  readonly #outgrown: number[] = [];
  /** Header names by their id; ids are addresses, which stay the same until the table changes. */
  readonly #names = new Map<number, string>();

  constructor(core: Core, table: number) {
    this.#core = core;
    this.#route = core.exports.route;
    this.#values = core.exports.alloc(FIRST_VALUES);
    this.pointer = core.exports.context_new(table, INPUT_SIZE, OUTPUT_SIZE);
    if (!this.pointer || !this.#values) throw coreError(-9, "making a context");
    this.#base = this.pointer >> 2;
    this.words = new Int32Array(core.exports.memory.buffer);
    this.bytes = new Uint8Array(core.exports.memory.buffer);
    this.#input = this.words[this.#base + INPUT];
  }

  /** To be called after every change of the table: ids of headers are addresses, and memory may have moved. */
  refresh(): void {
    if (this.#names.size > 0) this.#names.clear();
    this.renew();
  }

  /** To be called after any other call that may have made the memory grow, before words and bytes are read. */
  renew(): void {
    if (this.bytes.length !== 0) return;
    this.words = new Int32Array(this.#core.exports.memory.buffer);
    this.bytes = new Uint8Array(this.#core.exports.memory.buffer);
  }

  /** Tells the core what time it is, in ms. To be called before a call that picks a peer or ends a try. */
  setTime(now: number): void {
    this.renew();
    this.words[this.#base + NOW] = now;
  }

  /** A public word of the context, unsigned. */
  word(index: number): number {
    return this.words[this.#base + index] >>> 0;
  }

  /**
   * Decides a request of which only host, target and scheme are looked at. Answers the status of the core: 0 decided, NEED,
   * or -1 for a host and target that are too long. Both are byte strings.
   */
  route(host: string, target: string, https: boolean, random: number): number {
    const hostLength = host.length;
    const targetLength = target.length;
    if (hostLength + targetLength > INPUT_SIZE - 4) return -1;
    this.#valuesUsed = 0;
    if (this.#outgrown.length > 0) this.#freeOutgrown();
    // Whoever else uses the core may have made its memory grow, which ends every view of it.
    if (this.bytes.length === 0) this.renew();
    const at = (this.#input + hostLength + 3) & ~3;
    this.#copy(host, this.#input);
    this.#copy(target, at);
    return this.#route(this.pointer, hostLength, targetLength, https ? HTTPS : 0, random | 0);
  }

  /** Copies a byte string to a multiple of 4. Four characters a store: the stores are what a loop by bytes waits for. */
  #copy(text: string, at: number): void {
    const { words, bytes } = this;
    const { length } = text;
    if (length >= LONG_TEXT && this.#copyLong(text, at)) return;
    let i = 0;
    for (; i + 4 <= length; i += 4) {
      words[(at + i) >> 2] =
        text.charCodeAt(i) |
        (text.charCodeAt(i + 1) << 8) |
        (text.charCodeAt(i + 2) << 16) |
        (text.charCodeAt(i + 3) << 24);
    }
    for (; i < length; i++) bytes[at + i] = text.charCodeAt(i);
  }

  /**
   * Has the engine copy a byte string. False if it could not: it writes two bytes for one above 127, and so runs out of
   * room before the end.
   */
  #copyLong(text: string, at: number): boolean {
    const { length } = text;
    return UTF8.encodeInto(text, this.bytes.subarray(at, at + length)).read === length;
  }

  /** Decides a request, filling in what the core asks for. Answers 0, or -1 for a request that is too long. */
  decide(request: RequestInput, random: number): number {
    let status = this.route(request.host, request.target, request.scheme === "https", random);
    while (status === NEED) {
      this.#fillIn(request);
      status = this.#core.exports.resume(this.pointer);
    }
    if (status < -1) throw coreError(status, "deciding a request");
    return status;
  }

  #fillIn(request: RequestInput): void {
    const count = this.word(NEED_COUNT);
    const needs = this.word(NEEDS) >> 2;
    for (let i = 0; i < count; i++) {
      const need = needs + i * NEED_WORDS;
      const value = this.#value(this.words[need], request);
      if (value === undefined) continue;
      if (this.#valuesUsed + value.length > this.#valuesSize) this.#growValues(value.length);
      const start = this.#values + this.#valuesUsed;
      this.#copy(value, start);
      this.words[need + 1] = start;
      this.words[need + 2] = value.length;
      this.#valuesUsed = (this.#valuesUsed + value.length + 3) & ~3;
    }
  }

  #value(id: number, request: RequestInput): string | undefined {
    switch (id) {
      case 0:
        return request.clientAddress;
      case 1:
        return String(request.clientPort);
      case 2:
        return request.method;
      case 3:
        return request.protocol;
      default:
        return request.header(this.#name(id >>> 0));
    }
  }

  #name(id: number): string {
    let name = this.#names.get(id);
    if (name === undefined) {
      const length = this.words[id >> 2];
      const text = new TextDecoder().decode(this.bytes.subarray(id + FACTS, id + FACTS + length));
      // As the name of a property it is interned, and looking a header up by it is fast from then on.
      name = Object.keys({ [text]: 0 })[0];
      this.#names.set(id, name);
    }
    return name;
  }

  /** Goes on in a larger block; values of the request that stand in the old one stay there. */
  #growValues(size: number): void {
    const grownSize = Math.max(this.#valuesSize, size) * 2;
    const grown = this.#core.exports.alloc(grownSize);
    if (!grown) throw coreError(-9, "copying header values");
    this.renew();
    this.#outgrown.push(this.#values);
    this.#values = grown;
    this.#valuesSize = grownSize;
    this.#valuesUsed = 0;
  }

  #freeOutgrown(): void {
    for (const block of this.#outgrown.splice(0)) this.#core.exports.free(block);
  }

  /** Bytes of memory as a byte string. */
  latin1(start: number, length: number): string {
    const bytes = this.bytes;
    let text = "";
    for (let at = start; at < start + length; at += 8192) {
      text += String.fromCharCode.apply(
        null,
        bytes.subarray(at, Math.min(at + 8192, start + length)) as unknown as number[],
      );
    }
    return text;
  }

  free(): void {
    this.#core.exports.context_free(this.pointer);
    this.#core.exports.free(this.#values);
    this.#freeOutgrown();
  }
}
