import {
  FLAG_STOPS_REGEX,
  GUARD_SIZE,
  M_OUTCOME,
  MATCH_SIZE,
  MAX_HOST,
  NONE,
  R_FLAGS,
  R_MATCH_COUNT,
  R_MATCHES,
  R_NEED,
  R_NEXT,
  R_OUTCOME,
  R_REGEX,
  ROUTE_REGEX,
  ROUTE_SIZE,
  S_FIRST_PREFIX,
  S_FIRST_REGEX,
  S_GUARD_COUNT,
  S_GUARDS,
  S_ROUTE_COUNT,
  S_ROUTES,
  S_UNMATCHED,
  S_UNMATCHED_NEED,
} from "../image/layout";
import { regexTest } from "../regex/regex";
import { takeHost, takePlainHost } from "../request/host";
import { takeTarget } from "../request/target";
import { E_POINTER, E_STATE, NEED, OK } from "../status";
import {
  D_ACTION,
  D_MARKS,
  D_ORIGIN,
  D_ROUTE,
  D_SETTINGS,
  D_SHARD,
  D_UPSTREAM,
  isContext,
  X_CANDIDATE,
  X_CAPTURED,
  X_FLAGS,
  X_GUARD,
  X_HANDLE,
  X_HOST_LENGTH,
  X_INPUT,
  X_INPUT_CAPACITY,
  X_NEED_COUNT,
  X_PATH,
  X_PATH_LENGTH,
  X_PREFIX,
  X_SCRATCH,
  X_STAGE,
  X_TABLE,
  X_TRACE_COUNT,
  X_TRACED,
} from "../table/context";
import { H_FIRST_PREFIX, H_FIRST_REGEX, H_GUARD_COUNT, H_ROUTES, imageOf } from "../table/shards";
import { T_DEFAULT } from "../table/table";
import { act, pickPeer, refuse, STAGE_DONE, STAGE_PICK } from "./act";
import { allHold } from "./conditions";
import { findPlainHost, findShard } from "./hosts";
import { askFor, forgetHeaders, startValues, takeAnswers } from "./need";
import {
  TRACE_FALLS,
  TRACE_GUARD,
  TRACE_MATCH,
  TRACE_ROUTE,
  TRACE_STOPPED,
  TRACE_UNMATCHED,
  trace,
  tracing,
} from "./trace";
import { searchTrie } from "./trie";

const STAGE_GUARDS: u32 = 1;
const STAGE_ROUTES: u32 = 2;
const STAGE_UNMATCHED: u32 = 3;

export const ORIGIN_ROUTE: u32 = 1;
export const ORIGIN_GUARD: u32 = 2;
export const ORIGIN_UNMATCHED: u32 = 3;

function routeAt(image: usize, index: u32): usize {
  return image + load<u32>(image, S_ROUTES) + index * ROUTE_SIZE;
}

/** The first regex route from `index` on that covers the path, or NONE. */
function findRegex(ctx: usize, image: usize, index: u32): u32 {
  let end = load<u32>(image, S_FIRST_PREFIX);
  let path: usize = load<u32>(ctx, X_PATH);
  let length = load<u32>(ctx, X_PATH_LENGTH);
  let scratch: usize = load<u32>(ctx, X_SCRATCH);
  for (; index < end; index++) {
    let route = routeAt(image, index);
    if (regexTest(image + load<u32>(route, R_REGEX), path, length, scratch)) return index;
  }
  return NONE;
}

/** The candidate to try when there is none before the regexes: a regex, unless the longest prefix forbids it, or the prefix. */
function afterExact(ctx: usize, image: usize): u32 {
  let prefix = load<u32>(ctx, X_PREFIX);
  let handle: usize = load<u32>(ctx, X_HANDLE);
  let first = load<u32>(handle, H_FIRST_REGEX);
  if (first == load<u32>(handle, H_FIRST_PREFIX)) return prefix;
  if (prefix != NONE && load<u8>(routeAt(image, prefix), R_FLAGS) & <u8>FLAG_STOPS_REGEX) return prefix;
  let regex = findRegex(ctx, image, first);
  return regex == NONE ? prefix : regex;
}

/** The candidate after one that did not decide. */
function nextCandidate(ctx: usize, image: usize, index: u32): u32 {
  let next = load<u32>(routeAt(image, index), R_NEXT);
  if (index >= load<u32>(image, S_FIRST_PREFIX) || next != NONE) return next;
  if (index < load<u32>(image, S_FIRST_REGEX)) return afterExact(ctx, image);
  let regex = findRegex(ctx, image, index + 1);
  return regex == NONE ? load<u32>(ctx, X_PREFIX) : regex;
}

