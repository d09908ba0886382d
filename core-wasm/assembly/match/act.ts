/** Turns the outcome of a route into a decision: picks a split entry, fills templates in, picks the peer. */
import { crc32 } from "../balance/crc32";
import {
  I_METHOD,
  I_PEER_COUNT,
  I_POINT_COUNT,
  I_TEMPLATE,
  I_TEMPLATE_LENGTH,
  METHOD_ROUND_ROBIN,
} from "../balance/peer-set-layout";
import { peerSetOwner, peerSetPosition, roundRobin } from "../balance/peer-set-pick";
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
  K_TEMPLATE,
  K_TEMPLATE_LENGTH,
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
import { NEED, OK } from "../status";
import {
  D_ACTION,
  D_PEER,
  D_PEERS,
  D_POSITION,
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
  X_CURSORS,
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
import { U_CURSOR, U_PEERS } from "../table/upstreams";
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
  store<u32>(ctx, 0, D_TEXT);
  store<u32>(ctx, 0, D_TEXT_LENGTH);
  store<u32>(ctx, 0, D_TYPE_LENGTH);
  store<u32>(ctx, 0, D_SETTINGS_LENGTH);
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

/** Picks the peer of the upstream at hand: NEED if its hash key reads a header that is not filled in. */
export function pickPeer(ctx: usize): i32 {
  let peers: usize = load<u32>(ctx, D_PEERS);
  if (!peers || !load<u32>(peers, I_PEER_COUNT)) return refuse(ctx, 503);
  let record: usize = load<u32>(ctx, D_UPSTREAM);
  let key = peers + load<u32>(peers, I_TEMPLATE);
  let hashed = load<u8>(peers, I_METHOD) != <u8>METHOD_ROUND_ROBIN && load<u32>(peers, I_TEMPLATE_LENGTH) != 0;
  if (hashed) {
    store<u32>(ctx, STAGE_PICK, X_STAGE);
    if (askFor(ctx, key, load<u32>(key, K_NEED), KEY_SLOTS)) return NEED;
    let start: usize = load<u32>(ctx, X_WRITE);
    render(
      ctx,
      key + load<u32>(key, K_TEMPLATE),
      load<u32>(key, K_TEMPLATE_LENGTH),
      MODE_BODY,
      KEY_SLOTS,
      load<u32>(key, K_COOKIE),
    );
    if (overflowed(ctx)) return refuse(ctx, 414);
    let length = load<u32>(ctx, X_WRITE) - <u32>start;
    store<u32>(ctx, <u32>start, X_WRITE);
    // An absent or empty key goes round, instead of to one peer for ever.
    if (length) {
      let position = peerSetPosition(peers, crc32(0, start, length));
      store<u32>(ctx, position, D_POSITION);
      store<u32>(ctx, peerSetOwner(peers, position), D_PEER);
    }
    hashed = length != 0;
  }
  if (!hashed) {
    let cursor = <usize>load<u32>(ctx, X_CURSORS) + ((<usize>load<u32>(record, U_CURSOR)) << 2);
    let peer = roundRobin(peers, cursor);
    store<u32>(ctx, peer, D_PEER);
    store<u32>(ctx, load<u32>(peers, I_POINT_COUNT) ? 0 : peer, D_POSITION);
  }
  store<u32>(ctx, STAGE_DONE, X_STAGE);
  store<u32>(ctx, ACTION_PROXY, D_ACTION);
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
