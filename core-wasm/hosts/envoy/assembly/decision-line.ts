/** A decision as one line of JSON: test/conformance/README.md, "The line of a decision". */
import {
  I_FLAGS,
  I_KEY,
  I_KEY_LENGTH,
  P_ID_LENGTH,
  P_SESSION,
  peerAt,
  SET_STICKY,
} from "../../../assembly/balance/peer-set-layout";
import { ACTION_PROXY, ACTION_REDIRECT } from "../../../assembly/image/layout";
import { ORIGIN_GUARD, ORIGIN_ROUTE } from "../../../assembly/match/evaluate";
import {
  D_ACTION,
  D_HASH,
  D_MARKS,
  D_ORIGIN,
  D_PEER,
  D_PEERS,
  D_POSITION,
  D_RENDERED,
  D_ROUTE,
  D_SHARD,
  D_STATUS,
  D_TEXT,
  D_TEXT_LENGTH,
  D_TYPE,
  D_TYPE_LENGTH,
  MARK_BUSY,
  MARK_HASHED,
  MARK_SESSION,
  X_GUARD,
} from "../../../assembly/table/context";
import { putPattern } from "./bundle";
import { dropGrowing, extend, growing, grownBytes, grownLength, putByte, putBytes, putHex, putNumber } from "./growing";
import { firstSetting, flags, hasValue, name, nameLength, nextSetting, renderValue, tag } from "./settings";
import { ascii, bytesOf, lengthOf } from "./text";

const ACTIONS = ascii("proxy   redirectreturn  ");
const ORIGINS = ascii("none     route    guard    unmatched");
const WORD_ACTION = ascii('{"action":"');
const WORD_STATUS = ascii('","status":');
const WORD_SHARD = ascii(',"shard":');
const WORD_BY = ascii(',"by":"');
const WORD_RULE = ascii('","rule":');
const WORD_UPSTREAM = ascii(',"upstream":');
const WORD_PEER = ascii(',"peer":');
const WORD_INDEX = ascii(',"index":');
const WORD_POSITION = ascii(',"position":');
const WORD_HASH = ascii(',"hash":');
const WORD_SESSION = ascii(',"session":');
const WORD_NEW = ascii(',"new":');
const WORD_BUSY = ascii(',"busy":');
const WORD_TEXT = ascii(',"text":');
const WORD_TYPE = ascii(',"type":');
const WORD_SETTINGS = ascii(',"settings":[');
const WORD_NULL = ascii("null");
const WORD_TRUE = ascii("true");
const WORD_FALSE = ascii("false");
const TOO_LONG = ascii(
  '{"action":"return","status":414,"shard":null,"by":"none","rule":null,"upstream":null,"peer":null,"index":null,"position":null,"hash":null,"session":null,"new":false,"busy":false,"text":"","type":null,"settings":[]}\n',
);

function put(line: usize, text: usize): void {
  putBytes(line, bytesOf(text), lengthOf(text));
}

/** A word of a list whose words are filled up with blanks to `width`. */
function putWordOf(line: usize, list: usize, index: u32, width: u32): void {
  let word = bytesOf(list) + index * width;
  let length = width;
  while (load<u8>(word + length - 1) == 32) length--;
  putBytes(line, word, length);
}

function putBoolean(line: usize, on: bool): void {
  put(line, on ? WORD_TRUE : WORD_FALSE);
}

/** A number, or null where it does not count. */
function putIf(line: usize, counts: bool, number: u32): void {
  if (counts) putNumber(line, number);
  else put(line, WORD_NULL);
}

/** A byte string in quotes. */
function putQuoted(line: usize, bytes: usize, length: u32): void {
  putByte(line, 34);
  for (let i: u32 = 0; i < length; i++) {
    let c: u32 = load<u8>(bytes + i);
    if (c < 32 || c > 126) {
      let at = extend(line, 4);
      if (at) store<u32>(at, 0x3030755c);
      putHex(line, c, 2);
    } else {
      if (c == 34 || c == 92) putByte(line, 92);
      putByte(line, c);
    }
  }
  putByte(line, 34);
}

function putQuotedIf(line: usize, counts: bool, bytes: usize, length: u32): void {
  if (counts) putQuoted(line, bytes, length);
  else put(line, WORD_NULL);
}

/** The line of a request that is too long for the core. */
export function putTooLong(line: usize): void {
  put(line, TOO_LONG);
}

