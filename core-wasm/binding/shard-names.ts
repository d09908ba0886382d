/** Reads what a shard image says about itself: its pattern, the owners and labels of its routes. */

import {
  NONE,
  PATTERN_ANY_LABELS,
  PATTERN_EXACT,
  S_GUARD_COUNT,
  S_HEADER_SIZE,
  S_HOST_LENGTH,
  S_NAMES,
  S_PATTERN,
  S_ROUTE_COUNT,
} from "../assembly/image/layout.js";

const decoder = new TextDecoder();

/** Names of one shard. `host` is the pattern as objects spell it: `*.example.com` for both kinds of wildcard. */
export interface ShardNames {
  host: string;
  routes: { resource: string; label: string }[];
  guards: string[];
  unmatched: string;
}

/** Reads the names of the (valid) shard image at `image`. Images without names give empty texts. */
export function readShardNames(memory: ArrayBuffer, image: number): ShardNames {
  const view = new DataView(memory);
  const word = (offset: number) => view.getUint32(image + offset, true);
  const text = (offset: number, length: number) => decoder.decode(new Uint8Array(memory, image + offset, length));
  const kind = word(S_PATTERN);
  const own = text(S_HEADER_SIZE, word(S_HOST_LENGTH));
  const host = kind === PATTERN_EXACT ? own : kind <= PATTERN_ANY_LABELS ? `*.${own}` : "";
  const routeCount = word(S_ROUTE_COUNT);
  const guardCount = word(S_GUARD_COUNT);
  const names = word(S_NAMES);
  if (!names) return { host, routes: [], guards: [], unmatched: "" };
  const resourceCount = word(names);
  const resources: string[] = [];
  let at = names + 4;
  for (let i = 0; i < resourceCount; i++, at += 8) resources.push(text(word(at), word(at + 4)));
  const routes: ShardNames["routes"] = [];
  for (let i = 0; i < routeCount; i++, at += 12) {
    routes.push({ resource: resources[word(at)], label: text(word(at + 4), word(at + 8)) });
  }
  const guards: string[] = [];
  for (let i = 0; i < guardCount; i++, at += 4) guards.push(resources[word(at)]);
  return { host, routes, guards, unmatched: word(at) === NONE ? "" : resources[word(at)] };
}
