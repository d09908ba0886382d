/** Turns the outcome of a route into a decision: picks a split entry, fills templates in, picks the peer. */
import { crc32 } from "../balance/crc32";
import {
  I_FLAGS,
  I_METHOD,
  I_PEER_COUNT,
  I_TEMPLATE,
  I_TEMPLATE_LENGTH,
  METHOD_IP_HASH,
  P_SESSION,
  peerAt,
  SET_STICKY,
} from "../balance/peer-set-layout";
import {
  A_REWRITE,
  A_SETTINGS,
  A_SETTINGS_LENGTH,
  A_STATUS,
  A_TEMPLATE,
  A_TEMPLATE_LENGTH,
  A_TYPE,
  A_TYPE_LENGTH,
  A_UPSTREAM,
  ACTION_PROXY,
  ACTION_REDIRECT,
  ACTION_RETURN,
  K_COOKIE,
  K_NEED,
  K_STICKY,
  K_TEMPLATE,
  NONE,
  R_PATH_LENGTH,
  REWRITE_NONE,
  REWRITE_PREFIX,
  ROUTE_SIZE,
  S_COOKIE,
  S_ROUTES,
  SPLIT,
  SPLIT_ENTRY,
  SPLIT_HEADER,
  SPLIT_TOTAL,
} from "../image/layout";
import {
  MODE_BODY,
  MODE_LOCATION,
  MODE_PATH,
  overflowed,
  render,
  startOutput,
  writeBytes,
  writePath,
} from "../request/render";
import { BUSY, NEED, OK } from "../status";
import {
  D_ACTION,
  D_HASH,
  D_MARKS,
  D_PEER,
  D_PEERS,
  D_ROUTE,
  D_SETTINGS,
  D_SETTINGS_LENGTH,
  D_STATUS,
  D_TEXT,
  D_TEXT_LENGTH,
  D_TYPE,
  D_TYPE_LENGTH,
  D_UPSTREAM,
  KEY_SLOTS,
  MARK_BUSY,
  MARK_HASHED,
  MARK_SESSION,
  X_HANDLE,
  X_OUTPUT,
  X_PATH,
  X_PATH_LENGTH,
  X_QUERY,
  X_QUERY_LENGTH,
  X_RANDOM,
  X_STAGE,
  X_TARGET,
  X_TARGET_LENGTH,
  X_WRITE,
} from "../table/context";
import { upstreamOf } from "../table/shards";
import { U_PEERS } from "../table/upstream-record";
import { choosePeer } from "./choose-peer";
import { askFor } from "./need";
import { TRACE_SPLIT, trace } from "./trace";

/** "?", "&", "/". */
const MARKS: usize = memory.data<u8>([63, 38, 47]);
const MARK_QUERY: usize = 0;
const MARK_AND: usize = 1;
const MARK_SLASH: usize = 2;

export const STAGE_PICK: u32 = 4;
export const STAGE_DONE: u32 = 5;

/** A bare answer with a status and no body: the proxy shows its own page. */
export function refuse(ctx: usize, status: u32): i32 {
  store<u32>(ctx, ACTION_RETURN, D_ACTION);
  store<u32>(ctx, status, D_STATUS);
  // Text and content type: address and length of each. Settings stay: error pages may stand for this answer.
  memory.fill(ctx + D_TEXT, 0, 16);
  store<u32>(ctx, STAGE_DONE, X_STAGE);
  return OK;
}

/** The action of an outcome: itself, or the entry of a split that the random number falls on. */
function actionOf(ctx: usize, image: usize, outcome: usize): usize {
  if (load<u8>(outcome) != <u8>SPLIT) return outcome;
  let point = <u32>((<u64>load<u32>(ctx, X_RANDOM) * <u64>load<u32>(outcome, SPLIT_TOTAL)) >> 32);
  let entry = outcome + SPLIT_HEADER;
  let index: u32 = 0;
  // The last cumulative weight is the total, which the point is below.
  while (load<u32>(entry) <= point) {
    entry += SPLIT_ENTRY;
    index++;
  }
  trace(ctx, TRACE_SPLIT, index, true);
  return image + load<u32>(entry, 4);
}

