/**
 * Exports of the regex engine. Pointers and lengths are checked against the memory; an image must be one that
 * `regex_compile` made or `regex_validate` has accepted. All numbers are unsigned but the answers.
 */

import { alloc, free, give, inMemory } from "../memory/heap";
import { E_MEMORY, E_POINTER, E_REGEX, OK } from "../status";
import { regexCaptures, regexScratchSize } from "./captures";
import { regexCompile } from "./compile";
import { isState, regexRun, regexTest } from "./dfa";
import { REGEX_WORK_SIZE } from "./dfa-work";
import { HEADER_BYTES, IMAGE_SIZE, REGEX_MAX_SIZE } from "./image";
import { MAX_SLOTS, REGEX_REFUSED } from "./limits";
import { regexValidate } from "./validate";

/** The result words of regex_compile: u32 image, u32 length; u32 position and u32 reason of a refusal. */
const RESULT_SIZE: u32 = 16;

/**
 * Compiles a pattern, UTF-8 in RE2's syntax; `flags`: 2 ignores case, 4 anchors at the start. OK with address and length
 * of the image at `result`, a block that the caller gives back by `free`; E_REGEX with position and reason there; E_MEMORY.
 */
export function regex_compile(pattern: usize, length: u32, flags: u32, result: usize): i32 {
  if (!inMemory(pattern, length) || !inMemory(result, RESULT_SIZE)) return E_POINTER;
  memory.fill(result, 0, RESULT_SIZE);
  let work = alloc(REGEX_WORK_SIZE);
  let out = alloc(REGEX_MAX_SIZE);
  let status = E_MEMORY;
  if (work && out) {
    let size = regexCompile(pattern, length, flags, out, work);
    let image: usize = 0;
    if (size == REGEX_REFUSED) {
      status = E_REGEX;
      memory.copy(result + 8, out, 8);
    } else {
      image = give(alloc(size));
    }
    if (image) {
      memory.copy(image, out, size);
      store<u32>(result, <u32>image);
      store<u32>(result, size, 4);
      status = OK;
    }
  }
  free(work);
  free(out);
  return status;
}

function isImage(image: usize, length: u32): bool {
  return length >= <u32>HEADER_BYTES && inMemory(image, length) && load<u32>(image, IMAGE_SIZE) === length;
}

/**
 * 1 if the text holds a match, 0 if not, E_POINTER. `scratch` needs `regex_scratch_size` bytes. Unless `slots` is 0, on a
 * match the 20 u32 there say where groups 0 to 9 lie.
 */
export function regex_match(
  image: usize,
  imageLength: u32,
  subject: usize,
  length: u32,
  scratch: usize,
  slots: usize,
): i32 {
  if (!isImage(image, imageLength) || !inMemory(subject, length) || !inMemory(scratch, regexScratchSize(image))) {
    return E_POINTER;
  }
  if (!slots) return regexTest(image, subject, length, scratch);
  return inMemory(slots, 4 * MAX_SLOTS) ? regexCaptures(image, subject, length, scratch, slots) : E_POINTER;
}

/**
 * Runs the DFA of an image over a part of a text, so that the rest need not be copied where the part decides. `state` is
 * the first state of the image or what the part before gave; where the image reads backwards, parts come from the end.
 * 0: there is a match; 1: there is none, which with `last` is the only other answer; above: the state for the next part.
 * E_POINTER, also for an image without a DFA.
 */
export function regex_run(image: usize, imageLength: u32, state: u32, part: usize, length: u32, last: u32): i32 {
  if (!isImage(image, imageLength) || !inMemory(part, length) || !isState(image, state)) return E_POINTER;
  return regexRun(image, state, part, length, last != 0);
}

/** 1 if the bytes are an image that can be run safely, else 0. */
export function regex_validate(image: usize, length: u32): i32 {
  return inMemory(image, length) && regexValidate(image, length) ? 1 : 0;
}

/** Bytes of scratch for `regex_match` on an image, or E_POINTER. */
export function regex_scratch_size(image: usize, length: u32): i32 {
  return isImage(image, length) ? regexScratchSize(image) : E_POINTER;
}
