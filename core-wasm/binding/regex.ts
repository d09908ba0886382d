import { CoreError, type RegexProblem } from "./errors.js";

/** The exports of the core that the regex engine consists of. Pointers and sizes are numbers of bytes. */
export interface RegexExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  regex_compile(
    pattern: number,
    length: number,
    flags: number,
    out: number,
    capacity: number,
    work: number,
    workCapacity: number,
  ): number;
  regex_test(image: number, imageLength: number, subject: number, length: number, scratch: number): number;
  regex_captures(
    image: number,
    imageLength: number,
    subject: number,
    length: number,
    scratch: number,
    slots: number,
  ): number;
  regex_validate(image: number, length: number): number;
  regex_scratch_size(image: number, length: number): number;
  regex_test_scratch_size(image: number, length: number): number;
  regex_decide(image: number, imageLength: number, part: number, length: number): number;
  regex_reads_backwards(image: number, length: number): number;
  regex_groups(image: number, length: number): number;
  regex_work_size(): number;
  regex_max_size(): number;
}

/** Where the engine takes memory of the instance from. `allocate` returns a 4-byte aligned address, or 0 if there is none. */
export interface RegexMemory {
  allocate(size: number): number;
  release(pointer: number): void;
}

export interface RegexOptions {
  /** ASCII letters of both cases are the same. */
  ignoreCase?: boolean;
  /** A match must begin at the start of the text; it need not reach the end. */
  anchored?: boolean;
}

const REGEX_REFUSED = -1;
const IGNORE_CASE = 1;
const ANCHORED = 2;
const GROUPS_TRACKED = 10;
const SLOT_BYTES = 2 * GROUPS_TRACKED * 4;
const SLOT_UNSET = 0xffffffff;
const UNDECIDED = 2;
/** So many bytes of a text are tried first: most texts differ from a pattern at once. */
const PROBE_SIZE = 8;
/** From here on encodeInto, which takes its time to begin, is faster than a loop. */
const ENCODE_SIZE = 48;
const FIRST_SUBJECT_SIZE = 4096;

/** Why a pattern is refused, by the reason codes of core-wasm/assembly/regex/limits.ts. */
const REASONS: readonly string[] = [
  "",
  "the pattern is longer than 4096 bytes",
  "the pattern is not valid UTF-8",
  "this parenthesis is not closed",
  "this parenthesis closes nothing",
  "this character class is not closed",
  "the range of this character class ends before it begins",
  "there is no character class of this name",
  "a character outside ASCII can't be part of a character class: matching works on bytes",
  "there is no such escape",
  "the pattern ends with a backslash",
  "\\x takes two hexadecimal digits, or some in braces",
  "a code point above 0xFF can't be written as an escape: matching works on bytes",
  "backreferences are not supported: matching would not be linear",
  "Unicode classes (\\p) are not supported: matching works on bytes",
  "\\G, \\K, \\X and \\Z are not supported",
  "there is nothing to repeat",
  "a repetition can't be repeated without a group",
  "possessive repetition is not supported",
  "the repetition's upper bound is below its lower bound",
  "a repetition count may not exceed 1000",
  "lookahead and lookbehind are not supported: matching would not be linear",
  "atomic groups are not supported",
  "conditional groups are not supported",
  "recursion is not supported",
  "there is no such group or flag syntax",
  "a group name consists of ASCII letters, digits and _ and ends with >",
  "this group name is already in use",
  "groups are nested deeper than 250",
  "the pattern is too large: written out, its repetitions take more than 4096 instructions",
];

/** Text of a reason code. */
export function regexReason(code: number): string {
  return REASONS[code] ?? `refused (${code})`;
}

/** Memory that all programs of an engine share, for one call at a time. */
class SharedBuffers {
  subject: number;
  subjectSize: number;
  scratch: number;
  scratchSize = 0;
  readonly slots: number;
  readonly #encoder = new TextEncoder();
  #bytes: Uint8Array;

