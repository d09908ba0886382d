/** Exports that compile a source: they take memory themselves, and answer with an image that is the caller's. */
import { inMemory } from "../memory/heap";
import { E_MEMORY, E_POINTER, OK } from "../status";
import { freeBuilder, newBuilder, problemPosition, problemReason, status, takeOutput } from "./builder";
import { compileRegex } from "./rules";
import { compileShard } from "./shard";

/** The result words of a compile: u32 image, u32 length, u32 position of a problem, u32 its reason. */
const RESULT_SIZE: u32 = 16;

const SHARD: u32 = 0;
const REGEX: u32 = 1;

/** `flags` are those of a regex. On success the image is the caller's, to be given back by `free`. */
function compile(what: u32, source: usize, length: u32, flags: u32, result: usize): i32 {
  if (!inMemory(source, length) || !inMemory(result, RESULT_SIZE)) return E_POINTER;
  let b = newBuilder(source, length);
  if (!b) return E_MEMORY;
  let size = what == SHARD ? compileShard(b) : compileAlone(b, source, length, flags);
  store<u32>(result, size < 0 ? 0 : <u32>takeOutput(b));
  store<u32>(result, max(size, 0), 4);
  store<u32>(result, problemPosition(b), 8);
  store<u32>(result, problemReason(b), 12);
  freeBuilder(b);
  return size < 0 ? size : OK;
}

function compileAlone(b: usize, pattern: usize, length: u32, flags: u32): i32 {
  let size = compileRegex(b, pattern, length, flags);
  return status(b) ? status(b) : <i32>size;
}

/** Compiles a shard source. */
export function shard_compile(source: usize, length: u32, result: usize): i32 {
  return compile(SHARD, source, length, 0, result);
}

/** Compiles a pattern, UTF-8 in RE2's syntax; `flags`: 2 ignores case, 4 anchors at the start. */
export function regex_compile(pattern: usize, length: u32, flags: u32, result: usize): i32 {
  return compile(REGEX, pattern, length, flags, result);
}
