import { CoreError, type RegexProblem } from "./errors.js";
import { regexReason } from "./regex-reasons.js";

/** The exports of the core that the regex engine consists of. Pointers and sizes are numbers of bytes. */
export interface RegexExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  alloc(size: number): number;
  free(pointer: number): unknown;
  /** Writes four words at `result`: address and length of the image; position and reason where the pattern is refused. */
  regex_compile(pattern: number, length: number, flags: number, result: number): number;
  regex_match(
    image: number,
    imageLength: number,
    subject: number,
    length: number,
    scratch: number,
    slots: number,
  ): number;
  regex_run(image: number, imageLength: number, state: number, part: number, length: number, last: number): number;
  regex_validate(image: number, length: number): number;
  regex_scratch_size(image: number, length: number): number;
}

export interface RegexOptions {
  /** ASCII letters of both cases are the same. */
  ignoreCase?: boolean;
  /** A match must begin at the start of the text; it need not reach the end. */
  anchored?: boolean;
}

const REGEX_REFUSED = -1;
const RESULT_BYTES = 16;
const IGNORE_CASE = 2;
const ANCHORED = 4;
/** Places in an image, as assembly/regex/image.ts has them. */
const IMAGE_GROUPS = 4;
const IMAGE_FLAGS = 10;
const IMAGE_FIRST_STATE = 18;
const FLAG_DFA = 2;
const FLAG_BACKWARDS = 4;
const GROUPS_TRACKED = 10;
const SLOT_BYTES = 2 * GROUPS_TRACKED * 4;
const SLOT_UNSET = 0xffffffff;
const NO_SLOTS = 0;
/** Answers of regex_run; above them, the rest of the text decides. */
const ACCEPT = 0;
const DEAD = 1;
/** So many bytes of a text are tried first: most texts differ from a pattern at once. */
const PROBE_SIZE = 8;
/** From here on encodeInto, which takes its time to begin, is faster than a loop. */
const ENCODE_SIZE = 48;
/** Whether four bytes can be stored as one word. */
const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const FIRST_SUBJECT_SIZE = 4096;

/** Memory that all programs of an engine share, for one call at a time. */
class SharedBuffers {
  subject: number;
  subjectSize: number;
  scratch: number;
  scratchSize = 0;
  readonly slots: number;
  readonly #encoder = new TextEncoder();
  #bytes: Uint8Array;
  #words: Int32Array;

  constructor(readonly core: RegexExports) {
    this.#bytes = new Uint8Array(core.memory.buffer);
    this.#words = new Int32Array(core.memory.buffer);
    this.subjectSize = FIRST_SUBJECT_SIZE;
    this.subject = this.take(FIRST_SUBJECT_SIZE);
    this.scratch = 0;
    this.slots = this.take(SLOT_BYTES);
  }

  /** The instance's memory; a view of it ends whenever the memory grows. */
  bytes(): Uint8Array {
    if (this.#bytes.length === 0) {
      this.#bytes = new Uint8Array(this.core.memory.buffer);
      this.#words = new Int32Array(this.core.memory.buffer);
    }
    return this.#bytes;
  }

  take(size: number): number {
    const pointer = this.core.alloc(size);
    if (pointer === 0) throw new CoreError("CORE_MEMORY", `no room for ${size} bytes of regex memory`);
    return pointer;
  }

  /** Makes the scratch at least so large. */
  growScratch(size: number): void {
    if (size <= this.scratchSize) return;
    if (this.scratch !== 0) this.core.free(this.scratch);
    this.scratchSize = 0;
    this.scratch = 0;
    this.scratch = this.take(size);
    this.scratchSize = size;
  }

  /** Copies the characters `from` to `to` of a byte string. Returns where the first of them is. */
  write(text: string, from: number, to: number): number {
    if (to - from >= ENCODE_SIZE) {
      if (text.length > this.subjectSize) this.#growSubject(text.length);
      if (this.#encode(text)) return this.subject + from;
    }
    const bytes = this.bytes();
    const base = this.subject;
    let at = base;
    let i = from;
    if (LITTLE_ENDIAN) {
      const words = this.#words;
      for (; i + 4 <= to; i += 4, at += 4) {
        words[at >> 2] =
          text.charCodeAt(i) |
          (text.charCodeAt(i + 1) << 8) |
          (text.charCodeAt(i + 2) << 16) |
          (text.charCodeAt(i + 3) << 24);
      }
    }
    for (; i < to; i++, at++) bytes[at] = text.charCodeAt(i);
    return base;
  }

  /** Copies all of a text. False, and bytes of no use, if it isn't pure ASCII. */
  #encode(text: string): boolean {
    const target = this.bytes().subarray(this.subject, this.subject + text.length);
    const { read, written } = this.#encoder.encodeInto(text, target);
    return read === text.length && written === text.length;
  }

  #growSubject(length: number): void {
    const size = 2 * length;
    const pointer = this.take(size);
    this.core.free(this.subject);
    this.subject = pointer;
    this.subjectSize = size;
  }
}

/** As RegexEngine.compile, with the flags of the numeric interface. The image is a block of the core, which the caller frees. */
function compilePattern(
  core: RegexExports,
  pattern: string,
  flags: number,
): { image: number; length: number } | RegexProblem {
  const text = new TextEncoder().encode(pattern);
  const source = core.alloc(text.length + RESULT_BYTES);
  if (source === 0) throw new CoreError("CORE_MEMORY", `no room for a pattern of ${text.length} bytes`);
  const result = source + text.length;
  try {
    new Uint8Array(core.memory.buffer).set(text, source);
    const status = core.regex_compile(source, text.length, flags, result);
    const words = new DataView(core.memory.buffer, result, RESULT_BYTES);
    const [image, length, position, reason] = [0, 4, 8, 12].map((at) => words.getUint32(at, true));
    if (status === REGEX_REFUSED) return { position, message: regexReason(reason) };
    if (status < 0) throw new CoreError("CORE_MEMORY", `regex_compile answered ${status}`);
    return { image, length };
  } finally {
    core.free(source);
  }
}

