/**
 * Exports of the regex engine. Pointers and lengths are checked against the memory; an image must be one that
 * `regex_compile` made or `regex_validate` has accepted. All numbers are unsigned but the answers.
 */
import { regexCompile } from "./compile";
import { regexDecide, regexReadsBackwards, regexTest } from "./dfa";
import { REGEX_WORK_SIZE } from "./dfa-work";
import { HEADER_BYTES, IMAGE_SIZE, REGEX_MAX_SIZE, regexGroups } from "./image";
import { MAX_SLOTS, REGEX_POINTER } from "./limits";
import { regexCaptures, regexScratchSize, regexTestScratchSize } from "./simulate";
import { regexValidate } from "./validate";

function outside(pointer: usize, length: u32): bool {
  return <u64>pointer + length > (<u64>memory.size()) << 16;
}

function isImage(image: usize, length: u32): bool {
  return length >= <u32>HEADER_BYTES && !outside(image, length) && load<u32>(image, IMAGE_SIZE) === length;
}

/** As `regexCompile`: the size of the image, REGEX_REFUSED (-1) or REGEX_NO_ROOM (-2); REGEX_POINTER (-3). */
export function regex_compile(
  pattern: usize,
  length: u32,
  flags: u32,
  out: usize,
  capacity: u32,
  work: usize,
  workCapacity: u32,
): i32 {
  if (outside(pattern, length) || outside(out, capacity) || outside(work, workCapacity)) return REGEX_POINTER;
  return regexCompile(pattern, length, flags, out, capacity, work, workCapacity);
}

/** 1 if the text holds a match, 0 if not, REGEX_POINTER. `scratch` needs `regex_test_scratch_size` bytes. */
export function regex_test(image: usize, imageLength: u32, subject: usize, length: u32, scratch: usize): i32 {
  if (!isImage(image, imageLength) || outside(subject, length)) return REGEX_POINTER;
  if (outside(scratch, regexTestScratchSize(image))) return REGEX_POINTER;
  return regexTest(image, subject, length, scratch) ? 1 : 0;
}

/** As `regex_test`; on a match 20 u32 at `slots` say where groups 0 to 9 lie. `scratch`: `regex_scratch_size` bytes. */
export function regex_captures(
  image: usize,
  imageLength: u32,
  subject: usize,
  length: u32,
  scratch: usize,
  slots: usize,
): i32 {
  if (!isImage(image, imageLength) || outside(subject, length) || outside(slots, 4 * MAX_SLOTS)) return REGEX_POINTER;
  if (outside(scratch, regexScratchSize(image))) return REGEX_POINTER;
  return regexCaptures(image, subject, length, scratch, slots) ? 1 : 0;
}

/** 1 if the bytes are an image that can be run safely, else 0. */
export function regex_validate(image: usize, length: u32): i32 {
  return !outside(image, length) && regexValidate(image, length) ? 1 : 0;
}

/** Bytes of scratch for `regex_test` and `regex_captures` on an image, or REGEX_POINTER. */
export function regex_scratch_size(image: usize, length: u32): i32 {
  return isImage(image, length) ? regexScratchSize(image) : REGEX_POINTER;
}

/** Bytes of scratch for `regex_test` alone: 0 where the image has a DFA. */
export function regex_test_scratch_size(image: usize, length: u32): i32 {
  return isImage(image, length) ? regexTestScratchSize(image) : REGEX_POINTER;
}

/**
 * What the first bytes of a text say, or the last ones where `regex_reads_backwards`: 1 or 0 if the rest of the text
 * changes nothing, else 2; or REGEX_POINTER. Saves copying the rest.
 */
export function regex_decide(image: usize, imageLength: u32, part: usize, length: u32): i32 {
  if (!isImage(image, imageLength) || outside(part, length)) return REGEX_POINTER;
  return regexDecide(image, part, length);
}

/** 1 if `regex_decide` takes the last bytes of a text, 0 if the first; or REGEX_POINTER. */
export function regex_reads_backwards(image: usize, length: u32): i32 {
  return isImage(image, length) ? (regexReadsBackwards(image) ? 1 : 0) : REGEX_POINTER;
}

/** Number of capturing groups, or REGEX_POINTER. */
export function regex_groups(image: usize, length: u32): i32 {
  return isImage(image, length) ? regexGroups(image) : REGEX_POINTER;
}

/** Bytes of work area that suffice for every pattern. */
export function regex_work_size(): i32 {
  return REGEX_WORK_SIZE;
}

/** Bytes that no image exceeds. */
export function regex_max_size(): i32 {
  return REGEX_MAX_SIZE;
}