/** While explaining: tells of the routes between the last one that was tried and `until`, none of which covers the path. */
function traceSkipped(ctx: usize, image: usize, until: u32): void {
  let count = load<u32>(image, S_ROUTE_COUNT);
  let end = until == NONE ? count : until;
  let prefix = load<u32>(ctx, X_PREFIX);
  let stops = prefix != NONE && (load<u8>(routeAt(image, prefix), R_FLAGS) & <u8>FLAG_STOPS_REGEX) != 0;
  for (let i = load<u32>(ctx, X_TRACED); i < end; i++) {
    let unseen = stops && load<u8>(routeAt(image, i)) == <u8>ROUTE_REGEX;
    trace(ctx, unseen ? TRACE_STOPPED : TRACE_ROUTE, i, false);
  }
  if (until == NONE || load<u32>(ctx, X_TRACED) > until) return;
  trace(ctx, TRACE_ROUTE, until, true);
  store<u32>(ctx, until + 1, X_TRACED);
}

/** Nothing in the shard decided: its own unmatched outcome, else that of the default shard, else 404. */
function unmatched(ctx: usize): i32 {
  let handle: usize = load<u32>(ctx, X_HANDLE);
  let usual: usize = load<u32>(load<u32>(ctx, X_TABLE), T_DEFAULT);
  store<u32>(ctx, STAGE_UNMATCHED, X_STAGE);
  store<u32>(ctx, NONE, D_ROUTE);
  if (!handle || !load<u32>(imageOf(handle), S_UNMATCHED)) {
    if (tracing(ctx) && handle) trace(ctx, TRACE_UNMATCHED, 0, false);
    handle = usual;
    if (!handle || !load<u32>(imageOf(handle), S_UNMATCHED)) {
      trace(ctx, TRACE_UNMATCHED, 2, true);
      store<u32>(ctx, 0, D_SHARD);
      return refuse(ctx, 404);
    }
    store<u32>(ctx, <u32>handle, X_HANDLE);
    store<u32>(ctx, <u32>imageOf(handle), D_SHARD);
    forgetHeaders(ctx);
  }
  let image = imageOf(handle);
  if (askFor(ctx, image, load<u32>(image, S_UNMATCHED_NEED), 0)) return NEED;
  trace(ctx, TRACE_UNMATCHED, handle == usual ? 1 : 0, true);
  store<u32>(ctx, ORIGIN_UNMATCHED, D_ORIGIN);
  return act(ctx, image, load<u32>(image, S_UNMATCHED));
}

/** Tries the candidate `index` and those after it. */
function tryCandidates(ctx: usize, image: usize, index: u32): i32 {
  while (true) {
    if (tracing(ctx)) traceSkipped(ctx, image, index);
    if (index == NONE) return unmatched(ctx);
    let route = <usize>load<u32>(<usize>load<u32>(ctx, X_HANDLE), H_ROUTES) + index * ROUTE_SIZE;
    store<u32>(ctx, index, X_CANDIDATE);
    store<u32>(ctx, index, D_ROUTE);
    let need = load<u32>(route, R_NEED);
    if (need && askFor(ctx, image, need, 0)) return NEED;
    let outcome = load<u32>(route, R_OUTCOME);
    let count = load<u32>(route, R_MATCH_COUNT);
    let match = image + load<u32>(route, R_MATCHES);
    for (let i: u32 = 0; i < count; i++, match += MATCH_SIZE) {
      let holds = allHold(ctx, image, match);
      if (tracing(ctx)) trace(ctx, TRACE_MATCH, i, holds);
      if (!holds) continue;
      outcome = load<u32>(match, M_OUTCOME);
      break;
    }
    if (outcome) {
      store<u32>(ctx, ORIGIN_ROUTE, D_ORIGIN);
      return act(ctx, image, outcome);
    }
    trace(ctx, TRACE_FALLS, index, false);
    store<u32>(ctx, 0, X_CAPTURED);
    index = nextCandidate(ctx, image, index);
  }
}

/** Begins with the routes of a shard. */
function startRoutes(ctx: usize, image: usize): i32 {
  store<u32>(ctx, STAGE_ROUTES, X_STAGE);
  let exact = searchTrie(ctx, <usize>load<u32>(ctx, X_HANDLE));
  return tryCandidates(ctx, image, exact == NONE ? afterExact(ctx, image) : exact);
}