/**
 * Compiles a pattern, as text, for who stores its image: a copy of the bytes, and the bytes of scratch that running it
 * takes. `flags` are those of the numeric interface. Throws CoreError CORE_MEMORY.
 */
export function regexImage(
  core: RegexExports,
  pattern: string,
  flags: number,
): { image: Uint8Array; scratch: number } | RegexProblem {
  const compiled = compilePattern(core, pattern, flags);
  if ("position" in compiled) return compiled;
  const { image, length } = compiled;
  const scratch = core.regex_scratch_size(image, length);
  const bytes = new Uint8Array(core.memory.buffer, image, length).slice();
  core.free(image);
  return { image: bytes, scratch };
}

/** Compiles patterns into one instance of the core. Its programs share buffers: they are not to be used by two threads. */
export class RegexEngine {
  readonly #buffers: SharedBuffers;

  constructor(readonly core: RegexExports) {
    this.#buffers = new SharedBuffers(core);
  }

  /**
   * Compiles a pattern: RE2's syntax, as text (matched as UTF-8). Returns a problem, with a byte offset into the
   * pattern's UTF-8 form, if it is not taken. Throws CoreError if there is no memory.
   */
  compile(pattern: string, options: RegexOptions = {}): RegexProgram | RegexProblem {
    const flags = (options.ignoreCase ? IGNORE_CASE : 0) | (options.anchored ? ANCHORED : 0);
    const compiled = compilePattern(this.core, pattern, flags);
    return "position" in compiled ? compiled : new RegexProgram(this.#buffers, compiled.image, compiled.length);
  }

  /** Loads a compiled pattern. Throws CoreError if the bytes are not one. */
  load(image: Uint8Array): RegexProgram {
    const pointer = this.#buffers.take(image.length);
    this.#buffers.bytes().set(image, pointer);
    if (this.core.regex_validate(pointer, image.length) !== 1) {
      this.core.free(pointer);
      throw new CoreError("CORE_IMAGE_CORRUPT", "not an image of a regular expression");
    }
    return new RegexProgram(this.#buffers, pointer, image.length);
  }
}

/** A compiled pattern in the memory of the core. Made by `RegexEngine`. */
export class RegexProgram {
  /** Capturing groups, the whole match not counted. */
  readonly groups: number;
  readonly #buffers: SharedBuffers;
  readonly #image: number;
  readonly #size: number;
  readonly #hasDfa: boolean;
  readonly #backwards: boolean;
  readonly #firstState: number;

  constructor(buffers: SharedBuffers, image: number, size: number) {
    this.#buffers = buffers;
    this.#image = image;
    this.#size = size;
    const header = new DataView(buffers.core.memory.buffer, image);
    const flags = header.getUint16(IMAGE_FLAGS, true);
    this.groups = header.getUint16(IMAGE_GROUPS, true);
    this.#hasDfa = (flags & FLAG_DFA) !== 0;
    this.#backwards = (flags & FLAG_BACKWARDS) !== 0;
    this.#firstState = header.getUint16(IMAGE_FIRST_STATE, true);
    buffers.growScratch(buffers.core.regex_scratch_size(image, size));
  }

  /** The image: position independent, the same for the same pattern and options. */
  bytes(): Uint8Array {
    return this.#buffers.bytes().slice(this.#image, this.#image + this.#size);
  }

  /** Whether a byte string (one character per byte, none above 0xFF) holds a match. */
  test(subject: string): boolean {
    const buffers = this.#buffers;
    const core = buffers.core;
    const length = subject.length;
    if (!this.#hasDfa || length <= PROBE_SIZE) {
      const text = buffers.write(subject, 0, length);
      return this.#answer(core.regex_match(this.#image, this.#size, text, length, buffers.scratch, NO_SLOTS));
    }
    const backwards = this.#backwards;
    const rest = length - PROBE_SIZE;
    const probe = buffers.write(subject, backwards ? rest : 0, backwards ? length : PROBE_SIZE);
    const state = core.regex_run(this.#image, this.#size, this.#firstState, probe, PROBE_SIZE, 0);
    if (state <= DEAD && state >= ACCEPT) return state === ACCEPT;
    const text = buffers.write(subject, backwards ? 0 : PROBE_SIZE, backwards ? rest : length);
    return core.regex_run(this.#image, this.#size, state, text, rest, 1) === ACCEPT;
  }

  /**
   * Groups 0 to 9 of the preferred match in a byte string, group 0 being the whole match; undefined for a group that took
   * no part. Undefined if there is no match.
   */
  captures(subject: string): (string | undefined)[] | undefined {
    const buffers = this.#buffers;
    const text = buffers.write(subject, 0, subject.length);
    const { core, scratch, slots } = buffers;
    const answer = core.regex_match(this.#image, this.#size, text, subject.length, scratch, slots);
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
    this.#buffers.core.free(this.#image);
  }

  #answer(answer: number): boolean {
    if (answer < 0) throw new CoreError("CORE_POINTER", `the regex engine answered ${answer}`);
    return answer === 1;
  }
}
