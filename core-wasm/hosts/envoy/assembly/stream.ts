/**
 * Streams: what is remembered of a request until it ends.
 *
 * Stream, 32 bytes: u32 plugin (0: gone) | u32 kept settings of the answer (0: none) | u32 token of the peer | u32 1 while the
 * peer counts the request | u32 1 where failures of the peer count | u32 1 after a failure | u64 zero
 */
import { peer_done } from "../../../assembly/index";
import { alloc, free } from "../../../assembly/memory/heap";
import { X_NOW } from "../../../assembly/table/context";
import { dropGrowing } from "./growing";
import { timeNow } from "./host";
import { P_CONTEXT } from "./plugin";
import { mapDelete, mapGet, mapSet, mapSlots, mapSlotsEnd, newMap } from "./word-map";

export const S_PLUGIN: usize = 0;
export const S_KEPT: usize = 4;
export const S_TOKEN: usize = 8;
export const S_COUNTED: usize = 12;
export const S_FAILURES_COUNT: usize = 16;
export const S_FAILED: usize = 20;
const SIZE: u32 = 32;

const streams = newMap();

/** The stream of an id; 0 if it is not known. */
export function findStream(id: u32): usize {
  return mapGet(streams, id);
}

export function addStream(id: u32, plugin: usize): void {
  let stream = alloc(SIZE);
  if (!stream) return;
  memory.fill(stream, 0, SIZE);
  store<u32>(stream, <u32>plugin, S_PLUGIN);
  if (!mapSet(streams, id, <u32>stream)) free(stream);
}

/** The request is over: its peer has a place free again. */
export function endStream(id: u32, stream: usize): void {
  mapDelete(streams, id);
  let plugin: usize = load<u32>(stream, S_PLUGIN);
  if (plugin && load<u32>(stream, S_COUNTED)) {
    let context: usize = load<u32>(plugin, P_CONTEXT);
    setTime(context);
    peer_done(context, load<u32>(stream, S_TOKEN), load<u32>(stream, S_FAILED));
  }
  dropGrowing(load<u32>(stream, S_KEPT));
  free(stream);
}

/** Streams of a plugin that ends do without it. */
export function leavePlugin(plugin: usize): void {
  for (let slot = mapSlots(streams); slot < mapSlotsEnd(streams); slot += 8) {
    if (!load<u32>(slot)) continue;
    let stream: usize = load<u32>(slot, 4);
    if (load<u32>(stream, S_PLUGIN) == <u32>plugin) store<u32>(stream, 0, S_PLUGIN);
  }
}

/** Tells a context what time it is. */
export function setTime(context: usize): void {
  store<u32>(context, <u32>(timeNow() / 1000000), X_NOW);
}