  constructor(
    readonly core: RegexExports,
    readonly memory: RegexMemory,
  ) {
    this.#bytes = new Uint8Array(core.memory.buffer);
    this.subjectSize = FIRST_SUBJECT_SIZE;
    this.subject = this.take(FIRST_SUBJECT_SIZE);
    this.scratch = 0;
    this.slots = this.take(SLOT_BYTES);
  }

  /** The instance's memory; a view of it ends whenever the memory grows. */
  bytes(): Uint8Array {
    if (this.#bytes.length === 0) this.#bytes = new Uint8Array(this.core.memory.buffer);
    return this.#bytes;
  }

  take(size: number): number {
    const pointer = this.memory.allocate(size);
    if (pointer === 0) throw new CoreError("CORE_MEMORY", `no room for ${size} bytes of regex memory`);
    return pointer;
  }

  /** Makes the scratch at least so large. */
  growScratch(size: number): void {
    if (size <= this.scratchSize) return;
    if (this.scratch !== 0) this.memory.release(this.scratch);
    this.scratchSize = 0;
    this.scratch = 0;
    this.scratch = this.take(size);
    this.scratchSize = size;
  }

  /** Makes room for a text of this length at `subject`. */
  reserve(length: number): void {
    if (length > this.subjectSize) this.#growSubject(length);
  }

  /** Copies the characters `from` to `to` of a byte string to their places at `subject`. */
  write(text: string, from: number, to: number): void {
    const bytes = this.bytes();
    if (to - from >= ENCODE_SIZE) {
      if (this.#encode(text, bytes)) return;
      from = 0;
      to = text.length;
    }
    const base = this.subject;
    for (let i = from; i < to; i++) bytes[base + i] = text.charCodeAt(i);
  }

  /** Copies all of a text. False, and bytes of no use, if it isn't pure ASCII. */
  #encode(text: string, bytes: Uint8Array): boolean {
    const target = bytes.subarray(this.subject, this.subject + text.length);
    const { read, written } = this.#encoder.encodeInto(text, target);
    return read === text.length && written === text.length;
  }

  #growSubject(length: number): void {
    const size = 2 * length;
    const pointer = this.take(size);
    this.memory.release(this.subject);
    this.subject = pointer;
    this.subjectSize = size;
  }
}

/** Compiles patterns into one instance of the core. Its programs share buffers: they are not to be used by two threads. */
export class RegexEngine {
  readonly #buffers: SharedBuffers;

  constructor(
    readonly core: RegexExports,
    readonly memory: RegexMemory,
  ) {
    this.#buffers = new SharedBuffers(core, memory);
  }

  /**
   * Compiles a pattern: RE2's syntax, as text (matched as UTF-8). Returns a problem, with a byte offset into the
   * pattern's UTF-8 form, if it is not taken. Throws CoreError if there is no memory.
   */
  compile(pattern: string, options: RegexOptions = {}): RegexProgram | RegexProblem {
    const text = new TextEncoder().encode(pattern);
    const workSize = this.core.regex_work_size();
    const outSize = this.core.regex_max_size();
    // One region for the three: nothing to undo if there is no room for it.
    const work = this.#buffers.take(workSize + outSize + text.length);
    try {
      const out = work + workSize;
      const source = out + outSize;
      this.#buffers.bytes().set(text, source);
      const flags = (options.ignoreCase ? IGNORE_CASE : 0) | (options.anchored ? ANCHORED : 0);
      const size = this.core.regex_compile(source, text.length, flags, out, outSize, work, workSize);
      if (size === REGEX_REFUSED) return this.#problem(out);
      if (size < 0) throw new CoreError("CORE_POINTER", `regex_compile answered ${size}`);
      return this.load(this.#buffers.bytes().slice(out, out + size));
    } finally {
      this.memory.release(work);
    }
  }

  /** Loads a compiled pattern. Throws CoreError if the bytes are not one. */
  load(image: Uint8Array): RegexProgram {
    const pointer = this.#buffers.take(image.length);
    this.#buffers.bytes().set(image, pointer);
    if (this.core.regex_validate(pointer, image.length) !== 1) {
      this.memory.release(pointer);
      throw new CoreError("CORE_IMAGE_CORRUPT", "not an image of a regular expression");
    }
    return new RegexProgram(this.#buffers, pointer, image.length);
  }

  #problem(out: number): RegexProblem {
    const view = new DataView(this.core.memory.buffer);
    return { position: view.getUint32(out, true), message: regexReason(view.getUint32(out + 4, true)) };
  }
}

/** A compiled pattern in the memory of the core. Made by `RegexEngine`. */
export class RegexProgram {
  /** Capturing groups, the whole match not counted. */
  readonly groups: number;
  readonly #buffers: SharedBuffers;
  readonly #image: number;
  readonly #size: number;
  /** Whether a part of a text can be enough: only a DFA knows. */
  readonly #decides: boolean;
  readonly #backwards: boolean;