/** The line of the last decision of a context. */
export function putDecision(line: usize, context: usize): void {
  let action = load<u32>(context, D_ACTION);
  let isProxy = action == ACTION_PROXY;
  put(line, WORD_ACTION);
  putWordOf(line, ACTIONS, action - 1, 8);
  put(line, WORD_STATUS);
  putNumber(line, isProxy ? 0 : load<u32>(context, D_STATUS));
  put(line, WORD_SHARD);
  putShard(line, load<u32>(context, D_SHARD));
  let origin = load<u32>(context, D_ORIGIN);
  put(line, WORD_BY);
  putWordOf(line, ORIGINS, origin, 9);
  put(line, WORD_RULE);
  let isGuard = origin == ORIGIN_GUARD;
  let rule = isGuard ? load<u32>(context, X_GUARD) : load<u32>(context, D_ROUTE);
  putIf(line, isGuard || origin == ORIGIN_ROUTE, rule);
  putPeer(line, context, isProxy, action == ACTION_REDIRECT ? 0 : load<u32>(context, D_PEERS));
  put(line, WORD_BUSY);
  putBoolean(line, !isProxy && action != ACTION_REDIRECT && (load<u32>(context, D_MARKS) & MARK_BUSY) != 0);
  let isReturn = !isProxy && action != ACTION_REDIRECT;
  let typeLength = isReturn ? load<u32>(context, D_TYPE_LENGTH) : 0;
  put(line, WORD_TEXT);
  putQuoted(line, load<u32>(context, D_TEXT), isReturn && !typeLength ? 0 : load<u32>(context, D_TEXT_LENGTH));
  put(line, WORD_TYPE);
  putQuotedIf(line, typeLength > 0, load<u32>(context, D_TYPE), typeLength);
  put(line, WORD_SETTINGS);
  putSettings(line, context);
  putByte(line, 93);
  putByte(line, 125);
  putByte(line, 10);
}

function putShard(line: usize, image: usize): void {
  let pattern = image ? growing() : 0;
  if (pattern) putPattern(pattern, image);
  putQuotedIf(line, pattern != 0, pattern ? grownBytes(pattern) : 0, pattern ? grownLength(pattern) : 0);
  dropGrowing(pattern);
}

/** From "upstream" to "new". `peers` is 0 where there is no set. */
function putPeer(line: usize, context: usize, isProxy: bool, peers: usize): void {
  let marks = load<u32>(context, D_MARKS);
  let index = load<u32>(context, D_PEER);
  let peer = isProxy ? peerAt(peers, index) : 0;
  put(line, WORD_UPSTREAM);
  if (peers) putQuoted(line, peers + load<u32>(peers, I_KEY), load<u32>(peers, I_KEY_LENGTH));
  else put(line, WORD_NULL);
  put(line, WORD_PEER);
  if (isProxy) putQuoted(line, peers + load<u32>(peer), load<u8>(peer, P_ID_LENGTH));
  else put(line, WORD_NULL);
  put(line, WORD_INDEX);
  putIf(line, isProxy, index);
  put(line, WORD_POSITION);
  putIf(line, isProxy, load<u32>(context, D_POSITION));
  put(line, WORD_HASH);
  putIf(line, (marks & MARK_HASHED) != 0 && (isProxy || (marks & MARK_BUSY) != 0), load<u32>(context, D_HASH));
  let hasSession = isProxy && (load<u8>(peers, I_FLAGS) & <u8>SET_STICKY) != 0;
  put(line, WORD_SESSION);
  if (hasSession) {
    putByte(line, 34);
    putHex(line, load<u32>(peer, P_SESSION), 8);
    putByte(line, 34);
  } else put(line, WORD_NULL);
  put(line, WORD_NEW);
  putBoolean(line, hasSession && (marks & MARK_SESSION) != 0);
}

function putSettings(line: usize, context: usize): void {
  let begun = false;
  firstSetting(context);
  while (nextSetting()) {
    if (begun) putByte(line, 44);
    begun = true;
    putByte(line, 91);
    putNumber(line, tag);
    putByte(line, 44);
    putNumber(line, flags);
    putByte(line, 44);
    putQuoted(line, name, nameLength);
    putByte(line, 44);
    let length = hasValue() ? renderValue(context) : 0;
    putQuoted(line, load<u32>(context, D_RENDERED), length);
    putByte(line, 93);
  }
}
