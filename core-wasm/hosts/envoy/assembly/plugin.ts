/**
 * Plugins: each configuration of the filter that is in use, with a table and a context of its own. While a bundle is
 * replaced, requests that began under the old one end with it.
 *
 * Plugin, 32 bytes: u32 id | u32 next plugin | u32 table (0: none yet) | u32 context | u32 descriptions of upstreams, by
 * peer set (word-map.ts) | u32 1 where failures of peers count | u32 checksum of the bundle | u32 zero
 */

import { context_new, table_free, table_new } from "../../../assembly/index";
import { alloc, free } from "../../../assembly/memory/heap";
import {
  bundleSize,
  checksum,
  countsFailures,
  loadBundle,
  peerSetCount,
  refusedRecord,
  refusedStatus,
  shardCount,
} from "./bundle";
import { dropDescription } from "./description";
import { dropGrowing, growing, grownBytes, grownLength, putByte, putBytes, putHex, putNumber } from "./growing";
import { LOG_ERROR, LOG_INFO, log } from "./host";
import { ascii, bytesOf, lengthOf } from "./text";
import { dropMap, mapSlots, mapSlotsEnd, newMap } from "./word-map";

const P_ID: usize = 0;
const P_NEXT: usize = 4;
export const P_TABLE: usize = 8;
export const P_CONTEXT: usize = 12;
export const P_DESCRIPTIONS: usize = 16;
export const P_COUNTS_FAILURES: usize = 20;
export const P_CHECKSUM: usize = 24;
const SIZE: u32 = 32;

/** As the binding has them: largest host and target together, and room for text. */
export const INPUT_SIZE: u32 = 1 << 16;
const OUTPUT_SIZE: u32 = 1 << 18;

const REFUSED = ascii("njet-kic: the bundle is refused: ");
const RECORD = ascii(" (record ");
const STATUS = ascii(", status -");
const LOADED = ascii("njet-kic: bundle ");
const SHARDS = ascii(" shards, ");
const PEER_SETS = ascii(" peer sets, ");
const BYTES = ascii(" bytes");
const NO_MEMORY = ascii("memory is short");

let first: usize = 0;

/** The plugin of an id; 0 if there is none. */
export function findPlugin(id: u32): usize {
  let plugin = first;
  while (plugin && load<u32>(plugin, P_ID) != id) plugin = load<u32>(plugin, P_NEXT);
  return plugin;
}

export function addPlugin(id: u32): void {
  let plugin = alloc(SIZE);
  if (!plugin) return;
  memory.fill(plugin, 0, SIZE);
  store<u32>(plugin, id, P_ID);
  store<u32>(plugin, <u32>first, P_NEXT);
  first = plugin;
}

/** Ends a plugin, with its table. */
export function dropPlugin(plugin: usize): void {
  let link: usize = 0;
  for (let other = first; other && other != plugin; other = load<u32>(other, P_NEXT)) link = other;
  let next = load<u32>(plugin, P_NEXT);
  if (link) store<u32>(link, next, P_NEXT);
  else first = next;
  clear(load<u32>(plugin, P_TABLE), load<u32>(plugin, P_DESCRIPTIONS));
  free(plugin);
}

/** Frees a table, with its context, and the descriptions of its upstreams. */
function clear(table: usize, descriptions: usize): void {
  if (table) table_free(table);
  if (!descriptions) return;
  for (let slot = mapSlots(descriptions); slot < mapSlotsEnd(descriptions); slot += 8) {
    if (load<u32>(slot)) dropDescription(load<u32>(slot, 4));
  }
  dropMap(descriptions);
}

/** Loads the bundle of `size` bytes. False, with what the plugin had kept as it was, if it is refused. */
export function configurePlugin(plugin: usize, size: u32): bool {
  let table = table_new();
  let descriptions = newMap();
  let why = table && descriptions ? loadBundle(size, table, descriptions) : NO_MEMORY;
  let context: usize = why ? 0 : context_new(table, INPUT_SIZE, OUTPUT_SIZE);
  if (!why && !context) why = NO_MEMORY;
  if (why) {
    clear(table, descriptions);
    tellRefused(why);
    return false;
  }
  clear(load<u32>(plugin, P_TABLE), load<u32>(plugin, P_DESCRIPTIONS));
  store<u32>(plugin, <u32>table, P_TABLE);
  store<u32>(plugin, <u32>context, P_CONTEXT);
  store<u32>(plugin, <u32>descriptions, P_DESCRIPTIONS);
  store<u32>(plugin, countsFailures ? 1 : 0, P_COUNTS_FAILURES);
  store<u32>(plugin, checksum, P_CHECKSUM);
  tellLoaded();
  return true;
}

function put(into: usize, text: usize): void {
  putBytes(into, bytesOf(text), lengthOf(text));
}

function tellRefused(why: usize): void {
  let line = growing();
  if (!line) return;
  put(line, REFUSED);
  put(line, why);
  put(line, RECORD);
  putNumber(line, refusedRecord);
  if (refusedStatus < 0) {
    put(line, STATUS);
    putNumber(line, <u32>-refusedStatus);
  }
  putByte(line, 41);
  log(LOG_ERROR, grownBytes(line), grownLength(line));
  dropGrowing(line);
}

function tellLoaded(): void {
  let line = growing();
  if (!line) return;
  put(line, LOADED);
  putHex(line, checksum, 8);
  putByte(line, 58);
  putByte(line, 32);
  putNumber(line, shardCount);
  put(line, SHARDS);
  putNumber(line, peerSetCount);
  put(line, PEER_SETS);
  putNumber(line, bundleSize);
  put(line, BYTES);
  log(LOG_INFO, grownBytes(line), grownLength(line));
  dropGrowing(line);
}
