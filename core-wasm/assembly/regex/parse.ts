/**
 * Pattern text to parse tree, in RE2's syntax over bytes. One pass with an explicit stack of open groups.
 *
 * Every parsing function takes the place where its construct begins and returns the place where it ends; 0 means that
 * the pattern is refused and `refuse` has noted why.
 */

import { parseClass } from "./class";
import { lookUp, parseEscape } from "./escape";
import { innermost, parseGroup } from "./group";
import { BEGIN_LINE, BEGIN_TEXT, END_LINE, END_TEXT } from "./image";
import {
  MAX_INSTRUCTIONS,
  NOT_UTF8,
  PAREN_UNCLOSED,
  PAREN_UNOPENED,
  PROGRAM_TOO_LARGE,
  REPEAT_NOTHING,
} from "./limits";
import { addPerlClass } from "./named-classes";
import { quantify, readQuantifier } from "./quantifier";
import { setAdd } from "./sets";
import {
  addAlternative,
  appendItem,
  clearScratchSet,
  LAST,
  NO_CAPTURE,
  NODE_COST,
  NULLABLE,
  newAssertion,
  newGroup,
  newLiteral,
  newRange,
  newSetFromScratch,
  PREVIOUS,
  TIED_TO_BEGIN,
  TIED_TO_END,
  TRAITS,
} from "./tree";
import {
  DEPTH,
  DOT_ALL,
  FLAGS,
  ITEM,
  MULTI_LINE,
  NEEDS_CONTEXT,
  OPEN_AT,
  OPEN_FLAGS,
  OPEN_NODE,
  OPEN_SIZE,
  PATTERN_END,
  peek,
  refuse,
  SIZE,
  VALUE,
} from "./work";

/** Gives an item its quantifier and adds it to the innermost open group. */
function addItem(work: usize, item: usize, at: usize): usize {
  at = quantify(work, item, at);
  if (at) appendItem(load<u32>(innermost(work), OPEN_NODE), item);
  return at;
}

function addAssertion(work: usize, kind: u32, at: usize): usize {
  if (kind > END_TEXT) store<u32>(work, 1, NEEDS_CONTEXT);
  return addItem(work, newAssertion(work, kind), at);
}

/** Reads a literal character into ITEM; one of several bytes is an item as a whole. */
function parseCharacter(work: usize, at: usize): usize {
  const lead: u32 = load<u8>(at++);
  if (lead < 0x80) {
    store<u32>(work, newLiteral(work, lead), ITEM);
    return at;
  }
  let more = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  if (!more) return refuse(work, at - 1, NOT_UTF8);
  const character = newGroup(work, NO_CAPTURE, 0);
  store<u32>(character, more + 1, NODE_COST);
  appendItem(character, newRange(work, lead, lead));
  for (; more; more--, at++) {
    const byte = peek(work, at);
    if ((byte & ~0x3f) !== 0x80) return refuse(work, at, NOT_UTF8);
    appendItem(character, newRange(work, byte, byte));
  }
  store<u32>(work, character, ITEM);
  return at;
}

/** Escapes that assert, with what they assert plus 1: A BEGIN_TEXT, z END_TEXT, b WORD_EDGE, B NO_WORD_EDGE. A zero ends it. */
const ASSERTIONS: usize = memory.data<u8>([0x41, 1, 0x7a, 2, 0x62, 5, 0x42, 6, 0]);

/** An escape outside a class, other than \Q. */
function addEscape(work: usize, at: usize): usize {
  const letter = peek(work, at + 1);
  const assertion = lookUp(ASSERTIONS, letter);
  if (assertion) return addAssertion(work, assertion - 1, at + 2);
  if (letter === 0x43) return addItem(work, newRange(work, 0, 255), at + 2); // C
  if (letter >= 0 && addPerlClass(work, clearScratchSet(work), letter)) {
    return addItem(work, newSetFromScratch(work), at + 2);
  }
  at = parseEscape(work, at);
  return at ? addItem(work, newLiteral(work, load<u32>(work, VALUE)), at) : 0;
}

function addDot(work: usize, at: usize): usize {
  const set = clearScratchSet(work);
  setAdd(set, 0, 255);
  if (!(load<u32>(work, FLAGS) & DOT_ALL)) store<u8>(set + 1, 0xff ^ (1 << 2)); // all but \n, bit 2 of the second byte
  return addItem(work, newSetFromScratch(work), at + 1);
}