/** Writes the rewritten target: the new path, and the query once. */
function rewriteTarget(ctx: usize, image: usize, action: usize, kind: u32): void {
  let template = image + load<u32>(action, A_TEMPLATE);
  let length = load<u32>(action, A_TEMPLATE_LENGTH);
  render(ctx, template, length, MODE_PATH, 0, load<u32>(image, S_COOKIE));
  if (kind == REWRITE_PREFIX) {
    let route = image + load<u32>(image, S_ROUTES) + load<u32>(ctx, D_ROUTE) * ROUTE_SIZE;
    let matched = min(load<u32>(route, R_PATH_LENGTH), load<u32>(ctx, X_PATH_LENGTH));
    writePath(ctx, <usize>load<u32>(ctx, X_PATH) + matched, load<u32>(ctx, X_PATH_LENGTH) - matched);
  }
  let query = load<u32>(ctx, X_QUERY);
  if (!query) return;
  // Only the object's own text can hold a question mark; values are escaped.
  let mark = MARK_QUERY;
  let end: usize = overflowed(ctx) ? 0 : load<u32>(ctx, X_WRITE);
  for (let p: usize = load<u32>(ctx, X_OUTPUT); p < end && mark == MARK_QUERY; p++) {
    if (load<u8>(p) == 63) mark = MARK_AND;
  }
  writeBytes(ctx, MARKS + mark, 1);
  writeBytes(ctx, query, load<u32>(ctx, X_QUERY_LENGTH));
}

/** The target for the upstream: raw, or rewritten. */
function setTarget(ctx: usize, image: usize, action: usize): void {
  let kind: u32 = load<u8>(action, A_REWRITE);
  if (kind == REWRITE_NONE || (kind == REWRITE_PREFIX && load<u32>(ctx, D_ROUTE) == NONE)) {
    store<u32>(ctx, load<u32>(ctx, X_TARGET), D_TEXT);
    store<u32>(ctx, load<u32>(ctx, X_TARGET_LENGTH), D_TEXT_LENGTH);
    return;
  }
  // Whatever the rewrite gives, a target begins with a slash.
  writeBytes(ctx, MARKS + MARK_SLASH, 1);
  rewriteTarget(ctx, image, action, kind);
  let start: usize = load<u32>(ctx, X_OUTPUT);
  if (!overflowed(ctx) && load<u32>(ctx, X_WRITE) > <u32>start + 1 && load<u8>(start, 1) == 47) start++;
  store<u32>(ctx, <u32>start, D_TEXT);
  store<u32>(ctx, load<u32>(ctx, X_WRITE) - <u32>start, D_TEXT_LENGTH);
}

/** Writes a part of the compiled key of a set out; returns its length. It is gone with the next output, or NONE if too long. */
function renderKey(ctx: usize, key: usize, template: usize): u32 {
  let start = load<u32>(ctx, X_WRITE);
  render(
    ctx,
    key + load<u32>(key + template),
    load<u32>(key + template, 4),
    MODE_BODY,
    KEY_SLOTS,
    load<u32>(key, K_COOKIE),
  );
  if (overflowed(ctx)) return NONE;
  let length = load<u32>(ctx, X_WRITE) - start;
  store<u32>(ctx, start, X_WRITE);
  return length;
}

/** The session id that a cookie of eight hexadecimal digits names. Other digits name some id too, but hardly that of a peer. */
function sessionOf(at: usize, length: u32): u32 {
  let id: u32 = 0;
  for (let i: u32 = 0; i < 8 && length == 8; i++) {
    let c: u32 = load<u8>(at + i);
    id = (id << 4) | ((c & 15) + (c >> 6) * 9);
  }
  return id;
}

/** What ip_hash hashes: the first three octets of an IPv4 address as one number; of any other text the CRC-32. */
function addressKey(at: usize, length: u32): u32 {
  let key: u32 = 0;
  let octet: u32 = 0;
  let dots: u32 = 0;
  for (let i: u32 = 0; i < length && dots < 3; i++) {
    let c: u32 = load<u8>(at + i);
    if (c == 46) {
      key = (key << 8) | (octet & 255);
      octet = 0;
      dots++;
    } else if (c - 48 < 10) octet = octet * 10 + c - 48;
    else break;
  }
  return dots == 3 ? key : crc32(0, at, length);
}

