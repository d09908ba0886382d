/** Classes that have a name: `[[:alpha:]]` and its family, \d \s \w. */
import { sameBytes } from "../memory/bytes";
import { SET_BYTES } from "./image";
import { setAdd, setFold, setNegate, setUnite } from "./sets";
import { FLAGS, FOLD, NAMED_SET, VALUE } from "./work";

/**
 * The classes of POSIX, `word`, and those of the escapes \d \s \w: length of the name, name, number of ranges, lowest and
 * highest byte of each. A length of 0 ends the table.
 */
// biome-ignore format: one class a line
const NAMED_CLASSES: usize = memory.data<u8>([
  5, 0x61, 0x6c, 0x6e, 0x75, 0x6d, 3, 0x30, 0x39, 0x41, 0x5a, 0x61, 0x7a, // alnum
  5, 0x61, 0x6c, 0x70, 0x68, 0x61, 2, 0x41, 0x5a, 0x61, 0x7a, // alpha
  5, 0x61, 0x73, 0x63, 0x69, 0x69, 1, 0, 0x7f, // ascii
  5, 0x62, 0x6c, 0x61, 0x6e, 0x6b, 2, 9, 9, 0x20, 0x20, // blank
  5, 0x63, 0x6e, 0x74, 0x72, 0x6c, 2, 0, 0x1f, 0x7f, 0x7f, // cntrl
  5, 0x64, 0x69, 0x67, 0x69, 0x74, 1, 0x30, 0x39, // digit
  5, 0x67, 0x72, 0x61, 0x70, 0x68, 1, 0x21, 0x7e, // graph
  5, 0x6c, 0x6f, 0x77, 0x65, 0x72, 1, 0x61, 0x7a, // lower
  5, 0x70, 0x72, 0x69, 0x6e, 0x74, 1, 0x20, 0x7e, // print
  5, 0x70, 0x75, 0x6e, 0x63, 0x74, 4, 0x21, 0x2f, 0x3a, 0x40, 0x5b, 0x60, 0x7b, 0x7e, // punct
  5, 0x73, 0x70, 0x61, 0x63, 0x65, 2, 9, 13, 0x20, 0x20, // space
  5, 0x75, 0x70, 0x70, 0x65, 0x72, 1, 0x41, 0x5a, // upper
  4, 0x77, 0x6f, 0x72, 0x64, 4, 0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a, // word
  6, 0x78, 0x64, 0x69, 0x67, 0x69, 0x74, 3, 0x30, 0x39, 0x41, 0x46, 0x61, 0x66, // xdigit
  1, 0x64, 1, 0x30, 0x39, // d
  1, 0x73, 3, 9, 10, 12, 13, 0x20, 0x20, // s: without \v
  1, 0x77, 4, 0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a, // w
  0,
]);

/**
 * Adds the class of this name to a set, or what is not in it. Case is folded before it is negated, as in RE2. False if
 * there is no such class.
 */
export function addNamedClass(work: usize, set: usize, name: usize, length: u32, negated: bool): bool {
  let entry = NAMED_CLASSES;
  for (let known: u32 = load<u8>(entry); known; known = load<u8>(entry)) {
    const ranges = entry + 1 + known;
    const end = ranges + 1 + ((<usize>load<u8>(ranges)) << 1);
    if (known === length && sameBytes(entry + 1, name, length)) {
      const named = work + NAMED_SET;
      memory.fill(named, 0, SET_BYTES);
      for (let range = ranges + 1; range < end; range += 2) setAdd(named, load<u8>(range), load<u8>(range, 1));
      if (load<u32>(work, FLAGS) & FOLD) setFold(named);
      if (negated) setNegate(named);
      setUnite(set, named);
      return true;
    }
    entry = end;
  }
  return false;
}

/** Adds the class of an escape, \d \s \w, or with a capital letter what is not in it. False if it is none of these. */
export function addPerlClass(work: usize, set: usize, letter: i32): bool {
  store<u32>(work, letter | 0x20, VALUE);
  return addNamedClass(work, set, work + VALUE, 1, !(letter & 0x20));
}
