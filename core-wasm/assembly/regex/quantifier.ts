/** Repetition: * + ? {n} {n,} {n,m}, each also lazy. */
import { isDigit } from "./escape";
import {
  MAX_INSTRUCTIONS,
  MAX_REPEAT,
  POSSESSIVE,
  PROGRAM_TOO_LARGE,
  REPEAT_ORDER,
  REPEAT_TOO_LARGE,
  REPEAT_TWICE,
} from "./limits";
import { LAZY, NODE_COST, NODE_MAX, NODE_MIN, NULLABLE, TRAITS, UNBOUNDED } from "./tree";
import { FLAGS, MAXIMUM, MINIMUM, peek, refuse, SIZE, UNGREEDY } from "./work";

/** Reads a number into `field`, stopping the count far above every limit. 0 if there is none; no leading zeros. */
function parseCount(work: usize, at: usize, field: usize): usize {
  if (!isDigit(peek(work, at)) || (peek(work, at) === 0x30 && isDigit(peek(work, at + 1)))) return 0;
  let value = 0;
  for (; isDigit(peek(work, at)); at++) value = min(value * 10 + peek(work, at) - 0x30, 9999);
  store<u32>(work + field, value);
  return at;
}

/**
 * Reads the quantifier at `at`, without the mark of a lazy one, into MINIMUM and MAXIMUM. Returns where it ends, 0 if
 * there is none: braces that do not hold counts stand for themselves.
 */
export function readQuantifier(work: usize, at: usize): usize {
  const c = peek(work, at);
  store<u32>(work, c === 0x2b ? 1 : 0, MINIMUM);
  store<u32>(work, c === 0x3f ? 1 : UNBOUNDED, MAXIMUM);
  if (c === 0x2a || c === 0x2b || c === 0x3f) return at + 1;
  if (c !== 0x7b) return 0;
  at = parseCount(work, at + 1, MINIMUM);
  if (!at) return 0;
  if (peek(work, at) !== 0x2c) {
    store<u32>(work, load<u32>(work, MINIMUM), MAXIMUM);
  } else if (peek(work, ++at) !== 0x7d) {
    at = parseCount(work, at, MAXIMUM);
  }
  return at && peek(work, at) === 0x7d ? at + 1 : 0;
}

/** Instructions that `cost` instructions repeated expand to; `program.ts` writes exactly these. */
function repeatedCost(cost: u32, least: u32, most: u32, nullable: bool): u32 {
  if (most !== UNBOUNDED) return least * cost + (most - least) * (cost + 1);
  return least ? least * cost + 1 : cost + (nullable ? 2 : 1);
}

/** Gives an item the quantifier that stands at `at`, if there is one. Returns where it ends, 0 if it is refused. */
export function quantify(work: usize, item: usize, at: usize): usize {
  let next = readQuantifier(work, at);
  if (!next) return at;
  const least = load<u32>(work, MINIMUM);
  const most = load<u32>(work, MAXIMUM);
  if (least > MAX_REPEAT || (most > MAX_REPEAT && most !== UNBOUNDED)) return refuse(work, at, REPEAT_TOO_LARGE);
  if (most < least) return refuse(work, at, REPEAT_ORDER);
  const traits: u32 = load<u8>(item, TRAITS);
  let lazy = (load<u32>(work, FLAGS) & UNGREEDY) !== 0;
  if (peek(work, next) === 0x3f) {
    lazy = !lazy;
    next++;
  }
  if (readQuantifier(work, next)) return refuse(work, next, peek(work, next) === 0x2b ? POSSESSIVE : REPEAT_TWICE);
  const cost = load<u32>(item, NODE_COST);
  if (!cost) return next; // nothing repeated is nothing, however often
  const repeated = repeatedCost(cost, least, most, (traits & NULLABLE) !== 0);
  store<u16>(item, least, NODE_MIN);
  store<u16>(item, most, NODE_MAX);
  store<u8>(item, traits | (lazy ? LAZY : 0), TRAITS);
  store<u32>(item, repeated, NODE_COST);
  const total = load<u32>(work, SIZE) + repeated - cost;
  store<u32>(work, total, SIZE);
  return total > MAX_INSTRUCTIONS ? refuse(work, at, PROGRAM_TOO_LARGE) : next;
}