  constructor(buffers: SharedBuffers, image: number, size: number) {
    this.#buffers = buffers;
    this.#image = image;
    this.#size = size;
    this.groups = buffers.core.regex_groups(image, size);
    this.#decides = buffers.core.regex_test_scratch_size(image, size) === 0;
    this.#backwards = buffers.core.regex_reads_backwards(image, size) === 1;
    buffers.growScratch(buffers.core.regex_scratch_size(image, size));
  }

  /** The image: position independent, the same for the same pattern and options. */
  bytes(): Uint8Array {
    return this.#buffers.bytes().slice(this.#image, this.#image + this.#size);
  }

  /** Whether a byte string (one character per byte) holds a match. */
  test(subject: string): boolean {
    const buffers = this.#buffers;
    const core = buffers.core;
    const length = subject.length;
    let from = 0;
    let to = length;
    buffers.reserve(length);
    if (this.#decides && length > PROBE_SIZE) {
      const probe = this.#backwards ? length - PROBE_SIZE : 0;
      buffers.write(subject, probe, probe + PROBE_SIZE);
      const answer = core.regex_decide(this.#image, this.#size, buffers.subject + probe, PROBE_SIZE);
      if (answer !== UNDECIDED) return this.#answer(answer);
      if (this.#backwards) to = probe;
      else from = PROBE_SIZE;
    }
    buffers.write(subject, from, to);
    return this.#answer(core.regex_test(this.#image, this.#size, buffers.subject, length, buffers.scratch));
  }

  /**
   * Groups 0 to 9 of the preferred match in a byte string, group 0 being the whole match; undefined for a group that took
   * no part. Undefined if there is no match.
   */
  captures(subject: string): (string | undefined)[] | undefined {
    const buffers = this.#buffers;
    buffers.reserve(subject.length);
    buffers.write(subject, 0, subject.length);
    const { core, scratch, slots } = buffers;
    const answer = core.regex_captures(this.#image, this.#size, buffers.subject, subject.length, scratch, slots);
    if (!this.#answer(answer)) return undefined;
    const view = new DataView(core.memory.buffer, slots, SLOT_BYTES);
    const groups: (string | undefined)[] = [];
    for (let group = 0; group <= Math.min(this.groups, GROUPS_TRACKED - 1); group++) {
      const begin = view.getUint32(8 * group, true);
      groups.push(begin === SLOT_UNSET ? undefined : subject.slice(begin, view.getUint32(8 * group + 4, true)));
    }
    return groups;
  }

  /** Gives the memory of the image back. The program is not to be used afterwards. */
  release(): void {
    this.#buffers.memory.release(this.#image);
  }

  #answer(answer: number): boolean {
    if (answer < 0) throw new CoreError("CORE_POINTER", `the regex engine answered ${answer}`);
    return answer === 1;
  }
}