/** Notes what the alternatives of a group, now complete, have in common, and what the group expands to. */
function finishGroup(work: usize, group: usize, sizeBefore: u32): void {
  store<u32>(group, load<u32>(work, SIZE) - sizeBefore, NODE_COST);
  let nullable: u32 = 0;
  let ties = TIED_TO_BEGIN | TIED_TO_END;
  for (let alternative: usize = load<u32>(group, LAST); alternative; alternative = load<u32>(alternative, PREVIOUS)) {
    nullable |= load<u8>(alternative, TRAITS) & NULLABLE;
    ties &= load<u8>(alternative, TRAITS);
  }
  store<u8>(group, nullable | ties, TRAITS);
}

/** Takes the innermost group off the stack. */
function leaveGroup(work: usize): usize {
  const entry = innermost(work);
  const group: usize = load<u32>(entry, OPEN_NODE);
  store<u32>(work, load<u32>(work, DEPTH) - 1, DEPTH);
  store<u32>(work, load<u32>(entry, OPEN_FLAGS), FLAGS);
  finishGroup(work, group, load<u32>(entry, OPEN_SIZE));
  return group;
}

function isQuoteEnd(work: usize, at: usize): bool {
  return peek(work, at) === 0x5c && peek(work, at + 1) === 0x45;
}

/** Literal text up to \\E or the end of the pattern. A quantifier behind \\E belongs to the last character. */
function addQuoted(work: usize, at: usize): usize {
  while (peek(work, at) >= 0) {
    if (isQuoteEnd(work, at)) return at + 2;
    at = parseCharacter(work, at);
    if (!at) return 0;
    const item = load<u32>(work, ITEM);
    if (isQuoteEnd(work, at)) return addItem(work, item, at + 2);
    appendItem(load<u32>(innermost(work), OPEN_NODE), item);
  }
  return at;
}

/** Reads one construct. */
function parseNext(work: usize, at: usize): usize {
  const entry = innermost(work);
  const c: u32 = load<u8>(at);
  const lines = load<u32>(work, FLAGS) & MULTI_LINE;
  switch (c) {
    case 0x28: // (
      return parseGroup(work, at);
    case 0x29: // )
      if (!load<u32>(work, DEPTH)) return refuse(work, at, PAREN_UNOPENED);
      return addItem(work, leaveGroup(work), at + 1);
    case 0x7c: // |
      addAlternative(work, load<u32>(entry, OPEN_NODE), 1);
      return at + 1;
    case 0x5b: // [
      at = parseClass(work, at);
      return at ? addItem(work, newSetFromScratch(work), at) : 0;
    case 0x2e: // .
      return addDot(work, at);
    case 0x5e: // ^
      return addAssertion(work, lines ? BEGIN_LINE : BEGIN_TEXT, at + 1);
    case 0x24: // $
      return addAssertion(work, lines ? END_LINE : END_TEXT, at + 1);
    case 0x5c: // \
      return peek(work, at + 1) === 0x51 ? addQuoted(work, at + 2) : addEscape(work, at);
    // A quantifier of an item has been read with it. Behind flags it is refused, as in Perl; RE2 reaches back over them.
    case 0x2a: // *
    case 0x2b: // +
    case 0x3f: // ?
    case 0x7b: // {
      if (readQuantifier(work, at)) return refuse(work, at, REPEAT_NOTHING);
  }
  at = parseCharacter(work, at);
  return at ? addItem(work, load<u32>(work, ITEM), at) : 0;
}

/** Reads the whole pattern. Returns the root of its tree, a group; 0 if it is refused. */
export function parsePattern(work: usize, pattern: usize): usize {
  const end: usize = load<u32>(work, PATTERN_END);
  const root = newGroup(work, NO_CAPTURE, 0);
  store<u32>(innermost(work), root, OPEN_NODE);
  let at = pattern;
  while (at < end) {
    const next = parseNext(work, at);
    if (!next) return 0;
    if (load<u32>(work, SIZE) > MAX_INSTRUCTIONS) return refuse(work, at, PROGRAM_TOO_LARGE);
    at = next;
  }
  if (load<u32>(work, DEPTH)) return refuse(work, load<u32>(innermost(work), OPEN_AT), PAREN_UNCLOSED);
  finishGroup(work, root, 0);
  return root;
}