/** Tries the guard at hand and those after it, then the routes. */
function tryGuards(ctx: usize, image: usize): i32 {
  let count = load<u32>(image, S_GUARD_COUNT);
  for (let i = load<u32>(ctx, X_GUARD); i < count; i++) {
    let guard = image + load<u32>(image, S_GUARDS) + i * GUARD_SIZE;
    store<u32>(ctx, i, X_GUARD);
    if (askFor(ctx, image, load<u32>(guard), 0)) return NEED;
    let holds = allHold(ctx, image, guard + 4);
    trace(ctx, TRACE_GUARD, i, holds);
    if (!holds) continue;
    store<u32>(ctx, ORIGIN_GUARD, D_ORIGIN);
    return act(ctx, image, load<u32>(guard + 4, M_OUTCOME));
  }
  return startRoutes(ctx, image);
}

/**
 * Decides the request whose host and target stand in the input of `ctx`, the target at the next multiple of 4 after the
 * host.
 * Flags: bit 0 for https. Answers OK (decided), NEED, or a status below zero for a wrong call.
 */
export function decide(ctx: usize, hostLength: u32, targetLength: u32, flags: u32, random: u32): i32 {
  if (!isContext(ctx)) return E_POINTER;
  let capacity = load<u32>(ctx, X_INPUT_CAPACITY);
  let targetAt = (hostLength + 3) & ~3;
  if (hostLength > capacity || targetAt > capacity || targetLength > capacity - targetAt) return E_POINTER;
  startValues(ctx);
  // Pairs of words: flags and random, action and status, route (NONE) and shard, upstream and peers, settings.
  store<u64>(ctx, <u64>flags | ((<u64>random) << 32), X_FLAGS);
  store<u64>(ctx, 0, D_ACTION);
  store<u64>(ctx, NONE, D_ROUTE);
  store<u64>(ctx, 0, D_UPSTREAM);
  store<u64>(ctx, 0, D_SETTINGS);
  store<u32>(ctx, 0, D_ORIGIN);
  store<u32>(ctx, 0, D_MARKS);
  store<u32>(ctx, 0, X_NEED_COUNT);
  store<u32>(ctx, 0, X_CAPTURED);
  store<u32>(ctx, 0, X_TRACE_COUNT);
  store<u32>(ctx, 0, X_HANDLE);
  store<u64>(ctx, 0, X_TRACED);
  let input: usize = load<u32>(ctx, X_INPUT);
  let table: usize = load<u32>(ctx, X_TABLE);
  let handle: usize = 0;
  let plain = hostLength - 1 < MAX_HOST && !tracing(ctx);
  if (plain) handle = findPlainHost(ctx, table, takePlainHost(ctx, input, hostLength), hostLength);
  if (!handle && !takeHost(ctx, input, hostLength)) return refuse(ctx, 400);
  if (!takeTarget(ctx, input + targetAt, targetLength)) return refuse(ctx, 400);
  // A host of the length that it came with is the one that was looked up already.
  if (!handle) handle = findShard(ctx, table, plain && load<u32>(ctx, X_HOST_LENGTH) == hostLength);
  if (!handle) return unmatched(ctx);
  let image = imageOf(handle);
  store<u32>(ctx, <u32>handle, X_HANDLE);
  store<u32>(ctx, <u32>image, D_SHARD);
  if (load<u32>(handle, H_GUARD_COUNT)) {
    store<u32>(ctx, STAGE_GUARDS, X_STAGE);
    return tryGuards(ctx, image);
  }
  return startRoutes(ctx, image);
}

/** Goes on with a request that answered NEED, once the values are filled in. */
export function goOn(ctx: usize): i32 {
  if (!isContext(ctx)) return E_POINTER;
  if (!load<u32>(ctx, X_NEED_COUNT)) return E_STATE;
  let stage = load<u32>(ctx, X_STAGE);
  let image: usize = load<u32>(ctx, D_SHARD);
  if (stage == STAGE_DONE) return E_STATE;
  let status = takeAnswers(ctx);
  if (status != OK) return status;
  if (stage == STAGE_PICK) return pickPeer(ctx);
  if (stage == STAGE_GUARDS) return tryGuards(ctx, image);
  if (stage == STAGE_ROUTES) return tryCandidates(ctx, image, load<u32>(ctx, X_CANDIDATE));
  return unmatched(ctx);
}