/** Picks the peer of the upstream at hand: NEED if its hash key reads a header that is not filled in. */
export function pickPeer(ctx: usize): i32 {
  let peers: usize = load<u32>(ctx, D_PEERS);
  if (!peers || !load<u32>(peers, I_PEER_COUNT)) return refuse(ctx, 503);
  let marks: u32 = 0;
  let hash: u32 = 0;
  let session: u32 = 0;
  if (load<u32>(peers, I_TEMPLATE_LENGTH)) {
    let key = peers + load<u32>(peers, I_TEMPLATE);
    store<u32>(ctx, STAGE_PICK, X_STAGE);
    if (askFor(ctx, key, load<u32>(key, K_NEED), KEY_SLOTS)) return NEED;
    let start: usize = load<u32>(ctx, X_WRITE);
    let length = renderKey(ctx, key, K_STICKY);
    if (length != NONE) {
      session = sessionOf(start, length);
      length = renderKey(ctx, key, K_TEMPLATE);
    }
    if (length == NONE) return refuse(ctx, 414);
    // An absent or empty key goes round, instead of to one peer for ever.
    if (length) {
      hash = load<u8>(peers, I_METHOD) == <u8>METHOD_IP_HASH ? addressKey(start, length) : crc32(0, start, length);
      store<u32>(ctx, hash, D_HASH);
      marks = MARK_HASHED;
    }
  }
  let status = choosePeer(ctx, marks != 0, hash, session, 0, 0);
  if (status != OK) refuse(ctx, status == BUSY ? 502 : 503);
  else {
    if (
      load<u8>(peers, I_FLAGS) & <u8>SET_STICKY &&
      load<u32>(peerAt(peers, load<u32>(ctx, D_PEER)), P_SESSION) != session
    ) {
      marks |= MARK_SESSION;
    }
    store<u32>(ctx, STAGE_DONE, X_STAGE);
    store<u32>(ctx, ACTION_PROXY, D_ACTION);
  }
  if (status == BUSY) marks |= MARK_BUSY;
  if (marks) store<u32>(ctx, marks, D_MARKS);
  return OK;
}

/** Carries an outcome of the shard out. */
export function act(ctx: usize, image: usize, outcomeOffset: u32): i32 {
  let action = actionOf(ctx, image, image + outcomeOffset);
  let kind: u32 = load<u8>(action);
  startOutput(ctx);
  store<u32>(ctx, <u32>(image + load<u32>(action, A_SETTINGS)), D_SETTINGS);
  store<u32>(ctx, load<u32>(action, A_SETTINGS_LENGTH), D_SETTINGS_LENGTH);
  if (kind == ACTION_PROXY) {
    setTarget(ctx, image, action);
    if (overflowed(ctx)) return refuse(ctx, 414);
    let handle: usize = load<u32>(ctx, X_HANDLE);
    let record = upstreamOf(handle, load<u32>(action, A_UPSTREAM));
    store<u32>(ctx, <u32>record, D_UPSTREAM);
    store<u32>(ctx, load<u32>(record, U_PEERS), D_PEERS);
    return pickPeer(ctx);
  }
  let template = image + load<u32>(action, A_TEMPLATE);
  let mode = kind == ACTION_REDIRECT ? MODE_LOCATION : MODE_BODY;
  render(ctx, template, load<u32>(action, A_TEMPLATE_LENGTH), mode, 0, load<u32>(image, S_COOKIE));
  if (overflowed(ctx)) return refuse(ctx, 414);
  let start = load<u32>(ctx, X_OUTPUT);
  store<u32>(ctx, kind, D_ACTION);
  store<u32>(ctx, load<u16>(action, A_STATUS), D_STATUS);
  store<u32>(ctx, start, D_TEXT);
  store<u32>(ctx, load<u32>(ctx, X_WRITE) - start, D_TEXT_LENGTH);
  if (kind == ACTION_RETURN) {
    store<u32>(ctx, <u32>(image + load<u32>(action, A_TYPE)), D_TYPE);
    store<u32>(ctx, load<u32>(action, A_TYPE_LENGTH), D_TYPE_LENGTH);
  }
  store<u32>(ctx, STAGE_DONE, X_STAGE);
  return OK;
}
